import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@Suite("An ISO data packet")
struct ISOPacketTests {
    /// One packet of each boundary flag, with and without a time stamp.
    static let packets = [
        "60400a00" + "04030201" + "0605" + "0500" + "aabb",
        "60000600" + "0605" + "0500" + "aabb",
        "60100200" + "ccdd",
        "60300100" + "ee",
        "60600900" + "04030201" + "ffff" + "0180" + "aa",
        "60200400" + "0000" + "0000",
    ]

    @Test func packetWithATimeStampIsDecoded() throws {
        let packet = bytes("60400a0004030201" + "06050500aabb")
        let decoded = try ISOPacket(decoding: packet.span.bytes)
        #expect(
            decoded.header
                == ISOHeader(
                    connectionHandle: 0x0060,
                    packetBoundaryFlag: .first,
                    hasTimeStamp: true,
                    dataLoadLength: 10
                )
        )
        #expect(
            decoded.loadHeader
                == ISODataLoadHeader(timeStamp: 0x0102_0304, packetSequenceNumber: 0x0506, sduLength: 5)
        )
        #expect([UInt8](copying: decoded.payload) == [0xAA, 0xBB])
    }

    @Test(arguments: packets)
    func decodedPacketIsEncodedToTheSameBytes(_ sample: String) throws {
        let packet = bytes(sample)
        #expect(try reencoded(packet).hexadecimal == sample)
    }

    @Test(arguments: packets)
    func truncatedOrOverlongPacketIsRefused(_ sample: String) {
        let packet = bytes(sample)
        for count in 0..<packet.count {
            #expect(throws: PacketDecodingError.self) { try reencoded(Array(packet.prefix(count))) }
        }
        #expect(throws: PacketDecodingError.trailingBytes(count: 1)) { try reencoded(packet + [0]) }
    }

    @Test(arguments: packets)
    func packetWithAFlippedBitIsRefusedOrKeepsItsLength(_ sample: String) {
        for flipped in bitFlips(of: bytes(sample)) {
            guard let again = try? reencoded(flipped) else { continue }
            #expect(again.count == flipped.count)
        }
    }

    @Test func loadThatIsShorterThanItsFieldsIsRefused() {
        #expect(throws: PacketDecodingError.truncated(needed: 2, available: 1)) {
            try reencoded(bytes("60200300" + "060500"))
        }
        #expect(throws: PacketDecodingError.truncated(needed: 4, available: 3)) {
            try reencoded(bytes("60600300" + "060500"))
        }
    }

    @Test(
        arguments: [(0x00, .valid), (0x40, .possiblyInvalid), (0x80, .lost), (0xC0, .reserved)]
            as [(UInt8, ISOPacketStatus)]
    )
    func statusIsInTheUpperTwoBitsOfTheLength(_ bits: UInt8, _ status: ISOPacketStatus) throws {
        let packet = bytes("60200400" + "000034") + [bits | 0x01]
        let decoded = try ISOPacket(decoding: packet.span.bytes)
        #expect(decoded.loadHeader?.packetStatus == status)
        #expect(decoded.loadHeader?.sduLength == 0x0134)
    }

    @Test func reservedBitsAreIgnored() throws {
        let packet = bytes("60a004c0" + "00003431")
        let decoded = try ISOPacket(decoding: packet.span.bytes)
        #expect(decoded.header.dataLoadLength == 4)
        #expect(decoded.loadHeader?.sduLength == 0x0134)
    }

    @Test(arguments: packets)
    func streamIsSplitIntoPacketsByTheirLength(_ sample: String) throws {
        let packet = bytes("05" + sample)
        #expect(try PacketType.packetLength(atStartOf: (packet + [5]).span.bytes) == packet.count)
    }

    private func reencoded(_ packet: [UInt8]) throws(PacketDecodingError) -> [UInt8] {
        let decoded = try ISOPacket(decoding: packet.span.bytes)
        return PacketBuffer.bytes { buffer in
            let header = decoded.header
            if let loadHeader = decoded.loadHeader {
                ISOPacket.encodeStart(
                    of: loadHeader,
                    on: header.connectionHandle,
                    isComplete: header.packetBoundaryFlag == .complete,
                    fragment: decoded.payload,
                    into: &buffer
                )
            } else {
                ISOPacket.encodeContinuation(
                    on: header.connectionHandle,
                    isLast: header.packetBoundaryFlag == .last,
                    fragment: decoded.payload,
                    into: &buffer
                )
            }
        }
    }
}
