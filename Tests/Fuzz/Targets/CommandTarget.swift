import BLEByteCoding
import BLEHCI
import BluetoothTypes

/// Fuzzes the decoding of command parameters, as in a software controller, and of return parameters, as in the host.
/// The first byte selects the command, the lowest bit of the second byte selects parameters or return parameters, and
/// the rest is decoded.
func fuzzCommand(_ input: [UInt8]) {
    guard input.count >= 2 else { return }
    let type = commandTypes[Int(input[0]) % commandTypes.count]
    let parameters = input.dropFirst(2).prefix(parameterLimit)
    _ = readsCommand(type, isReturn: input[1] & 1 != 0, Array(parameters).rawSpan)
}

/// The maximum length of parameters in bytes: the header has one byte for it.
private let parameterLimit = 255

/// Inputs for every command that can be decoded from parameters of zeros.
var commandSeeds: [[UInt8]] {
    var seeds: [[UInt8]] = []
    for (index, type) in commandTypes.enumerated() {
        for isReturn in [false, true] {
            let lengths = (0...parameterLimit).filter { length in
                readsCommand(type, isReturn: isReturn, [UInt8](repeating: 0, count: length).rawSpan)
            }
            for length in lengths.prefix(3) {
                seeds.append([UInt8(index), isReturn ? 1 : 0] + [UInt8](repeating: 0, count: length))
            }
        }
    }
    return seeds
}

/// Whether the parameters could be decoded.
private func readsCommand<C: Command>(_ type: C.Type, isReturn: Bool, _ parameters: RawSpan) -> Bool {
    if isReturn {
        var reader = ByteReader(parameters)
        return (try? C.ReturnParameters(decodingAfterStatus: &reader)) != nil
    }
    guard let command = try? type.init(decoding: parameters) else { return false }
    let packet = PacketBuffer.bytes { command.encodePacket(into: &$0) }
    require(packet.count <= 3 + parameterLimit, "a command of \(packet.count) bytes")
    let isRead = (try? type.init(decoding: packet.rawSpan.extracting(droppingFirst: 3))) != nil
    require(isRead, "a command that was read is written as none: \(packet.hexadecimal)")
    return true
}

private let commandTypes: [any Command.Type] = [
    Disconnect.self,
    HostBufferSize.self,
    HostNumberOfCompletedPackets.self,
    LEAddDeviceToFilterAcceptList.self,
    LEAddDeviceToResolvingList.self,
    LEClearAdvertisingSets.self,
    LEClearFilterAcceptList.self,
    LEClearResolvingList.self,
    LEConnectionUpdate.self,
    LECreateConnection.self,
    LECreateConnectionCancel.self,
    LEEnableEncryption.self,
    LEEncrypt.self,
    LEEnhancedReadTransmitPowerLevel.self,
    LEExtendedCreateConnection.self,
    LEExtendedCreateConnectionV2.self,
    LEGenerateDHKey.self,
    LELongTermKeyRequestNegativeReply.self,
    LELongTermKeyRequestReply.self,
    LEPeriodicAdvertisingCreateSync.self,
    LEPeriodicAdvertisingCreateSyncCancel.self,
    LEPeriodicAdvertisingTerminateSync.self,
    LERand.self,
    LEReadAdvertisingPhysicalChannelTxPower.self,
    LEReadBufferSize.self,
    LEReadBufferSizeV2.self,
    LEReadChannelMap.self,
    LEReadFilterAcceptListSize.self,
    LEReadLocalP256PublicKey.self,
    LEReadLocalResolvableAddress.self,
    LEReadLocalSupportedFeatures.self,
    LEReadMaximumAdvertisingDataLength.self,
    LEReadMaximumDataLength.self,
    LEReadNumberOfSupportedAdvertisingSets.self,
    LEReadPHY.self,
    LEReadPeerResolvableAddress.self,
    LEReadRemoteFeatures.self,
    LEReadRemoteTransmitPowerLevel.self,
    LEReadResolvingListSize.self,
    LEReadSuggestedDefaultDataLength.self,
    LEReadSupportedStates.self,
    LEReadTransmitPower.self,
    LERemoteConnectionParameterRequestNegativeReply.self,
    LERemoteConnectionParameterRequestReply.self,
    LERemoveAdvertisingSet.self,
    LERemoveDeviceFromFilterAcceptList.self,
    LERemoveDeviceFromResolvingList.self,
    LESetAddressResolutionEnable.self,
    LESetAdvertisingData.self,
    LESetAdvertisingEnable.self,
    LESetAdvertisingParameters.self,
    LESetAdvertisingSetRandomAddress.self,
    LESetDataLength.self,
    LESetDefaultPHY.self,
    LESetDefaultSubrate.self,
    LESetEventMask.self,
    LESetExtendedAdvertisingData.self,
    LESetExtendedAdvertisingEnable.self,
    LESetExtendedAdvertisingParameters.self,
    LESetExtendedAdvertisingParametersV2.self,
    LESetExtendedScanEnable.self,
    LESetExtendedScanParameters.self,
    LESetExtendedScanResponseData.self,
    LESetHostChannelClassification.self,
    LESetHostFeature.self,
    LESetPHY.self,
    LESetPathLossReportingEnable.self,
    LESetPathLossReportingParameters.self,
    LESetPeriodicAdvertisingData.self,
    LESetPeriodicAdvertisingEnable.self,
    LESetPeriodicAdvertisingParameters.self,
    LESetPeriodicAdvertisingParametersV2.self,
    LESetPeriodicAdvertisingResponseData.self,
    LESetPeriodicAdvertisingSubeventData.self,
    LESetPeriodicSyncSubevent.self,
    LESetPrivacyMode.self,
    LESetRandomAddress.self,
    LESetResolvablePrivateAddressTimeout.self,
    LESetScanEnable.self,
    LESetScanParameters.self,
    LESetScanResponseData.self,
    LESetTransmitPowerReportingEnable.self,
    LESubrateRequest.self,
    LEWriteSuggestedDefaultDataLength.self,
    ReadBDADDR.self,
    ReadBufferSize.self,
    ReadLocalSupportedCommands.self,
    ReadLocalSupportedFeatures.self,
    ReadLocalVersionInformation.self,
    ReadRSSI.self,
    ReadRemoteVersionInformation.self,
    ReadTransmitPowerLevel.self,
    Reset.self,
    SetControllerToHostFlowControl.self,
    SetEventMask.self,
    SetEventMaskPage2.self,
    WriteLEHostSupport.self,
]
