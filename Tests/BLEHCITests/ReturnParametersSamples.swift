import BLEHCI
import BluetoothTypes

/// Return parameters of commands, each with the packet of its Command Complete event.
let returnSamples = generalReturnSamples + channelSoundingReturnSamples + leIsochronousReturnSamples

private let generalReturnSamples: [ReturnParametersSample] = [
    ReturnParametersSample(
        Reset.self,
        returning: StatusReturnParameters(),
        "0e0401030c00"
    ),
    ReturnParametersSample(
        ReadTransmitPowerLevel.self,
        returning: .init(connectionHandle: 0x0040, transmitPowerLevel: -8),
        "0e07012d0c004000f8"
    ),
    ReturnParametersSample(
        ReadLocalVersionInformation.self,
        returning: .init(
            hciVersion: .v53,
            hciSubversion: 0x1234,
            lmpVersion: .v54,
            companyIdentifier: 0x0059,
            lmpSubversion: 0x5678
        ),
        "0e0c010110000c34120d59007856"
    ),
    ReturnParametersSample(
        ReadLocalSupportedCommands.self,
        returning: .init(supportedCommands: supportedCommands),
        "0e4401021000" + "200000000080" + String(repeating: "00", count: 19) + "01" + String(repeating: "00", count: 38)
    ),
    ReturnParametersSample(
        ReadLocalSupportedFeatures.self,
        returning: .init(lmpFeatures: [.brEdrNotSupported, .leSupportedController]),
        "0e0c010310000000000060000000"
    ),
    ReturnParametersSample(
        ReadBufferSize.self,
        returning: .init(
            aclDataPacketLength: 1021,
            synchronousDataPacketLength: 64,
            totalNumACLDataPackets: 8,
            totalNumSynchronousDataPackets: 1
        ),
        "0e0b01051000fd034008000100"
    ),
    ReturnParametersSample(
        ReadBDADDR.self,
        returning: .init(bdADDR: DeviceAddress(0x001B_DC07_32EF, isRandom: false)),
        "0e0a01091000ef3207dc1b00"
    ),
    ReturnParametersSample(
        ReadRSSI.self,
        returning: .init(connectionHandle: 0x0040, rssi: -60),
        "0e07010514004000c4"
    ),
    ReturnParametersSample(
        ReadAuthenticatedPayloadTimeout.self,
        returning: .init(connectionHandle: 0x0040, authenticatedPayloadTimeout: 3000),
        "0e08017b0c004000b80b"
    ),
    ReturnParametersSample(
        WriteAuthenticatedPayloadTimeout.self,
        returning: .init(connectionHandle: 0x0040),
        "0e06017c0c004000"
    ),
    ReturnParametersSample(
        LEReadBufferSize.self,
        returning: .init(leACLDataPacketLength: 251, totalNumLEACLDataPackets: 3),
        "0e0701022000fb0003"
    ),
    ReturnParametersSample(
        LEReadBufferSizeV2.self,
        returning: .init(
            leACLDataPacketLength: 251,
            totalNumLEACLDataPackets: 3,
            isoDataPacketLength: 0x0102,
            totalNumISODataPackets: 5
        ),
        "0e0a01602000fb0003020105"
    ),
    ReturnParametersSample(
        LEReadLocalSupportedFeatures.self,
        returning: .init(leFeatures: [.encryption, .extendedAdvertising]),
        "0e0c010320000110000000000000"
    ),
    ReturnParametersSample(
        LEReadAdvertisingPhysicalChannelTxPower.self,
        returning: .init(txPowerLevel: -5),
        "0e0501072000fb"
    ),
    ReturnParametersSample(
        LEReadFilterAcceptListSize.self,
        returning: .init(filterAcceptListSize: 16),
        "0e05010f200010"
    ),
    ReturnParametersSample(
        LEReadChannelMap.self,
        returning: .init(connectionHandle: 0x0040, channelMap: .all),
        "0e0b011520004000ffffffff1f"
    ),
    ReturnParametersSample(
        LEEncrypt.self,
        returning: .init(encryptedData: 0x1F1E_1D1C_1B1A_1918_1716_1514_1312_1110),
        "0e1401172000101112131415161718191a1b1c1d1e1f"
    ),
    ReturnParametersSample(
        LERand.self,
        returning: .init(randomNumber: 0x1122_3344_5566_7788),
        "0e0c011820008877665544332211"
    ),
    ReturnParametersSample(
        LELongTermKeyRequestReply.self,
        returning: .init(connectionHandle: 0x0040),
        "0e06011a20004000"
    ),
    ReturnParametersSample(
        LELongTermKeyRequestNegativeReply.self,
        returning: .init(connectionHandle: 0x0040),
        "0e06011b20004000"
    ),
    ReturnParametersSample(
        LEReadSupportedStates.self,
        returning: .init(leStates: 0x0000_03FF_FFFF_FFFF),
        "0e0c011c2000ffffffffff030000"
    ),
    ReturnParametersSample(
        LERemoteConnectionParameterRequestReply.self,
        returning: .init(connectionHandle: 0x0040),
        "0e06012020004000"
    ),
    ReturnParametersSample(
        LERemoteConnectionParameterRequestNegativeReply.self,
        returning: .init(connectionHandle: 0x0040),
        "0e06012120004000"
    ),
    ReturnParametersSample(
        LESetDataLength.self,
        returning: .init(connectionHandle: 0x0040),
        "0e06012220004000"
    ),
    ReturnParametersSample(
        LEReadSuggestedDefaultDataLength.self,
        returning: .init(suggestedMaxTXOctets: 27, suggestedMaxTXTime: 328),
        "0e08012320001b004801"
    ),
    ReturnParametersSample(
        LEReadResolvingListSize.self,
        returning: .init(resolvingListSize: 8),
        "0e05012a200008"
    ),
    ReturnParametersSample(
        LEReadPeerResolvableAddress.self,
        returning: .init(peerResolvableAddress: DeviceAddress(0x7B66_7788_9900, isRandom: true)),
        "0e0a012b200000998877667b"
    ),
    ReturnParametersSample(
        LEReadLocalResolvableAddress.self,
        returning: .init(localResolvableAddress: DeviceAddress(0x4A11_2233_4455, isRandom: true)),
        "0e0a012c200055443322114a"
    ),
    ReturnParametersSample(
        LEReadMaximumDataLength.self,
        returning: .init(
            supportedMaxTXOctets: 251,
            supportedMaxTXTime: 2120,
            supportedMaxRXOctets: 250,
            supportedMaxRXTime: 17040
        ),
        "0e0c012f2000fb004808fa009042"
    ),
    ReturnParametersSample(
        LEReadPHY.self,
        returning: .init(connectionHandle: 0x0040, txPHY: .le2M, rxPHY: .le1M),
        "0e080130200040000201"
    ),
    ReturnParametersSample(
        LESetExtendedAdvertisingParameters.self,
        returning: .init(selectedTXPower: -12),
        "0e0501362000f4"
    ),
    ReturnParametersSample(
        LEReadMaximumAdvertisingDataLength.self,
        returning: .init(maxAdvertisingDataLength: 1650),
        "0e06013a20007206"
    ),
    ReturnParametersSample(
        LEReadNumberOfSupportedAdvertisingSets.self,
        returning: .init(numSupportedAdvertisingSets: 16),
        "0e05013b200010"
    ),
    ReturnParametersSample(
        LEReadTransmitPower.self,
        returning: .init(minTXPower: -40, maxTXPower: 8),
        "0e06014b2000d808"
    ),
    ReturnParametersSample(
        LEReadPeriodicAdvertiserListSize.self,
        returning: .init(periodicAdvertiserListSize: 8),
        "0e05014a200008"
    ),
    ReturnParametersSample(
        LEPeriodicAdvertisingSyncTransfer.self,
        returning: .init(connectionHandle: 0x0040),
        "0e06015a20004000"
    ),
    ReturnParametersSample(
        LEPeriodicAdvertisingSetInfoTransfer.self,
        returning: .init(connectionHandle: 0x0040),
        "0e06015b20004000"
    ),
    ReturnParametersSample(
        LEEnhancedReadTransmitPowerLevel.self,
        returning: .init(connectionHandle: 0x0040, phy: .leCoded, currentTXPowerLevel: -20, maxTXPowerLevel: 8),
        "0e0901762000400003ec08"
    ),
    ReturnParametersSample(
        LESetPathLossReportingParameters.self,
        returning: .init(connectionHandle: 0x0040),
        "0e06017820004000"
    ),
    ReturnParametersSample(
        LESetPathLossReportingEnable.self,
        returning: .init(connectionHandle: 0x0040),
        "0e06017920004000"
    ),
    ReturnParametersSample(
        LESetTransmitPowerReportingEnable.self,
        returning: .init(connectionHandle: 0x0040),
        "0e06017a20004000"
    ),
    ReturnParametersSample(
        LESetExtendedAdvertisingParametersV2.self,
        returning: .init(selectedTXPower: 4),
        "0e05017f200004"
    ),
    ReturnParametersSample(
        LESetPeriodicAdvertisingSyncTransferParameters.self,
        returning: .init(connectionHandle: 0x0040),
        "0e06015c20004000"
    ),
    ReturnParametersSample(
        LESetPeriodicAdvertisingSubeventData.self,
        returning: .init(advertisingHandle: 3),
        "0e050182200003"
    ),
    ReturnParametersSample(
        LESetPeriodicAdvertisingResponseData.self,
        returning: .init(syncHandle: 0x0123),
        "0e06018320002301"
    ),
    ReturnParametersSample(
        LESetPeriodicSyncSubevent.self,
        returning: .init(syncHandle: 0x0123),
        "0e06018420002301"
    ),
    ReturnParametersSample(
        LESetPeriodicAdvertisingParametersV2.self,
        returning: .init(advertisingHandle: 3),
        "0e050186200003"
    ),
    ReturnParametersSample(
        LEReadAllLocalSupportedFeatures.self,
        returning: .init(maxPage: 1, leFeatures: LEFeaturePages(featureBytes)),
        "0efd0187200001" + featureBytes.hexadecimal
    ),
    ReturnParametersSample(
        LEReadMonitoredAdvertisersListSize.self,
        returning: .init(number: 8),
        "0e05019b200008"
    ),
]

/// The bytes of all pages of LE features: 248 bytes.
let featureBytes = (0..<248).map { UInt8($0) }

/// Bits 0.5, 5.7 and 25.0 (Vol 4, Part E, 6.27).
private var supportedCommands: SupportedCommands {
    var commands = SupportedCommands()
    commands.insert(Disconnect.self)
    commands.insert(Reset.self)
    commands.insert(LESetEventMask.self)
    return commands
}
