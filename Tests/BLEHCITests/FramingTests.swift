import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@Suite("Framing")
struct FramingTests {
    static let streams: [(String, Int)] = [
        ("01030c00", 4),
        ("01012008" + "ffffffffffffffff", 12),
        ("02402004000102", 9),
        ("0240200001", 5 + 256),
        ("03400003010203", 7),
        ("040e0401030c00", 7),
        ("0540000240", 5 + 2),
        ("0540000140010203", 5 + 1),
    ]

    @Test(arguments: streams)
    func packetLengthIsKnownOnceTheHeaderHasArrived(_ hexadecimal: String, _ length: Int) throws {
        let stream = bytes(hexadecimal)
        let type = try #require(PacketType(rawValue: stream[0]))
        for count in 0...stream.count {
            let expected = count < 1 + type.headerLength ? nil : length
            #expect(try PacketType.packetLength(atStartOf: stream.span.bytes.extracting(first: count)) == expected)
        }
    }

    @Test(arguments: [0x00, 0x06, 0x10, 0xFF] as [UInt8])
    func byteThatIsNoPacketIndicatorFails(_ indicator: UInt8) {
        #expect(throws: PacketDecodingError.invalidValue(UInt64(indicator), field: "HCI packet indicator")) {
            _ = try PacketType.packetLength(atStartOf: [indicator, 0, 0, 0, 0].span.bytes)
        }
    }

    @Test func aclPacketKeepsHandleFlagsAndDataApart() throws {
        let packet = bytes("40200500" + "0100040007")
        let acl = try ACLPacket(decoding: packet.span.bytes)
        #expect(
            acl.header
                == ACLHeader(connectionHandle: 0x0040, packetBoundaryFlag: .firstFlushable, dataTotalLength: 5)
        )
        #expect([UInt8](copying: acl.payload) == bytes("0100040007"))
        let broadcast = bytes("ff5e0000")
        #expect(
            try ACLPacket(decoding: broadcast.span.bytes).header
                == ACLHeader(connectionHandle: 0x0EFF, packetBoundaryFlag: .continuing, broadcastFlag: .brEdrBroadcast)
        )
    }

    @Test func aclHeaderIsWrittenInFrontOfTheContent() {
        let packet = PacketBuffer.bytes {
            $0.append([1, 2, 3])
            ACLHeader(connectionHandle: 0x0041, packetBoundaryFlag: .continuing).prepend(to: &$0)
        }
        #expect(packet.hexadecimal == "41100300010203")
    }

    @Test(arguments: [UInt16](0..<16))
    func aclHeaderKeepsEveryFlag(_ flags: UInt16) throws {
        let word = flags << 12 | 0x0ABC
        let packet = PacketBuffer.bytes {
            $0.append(word)
            $0.append(UInt16(0))
        }
        let header = try ACLPacket(decoding: packet.span.bytes).header
        #expect(PacketBuffer.bytes { header.encode(into: &$0) } == packet)
        #expect(PacketBuffer.bytes { header.prepend(to: &$0) } == packet)
    }

    @Test func aclPacketOfAnotherLengthIsRefused() {
        let packet = bytes("40200500" + "0100040007")
        for count in 0..<packet.count {
            #expect(throws: PacketDecodingError.self) {
                _ = try ACLPacket(decoding: packet.span.bytes.extracting(first: count)).header
            }
        }
        #expect(throws: PacketDecodingError.trailingBytes(count: 1)) {
            _ = try ACLPacket(decoding: (packet + [0]).span.bytes).header
        }
    }

    @Test func commandHeaderIsReadAsItIsWritten() throws {
        let header = CommandHeader(opcode: LERand.opcode, parameterTotalLength: 0)
        let packet = PacketBuffer.bytes { header.encode(into: &$0) }
        #expect(packet.hexadecimal == "182000")
        #expect(try CommandPacket(decoding: packet.span.bytes).header == header)
    }
}

@Suite("An error code")
struct ErrorCodeTests {
    @Test func errorCodeIsNamedAsInTheSpecificationOrByNumber() {
        #expect(HCIErrorCode.success.description == "Success")
        #expect(HCIErrorCode.connectionTimeout.description == "Connection Timeout")
        #expect(HCIErrorCode.differentTransactionCollision.description == "Different Transaction Collision")
        #expect(HCIErrorCode.insufficientSecurity.description == "Insufficient Security")
        #expect(HCIErrorCode.reservedSlotViolation.description == "Reserved Slot Violation")
        #expect(
            HCIErrorCode.connectionTerminatedDueToMICFailure.description == "Connection Terminated due to MIC Failure"
        )
        #expect(HCIErrorCode.tooEarly.description == "Too Early")
        #expect(HCIErrorCode.insufficientChannels.description == "Insufficient Channels")
        #expect(HCIErrorCode.insufficientChannels.rawValue == 0x48)
        #expect(HCIErrorCode(rawValue: 0x2B).description == "Error 0x2B")
        #expect(HCIErrorCode(rawValue: 0x3F).description == "Error 0x3F")
        #expect(HCIErrorCode(rawValue: 0x49).description == "Error 0x49")
        #expect(HCIErrorCode(rawValue: 0xFF).description == "Error 0xFF")
    }
}

@Suite("Versions, PHYs and channel maps")
struct LinkValueTests {
    @Test func versionsAndPHYsHaveDescriptions() {
        #expect([CoreVersion.v40, .v42, .v50, .v54].map(\.description) == ["4.0", "4.2", "5.0", "5.4"])
        #expect([CoreVersion.v60, .v61].map(\.description) == ["6.0", "6.1"])
        #expect(CoreVersion(rawValue: 0x7F).description == "(127)")
        #expect([PHY.none, .le1M, .le2M, .leCoded].map(\.description) == ["none", "LE 1M", "LE 2M", "LE Coded"])
        #expect(PHY(rawValue: 9).description == "PHY 9")
    }

    @Test func featurePagesHaveAllBitsAndPage0() {
        let pages = LEFeaturePages([0x01, 0x00, 0x00, 0x00, 0x00, 0x24, 0x01, 0x80, 0x02])
        #expect(pages.bytes.count == 248)
        #expect(
            pages.page0 == [
                .encryption, .decisionBasedAdvertisingFiltering, .unsegmentedFramedMode,
                .channelSoundingToneQualityIndication, .llExtendedFeatureSet,
            ]
        )
        #expect(pages.contains(bit: 0) && pages.contains(bit: 63) && pages.contains(bit: 65))
        #expect(!pages.contains(bit: 1) && !pages.contains(bit: 64))
        #expect(!pages.contains(bit: -1) && !pages.contains(bit: 1984))
        #expect(LEFeaturePages([UInt8](repeating: 1, count: 300)).bytes.count == 248)
    }

    @Test func propertiesOfDecisionPDUsHaveTheBitsOfTheSpecification() {
        let properties: AdvertisingEventProperties = [.useDecisionPDUs, .includeADIInDecisionPDUs]
        #expect(properties.rawValue == 0x0280)
        #expect(AdvertisingEventProperties.includeAdvAInDecisionPDUs.rawValue == 0x0100)
    }

    @Test func channelMapContainsDataChannelsOnly() {
        #expect(ChannelMap.all.contains(36))
        #expect(!ChannelMap.all.contains(37))
        #expect(!ChannelMap(rawValue: 0).contains(-1))
    }
}
