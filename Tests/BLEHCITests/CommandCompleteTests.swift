import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@Suite("Command Complete")
struct CommandCompleteTests {
    @Test(arguments: returnSamples)
    func returnParametersAreEncodedAsSpecified(_ sample: ReturnParametersSample) {
        #expect(sample.encoded().hexadecimal == sample.packet.hexadecimal)
    }

    @Test(arguments: returnSamples)
    func returnParametersAreDecodedToWhatWasEncoded(_ sample: ReturnParametersSample) throws {
        #expect(try sample.isDecoded(sample.packet))
    }

    @Test(arguments: returnSamples)
    func truncatedOrOverlongReturnParametersAreRefused(_ sample: ReturnParametersSample) {
        for count in 2..<sample.packet.count {
            var shortened = Array(sample.packet.prefix(count))
            shortened[1] = UInt8(count - 2)
            #expect(throws: PacketDecodingError.self) { try sample.isDecoded(shortened) }
        }
        var lengthened = sample.packet + [0]
        lengthened[1] += 1
        #expect(throws: PacketDecodingError.trailingBytes(count: 1)) { try sample.isDecoded(lengthened) }
    }

    @Test(arguments: returnSamples)
    func failedCommandIsDecodedWithOrWithoutParameters(_ sample: ReturnParametersSample) throws {
        var packet = sample.packet
        packet[5] = HCIErrorCode.commandDisallowed.rawValue
        #expect(try sample.error(packet) == .commandDisallowed)
        packet = Array(packet.prefix(6))
        packet[1] = 4
        #expect(try sample.error(packet) == .commandDisallowed)
    }

    @Test("A failure returns the connection handle of the command, if the return parameters begin with one")
    func failureReturnsTheConnectionHandle() throws {
        #expect(returnSamples.contains { $0.beginsWithHandle } && returnSamples.contains { !$0.beginsWithHandle })
        for sample in returnSamples {
            var expected = Array(sample.packet.prefix(5)) + [HCIErrorCode.commandDisallowed.rawValue]
            expected[1] = 4
            #expect(sample.refusal(nil).hexadecimal == expected.hexadecimal, "\(sample.testDescription)")
            if sample.beginsWithHandle {
                expected += [0x40, 0x00] + [UInt8](repeating: 0, count: sample.packet.count - 8)
                expected[1] = UInt8(expected.count - 2)
            }
            #expect(sample.refusal(0x0040).hexadecimal == expected.hexadecimal, "\(sample.testDescription)")
            #expect(try sample.error(sample.refusal(0x0040)) == .commandDisallowed)
        }
    }

    @Test func failureIsWrittenAsTheStatusAlone() {
        let packet = PacketBuffer.bytes {
            CommandComplete.encodePacket(
                answering: LEReadBufferSize.self,
                with: .failure(.unknownHCICommand),
                numHCICommandPackets: 2,
                into: &$0
            )
        }
        #expect(packet.hexadecimal == "0e0402022001")
    }

    @Test func commandCompleteOfAnotherCommandIsRefused() {
        #expect(throws: PacketDecodingError.invalidValue(0x0C03, field: "Command_Opcode")) {
            _ = try commandComplete(bytes("0e0401030c00"), LERand.self)
        }
    }

    @Test func commandCompleteWithoutACommandReturnsCreditsOnly() throws {
        let packet = bytes("0e03050000")
        guard case .commandComplete(let event) = try Event(decoding: packet.span.bytes) else {
            Issue.record("not recognised")
            return
        }
        #expect(event.numHCICommandPackets == 5)
        #expect(event.commandOpcode == .none)
        #expect(event.status == nil)
    }

    @Test func supportedCommandsAreGivenByByteAndBitAndByCommand() throws {
        let packet = bytes(
            "0e440102100000000000008000000000000000000000000000000000000000410000000000000010"
                + "000000200000002000000000000000000000000000000000000000000000"
        )
        let commands = try commandComplete(packet, ReadLocalSupportedCommands.self).get().supportedCommands
        #expect(commands.contains(octet: 5, bit: 7))
        #expect(!commands.contains(octet: 5, bit: 6))
        #expect(!commands.contains(octet: 64, bit: 0))
        #expect(!commands.contains(octet: -1, bit: 0))
        #expect(!commands.contains(octet: 5, bit: 8))
        #expect(commands.contains(Reset.self))
        #expect(commands.contains(LESetEventMask.self))
        #expect(commands.contains(LEReadAdvertisingPhysicalChannelTxPower.self))
        #expect(commands.contains(LERemoteConnectionParameterRequestReply.self))
        #expect(commands.contains(LESetExtendedScanParameters.self))
        #expect(commands.contains(LEReadBufferSizeV2.self))
        #expect(!commands.contains(LEReadBufferSize.self))
        #expect(!commands.contains(SetEventMask.self))
        #expect(!commands.contains(ReadLocalSupportedCommands.self))

        var rebuilt = SupportedCommands()
        rebuilt.insert(Reset.self)
        rebuilt.insert(LESetEventMask.self)
        rebuilt.insert(LEReadAdvertisingPhysicalChannelTxPower.self)
        rebuilt.insert(LERemoteConnectionParameterRequestReply.self)
        rebuilt.insert(LESetExtendedScanParameters.self)
        rebuilt.insert(LEReadBufferSizeV2.self)
        #expect(rebuilt == commands)
    }

    /// Byte times 8 plus bit, from the table in Vol 4, Part E, 6.27.
    static let positions: [(HCIOpcode, Int)] = [
        (SetEventMask.opcode, 5 * 8 + 6),
        (Reset.opcode, 5 * 8 + 7),
        (SetEventMaskPage2.opcode, 22 * 8 + 2),
        (ReadTransmitPowerLevel.opcode, 10 * 8 + 2),
        (ReadAuthenticatedPayloadTimeout.opcode, 32 * 8 + 4),
        (WriteAuthenticatedPayloadTimeout.opcode, 32 * 8 + 5),
        (SetControllerToHostFlowControl.opcode, 10 * 8 + 5),
        (HostBufferSize.opcode, 10 * 8 + 6),
        (HostNumberOfCompletedPackets.opcode, 10 * 8 + 7),
        (WriteLEHostSupport.opcode, 24 * 8 + 6),
        (Disconnect.opcode, 0 * 8 + 5),
        (ReadRemoteVersionInformation.opcode, 2 * 8 + 7),
        (ReadLocalVersionInformation.opcode, 14 * 8 + 3),
        (ReadLocalSupportedFeatures.opcode, 14 * 8 + 5),
        (ReadBufferSize.opcode, 14 * 8 + 7),
        (ReadBDADDR.opcode, 15 * 8 + 1),
        (ReadRSSI.opcode, 15 * 8 + 5),
        (LESetEventMask.opcode, 25 * 8 + 0),
        (LEReadBufferSize.opcode, 25 * 8 + 1),
        (LEReadBufferSizeV2.opcode, 41 * 8 + 5),
        (LEReadLocalSupportedFeatures.opcode, 25 * 8 + 2),
        (LESetRandomAddress.opcode, 25 * 8 + 4),
        (LERand.opcode, 27 * 8 + 7),
        (LEReadSupportedStates.opcode, 28 * 8 + 3),
        (LEReadTransmitPower.opcode, 38 * 8 + 7),
        (LEEncrypt.opcode, 27 * 8 + 6),
        (LEEnableEncryption.opcode, 28 * 8 + 0),
        (LELongTermKeyRequestReply.opcode, 28 * 8 + 1),
        (LELongTermKeyRequestNegativeReply.opcode, 28 * 8 + 2),
        (LEReadLocalP256PublicKey.opcode, 34 * 8 + 1),
        (LEGenerateDHKey.opcode, 34 * 8 + 2),
        (LEAddDeviceToResolvingList.opcode, 34 * 8 + 3),
        (LERemoveDeviceFromResolvingList.opcode, 34 * 8 + 4),
        (LEClearResolvingList.opcode, 34 * 8 + 5),
        (LEReadResolvingListSize.opcode, 34 * 8 + 6),
        (LEReadPeerResolvableAddress.opcode, 34 * 8 + 7),
        (LEReadLocalResolvableAddress.opcode, 35 * 8 + 0),
        (LESetAddressResolutionEnable.opcode, 35 * 8 + 1),
        (LESetResolvablePrivateAddressTimeout.opcode, 35 * 8 + 2),
        (LESetPrivacyMode.opcode, 39 * 8 + 2),
        (LESetDataLength.opcode, 33 * 8 + 6),
        (LEReadSuggestedDefaultDataLength.opcode, 33 * 8 + 7),
        (LEWriteSuggestedDefaultDataLength.opcode, 34 * 8 + 0),
        (LEReadMaximumDataLength.opcode, 35 * 8 + 3),
        (LEReadPHY.opcode, 35 * 8 + 4),
        (LESetDefaultPHY.opcode, 35 * 8 + 5),
        (LESetPHY.opcode, 35 * 8 + 6),
        (LESetDefaultSubrate.opcode, 46 * 8 + 0),
        (LESubrateRequest.opcode, 46 * 8 + 1),
        (LESetHostFeature.opcode, 44 * 8 + 1),
        (LEEnhancedReadTransmitPowerLevel.opcode, 44 * 8 + 3),
        (LEReadRemoteTransmitPowerLevel.opcode, 44 * 8 + 4),
        (LESetPathLossReportingParameters.opcode, 44 * 8 + 5),
        (LESetPathLossReportingEnable.opcode, 44 * 8 + 6),
        (LESetTransmitPowerReportingEnable.opcode, 44 * 8 + 7),
        (LESetExtendedAdvertisingParametersV2.opcode, 46 * 8 + 2),
        (LESetAdvertisingParameters.opcode, 25 * 8 + 5),
        (LEReadAdvertisingPhysicalChannelTxPower.opcode, 25 * 8 + 6),
        (LESetAdvertisingData.opcode, 25 * 8 + 7),
        (LESetScanResponseData.opcode, 26 * 8 + 0),
        (LESetAdvertisingEnable.opcode, 26 * 8 + 1),
        (LESetAdvertisingSetRandomAddress.opcode, 36 * 8 + 1),
        (LESetExtendedAdvertisingParameters.opcode, 36 * 8 + 2),
        (LESetExtendedAdvertisingData.opcode, 36 * 8 + 3),
        (LESetExtendedScanResponseData.opcode, 36 * 8 + 4),
        (LESetExtendedAdvertisingEnable.opcode, 36 * 8 + 5),
        (LEReadMaximumAdvertisingDataLength.opcode, 36 * 8 + 6),
        (LEReadNumberOfSupportedAdvertisingSets.opcode, 36 * 8 + 7),
        (LERemoveAdvertisingSet.opcode, 37 * 8 + 0),
        (LEClearAdvertisingSets.opcode, 37 * 8 + 1),
        (LESetPeriodicAdvertisingParameters.opcode, 37 * 8 + 2),
        (LESetPeriodicAdvertisingData.opcode, 37 * 8 + 3),
        (LESetPeriodicAdvertisingEnable.opcode, 37 * 8 + 4),
        (LEPeriodicAdvertisingCreateSync.opcode, 38 * 8 + 0),
        (LEPeriodicAdvertisingCreateSyncCancel.opcode, 38 * 8 + 1),
        (LEPeriodicAdvertisingTerminateSync.opcode, 38 * 8 + 2),
        (LEAddDeviceToPeriodicAdvertiserList.opcode, 38 * 8 + 3),
        (LERemoveDeviceFromPeriodicAdvertiserList.opcode, 38 * 8 + 4),
        (LEClearPeriodicAdvertiserList.opcode, 38 * 8 + 5),
        (LEReadPeriodicAdvertiserListSize.opcode, 38 * 8 + 6),
        (LESetPeriodicAdvertisingReceiveEnable.opcode, 40 * 8 + 5),
        (LEPeriodicAdvertisingSyncTransfer.opcode, 40 * 8 + 6),
        (LEPeriodicAdvertisingSetInfoTransfer.opcode, 40 * 8 + 7),
        (LESetPeriodicAdvertisingSyncTransferParameters.opcode, 41 * 8 + 0),
        (LESetDefaultPeriodicAdvertisingSyncTransferParameters.opcode, 41 * 8 + 1),
        (LESetScanParameters.opcode, 26 * 8 + 2),
        (LESetScanEnable.opcode, 26 * 8 + 3),
        (LESetExtendedScanParameters.opcode, 37 * 8 + 5),
        (LESetExtendedScanEnable.opcode, 37 * 8 + 6),
        (LECreateConnection.opcode, 26 * 8 + 4),
        (LECreateConnectionCancel.opcode, 26 * 8 + 5),
        (LEExtendedCreateConnection.opcode, 37 * 8 + 7),
        (LEReadFilterAcceptListSize.opcode, 26 * 8 + 6),
        (LEClearFilterAcceptList.opcode, 26 * 8 + 7),
        (LEAddDeviceToFilterAcceptList.opcode, 27 * 8 + 0),
        (LERemoveDeviceFromFilterAcceptList.opcode, 27 * 8 + 1),
        (LEConnectionUpdate.opcode, 27 * 8 + 2),
        (LESetHostChannelClassification.opcode, 27 * 8 + 3),
        (LEReadChannelMap.opcode, 27 * 8 + 4),
        (LEReadRemoteFeatures.opcode, 27 * 8 + 5),
        (LERemoteConnectionParameterRequestReply.opcode, 33 * 8 + 4),
        (LERemoteConnectionParameterRequestNegativeReply.opcode, 33 * 8 + 5),
        (LEReadAllLocalSupportedFeatures.opcode, 47 * 8 + 2),
        (LEReadAllRemoteFeatures.opcode, 47 * 8 + 3),
        (LESetHostFeatureV2.opcode, 47 * 8 + 4),
        (LEReadMonitoredAdvertisersListSize.opcode, 48 * 8 + 0),
        (LEFrameSpaceUpdate.opcode, 48 * 8 + 1),
        (LESetResolvablePrivateAddressTimeoutV2.opcode, 48 * 8 + 2),
        (HCIOpcode(rawValue: 0x0401), 0 * 8 + 0),  // Inquiry
        (HCIOpcode(rawValue: 0x0C84), 45 * 8 + 7),  // Set Min Encryption Key Size
        (HCIOpcode(rawValue: 0x208D), 24 * 8 + 7),  // LE CS Set Default Settings
        (HCIOpcode(rawValue: 0x209C), 28 * 8 + 7),  // LE Enable Monitoring Advertisers
    ]

    @Test(arguments: positions)
    func eachCommandHasTheBitOfTheSpecification(_ opcode: HCIOpcode, _ position: Int) {
        var commands = SupportedCommands()
        commands.insert(opcode)
        #expect(commands.contains(octet: position / 8, bit: position % 8))
        #expect(commands.contains(opcode))
        for other in 0..<512 where other != position {
            #expect(!commands.contains(octet: other / 8, bit: other % 8))
        }
    }
}
