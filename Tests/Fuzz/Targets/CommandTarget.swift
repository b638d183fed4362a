import BLEByteCoding
import BLEHCI
import BluetoothTypes

/// Fuzzes the decoding of command parameters, as in a software controller, and of return parameters, as in the host.
/// The first two bytes are the opcode, so a new command does not change what an input means. The lowest bit of the
/// third byte selects parameters or return parameters, and the rest is decoded.
func fuzzCommand(_ input: [UInt8]) {
    guard input.count >= 3 else { return }
    let opcode = HCIOpcode(rawValue: UInt16(input[0]) | UInt16(input[1]) << 8)
    guard let type = commandTypesByOpcode[opcode] else { return }
    let parameters = input.dropFirst(3).prefix(parameterLimit)
    _ = readsCommand(type, isReturn: input[2] & 1 != 0, Array(parameters).rawSpan)
}

/// The maximum length of parameters in bytes: the header has one byte for it.
private let parameterLimit = 255

/// The opcodes of all commands that the target decodes.
package var fuzzedOpcodes: [UInt16] { commandTypes.map { $0.opcode.rawValue } }

private let commandTypesByOpcode: [HCIOpcode: any Command.Type] =
    Dictionary(uniqueKeysWithValues: commandTypes.map { ($0.opcode, $0) })

/// Inputs for every command that can be decoded from parameters of zeros.
var commandSeeds: [[UInt8]] {
    var seeds: [[UInt8]] = []
    for type in commandTypes {
        let opcode = type.opcode.rawValue
        for isReturn in [false, true] {
            let lengths = (0...parameterLimit).filter { length in
                readsCommand(type, isReturn: isReturn, [UInt8](repeating: 0, count: length).rawSpan)
            }
            for length in lengths.prefix(3) {
                let start = [UInt8(truncatingIfNeeded: opcode), UInt8(opcode >> 8), isReturn ? 1 : 0]
                seeds.append(start + [UInt8](repeating: 0, count: length))
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
    LEAcceptCISRequest.self,
    LEAddDeviceToFilterAcceptList.self,
    LEAddDeviceToMonitoredAdvertisersList.self,
    LEAddDeviceToPeriodicAdvertiserList.self,
    LEAddDeviceToResolvingList.self,
    LEBIGCreateSync.self,
    LEBIGTerminateSync.self,
    LECSCreateConfig.self,
    LECSProcedureEnable.self,
    LECSReadLocalSupportedCapabilities.self,
    LECSReadRemoteFAETable.self,
    LECSReadRemoteSupportedCapabilities.self,
    LECSRemoveConfig.self,
    LECSSecurityEnable.self,
    LECSSetChannelClassification.self,
    LECSSetDefaultSettings.self,
    LECSSetProcedureParameters.self,
    LECSTest.self,
    LECSTestEnd.self,
    LECSWriteCachedRemoteFAETable.self,
    LECSWriteCachedRemoteSupportedCapabilities.self,
    LEClearAdvertisingSets.self,
    LEClearFilterAcceptList.self,
    LEClearMonitoredAdvertisersList.self,
    LEClearPeriodicAdvertiserList.self,
    LEClearResolvingList.self,
    LEConnectionUpdate.self,
    LECreateBIG.self,
    LECreateCIS.self,
    LECreateConnection.self,
    LECreateConnectionCancel.self,
    LEEnableEncryption.self,
    LEEnableMonitoringAdvertisers.self,
    LEEncrypt.self,
    LEEnhancedReadTransmitPowerLevel.self,
    LEExtendedCreateConnection.self,
    LEExtendedCreateConnectionV2.self,
    LEFrameSpaceUpdate.self,
    LEGenerateDHKey.self,
    LELongTermKeyRequestNegativeReply.self,
    LELongTermKeyRequestReply.self,
    LEPeriodicAdvertisingCreateSync.self,
    LEPeriodicAdvertisingCreateSyncCancel.self,
    LEPeriodicAdvertisingSetInfoTransfer.self,
    LEPeriodicAdvertisingSyncTransfer.self,
    LEPeriodicAdvertisingTerminateSync.self,
    LERand.self,
    LEReadAdvertisingPhysicalChannelTxPower.self,
    LEReadAllLocalSupportedFeatures.self,
    LEReadAllRemoteFeatures.self,
    LEReadBufferSize.self,
    LEReadBufferSizeV2.self,
    LEReadChannelMap.self,
    LEReadFilterAcceptListSize.self,
    LEReadISOTXSync.self,
    LEReadLocalP256PublicKey.self,
    LEReadLocalResolvableAddress.self,
    LEReadLocalSupportedFeatures.self,
    LEReadMaximumAdvertisingDataLength.self,
    LEReadMaximumDataLength.self,
    LEReadMonitoredAdvertisersListSize.self,
    LEReadNumberOfSupportedAdvertisingSets.self,
    LEReadPHY.self,
    LEReadPeerResolvableAddress.self,
    LEReadPeriodicAdvertiserListSize.self,
    LEReadRemoteFeatures.self,
    LEReadRemoteTransmitPowerLevel.self,
    LEReadResolvingListSize.self,
    LEReadSuggestedDefaultDataLength.self,
    LEReadSupportedStates.self,
    LEReadTransmitPower.self,
    LERejectCISRequest.self,
    LERemoteConnectionParameterRequestNegativeReply.self,
    LERemoteConnectionParameterRequestReply.self,
    LERemoveAdvertisingSet.self,
    LERemoveCIG.self,
    LERemoveDeviceFromFilterAcceptList.self,
    LERemoveDeviceFromMonitoredAdvertisersList.self,
    LERemoveDeviceFromPeriodicAdvertiserList.self,
    LERemoveDeviceFromResolvingList.self,
    LERemoveISODataPath.self,
    LESetAddressResolutionEnable.self,
    LESetAdvertisingData.self,
    LESetAdvertisingEnable.self,
    LESetAdvertisingParameters.self,
    LESetAdvertisingSetRandomAddress.self,
    LESetCIGParameters.self,
    LESetDataLength.self,
    LESetDefaultPHY.self,
    LESetDefaultPeriodicAdvertisingSyncTransferParameters.self,
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
    LESetHostFeatureV2.self,
    LESetPHY.self,
    LESetPathLossReportingEnable.self,
    LESetPathLossReportingParameters.self,
    LESetPeriodicAdvertisingData.self,
    LESetPeriodicAdvertisingEnable.self,
    LESetPeriodicAdvertisingParameters.self,
    LESetPeriodicAdvertisingParametersV2.self,
    LESetPeriodicAdvertisingReceiveEnable.self,
    LESetPeriodicAdvertisingResponseData.self,
    LESetPeriodicAdvertisingSubeventData.self,
    LESetPeriodicAdvertisingSyncTransferParameters.self,
    LESetPeriodicSyncSubevent.self,
    LESetPrivacyMode.self,
    LESetRandomAddress.self,
    LESetResolvablePrivateAddressTimeout.self,
    LESetResolvablePrivateAddressTimeoutV2.self,
    LESetScanEnable.self,
    LESetScanParameters.self,
    LESetScanResponseData.self,
    LESetTransmitPowerReportingEnable.self,
    LESetupISODataPath.self,
    LESubrateRequest.self,
    LETerminateBIG.self,
    LEWriteSuggestedDefaultDataLength.self,
    ReadAuthenticatedPayloadTimeout.self,
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
    WriteAuthenticatedPayloadTimeout.self,
    WriteLEHostSupport.self,
]
