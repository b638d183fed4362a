import BLEATT
import BLEByteCoding
import BluetoothTypes
import Testing

/// A PDU's bytes, and the result of decoding and encoding them.
struct Sample: CustomTestStringConvertible, Sendable {
    let name: String
    let bytes: [UInt8]
    let recode: @Sendable ([UInt8]) throws(PacketDecodingError) -> [UInt8]

    var testDescription: String { name }

    init<PDU: ProtocolDataUnit & SendableMetatype>(_ type: PDU.Type, _ bytes: [UInt8]) {
        name = "\(type)"
        self.bytes = bytes
        recode = { bytes throws(PacketDecodingError) in
            let pdu = try PDU(decoding: bytes.rawSpan)
            return PacketBuffer.bytes { pdu.encode(into: &$0) }
        }
    }

    private init(
        name: String,
        _ bytes: [UInt8],
        _ recode: @escaping @Sendable ([UInt8]) throws(PacketDecodingError) -> [UInt8]
    ) {
        self.name = name
        self.bytes = bytes
        self.recode = recode
    }

    /// The same for a PDU that borrows.
    static func borrowing<PDU: ProtocolDataUnit & SendableMetatype & ~Escapable>(
        _ type: PDU.Type,
        _ bytes: [UInt8],
        name: String
    )
        -> Sample
    {
        Sample(name: name, bytes) { bytes throws(PacketDecodingError) in
            let pdu = try PDU(decoding: bytes.rawSpan)
            return PacketBuffer.bytes { pdu.encode(into: &$0) }
        }
    }

    /// Whether the PDU ends with any number of bytes, so that it can be truncated and stays valid.
    var endsInBytes: Bool { Sample.minimumLengths[bytes[0]] != nil }

    /// The minimum lengths of PDUs that end with any number of bytes, by opcode.
    static let minimumLengths: [UInt8: Int] = [
        0x06: 7, 0x0B: 1, 0x0D: 1, 0x0F: 1, 0x12: 3, 0x16: 5, 0x17: 5, 0x1B: 3, 0x1D: 3, 0x21: 5, 0x52: 3, 0xD2: 15,
    ]

    static let all: [Sample] = [
        Sample(ErrorResponse.self, [0x01, 0x0A, 0x03, 0x00, 0x02]),
        Sample(ExchangeMTURequest.self, [0x02, 0x05, 0x02]),
        Sample(ExchangeMTUResponse.self, [0x03, 0xF7, 0x00]),
        Sample(FindInformationRequest.self, [0x04, 0x01, 0x00, 0xFF, 0xFF]),
        .borrowing(
            FindInformationResponse.self,
            [0x05, 0x01, 0x04, 0x00, 0x01, 0x29],
            name: "Find Information Response"
        ),
        .borrowing(
            FindByTypeValueRequest.self,
            [0x06, 0x01, 0x00, 0xFF, 0xFF, 0x00, 0x28, 0x0D, 0x18],
            name: "Find By Type Value Request"
        ),
        .borrowing(FindByTypeValueResponse.self, [0x07, 0x10, 0x00, 0x17, 0x00], name: "Find By Type Value Response"),
        Sample(ReadByTypeRequest.self, [0x08, 0x01, 0x00, 0xFF, 0xFF, 0x03, 0x28]),
        .borrowing(
            ReadByTypeResponse.self,
            [0x09, 0x07, 0x02, 0x00, 0x02, 0x03, 0x00, 0x00, 0x2A],
            name: "Read By Type Response"
        ),
        Sample(ReadRequest.self, [0x0A, 0x03, 0x00]),
        .borrowing(ReadResponse.self, [0x0B, 1, 2, 3], name: "Read Response"),
        Sample(ReadBlobRequest.self, [0x0C, 0x03, 0x00, 0xFF, 0x01]),
        .borrowing(ReadBlobResponse.self, [0x0D, 1], name: "Read Blob Response"),
        .borrowing(ReadMultipleRequest.self, [0x0E, 0x03, 0x00, 0x07, 0x00], name: "Read Multiple Request"),
        .borrowing(ReadMultipleResponse.self, [0x0F, 1, 2, 3], name: "Read Multiple Response"),
        Sample(ReadByGroupTypeRequest.self, [0x10, 0x01, 0x00, 0xFF, 0xFF, 0x00, 0x28]),
        .borrowing(
            ReadByGroupTypeResponse.self,
            [0x11, 0x06, 0x01, 0x00, 0x04, 0x00, 0x01, 0x18],
            name: "Read By Group Type Response"
        ),
        .borrowing(WriteRequest.self, [0x12, 0x07, 0x00, 1, 2, 3], name: "Write Request"),
        Sample(WriteResponse.self, [0x13]),
        .borrowing(PrepareWriteRequest.self, [0x16, 0x07, 0x00, 0x05, 0x00, 1, 2], name: "Prepare Write Request"),
        .borrowing(PrepareWriteResponse.self, [0x17, 0x07, 0x00, 0x05, 0x00, 1, 2], name: "Prepare Write Response"),
        Sample(ExecuteWriteRequest.self, [0x18, 0x01]),
        Sample(ExecuteWriteResponse.self, [0x19]),
        .borrowing(HandleValueNotification.self, [0x1B, 0x03, 0x00, 1], name: "Handle Value Notification"),
        .borrowing(HandleValueIndication.self, [0x1D, 0x03, 0x00, 1], name: "Handle Value Indication"),
        Sample(HandleValueConfirmation.self, [0x1E]),
        .borrowing(
            ReadMultipleVariableRequest.self,
            [0x20, 0x03, 0x00, 0x07, 0x00],
            name: "Read Multiple Variable Request"
        ),
        .borrowing(
            ReadMultipleVariableResponse.self,
            [0x21, 0x01, 0x00, 9, 0x02, 0x00, 8, 7],
            name: "Read Multiple Variable Response"
        ),
        .borrowing(
            MultipleHandleValueNotification.self,
            [0x23, 0x03, 0x00, 0x01, 0x00, 9, 0x05, 0x00, 0x00, 0x00],
            name: "Multiple Handle Value Notification"
        ),
        .borrowing(WriteCommand.self, [0x52, 0x07, 0x00, 1], name: "Write Command"),
        .borrowing(
            SignedWriteCommand.self,
            [0xD2, 0x07, 0x00, 1, 2, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8],
            name: "Signed Write Command"
        ),
    ]
}

@Suite("ATT PDUs")
struct PDUTests {
    @Test("Each PDU is decoded and encoded to the same bytes", arguments: Sample.all)
    func pduIsEncodedToTheBytesThatWereDecoded(sample: Sample) throws {
        #expect(try sample.recode(sample.bytes) == sample.bytes)
    }

    @Test func everyOpcodeHasASampleAndEveryRequestAResponse() {
        #expect(Set(Sample.all.compactMap { ATTOpcode(rawValue: $0.bytes[0]) }) == Set(ATTOpcode.allCases))
        for opcode in ATTOpcode.allCases where opcode.kind == .request {
            #expect(opcode.response?.kind == .response)
        }
    }

    @Test(
        "A PDU of fixed length that is truncated or has one more byte is an error",
        arguments: Sample.all.filter { !$0.endsInBytes }
    )
    func pduOfFixedLengthWithAnotherLengthIsAnError(sample: Sample) {
        for length in sample.bytes.indices {
            #expect(throws: PacketDecodingError.self) { try sample.recode(Array(sample.bytes.prefix(length))) }
        }
        #expect(throws: PacketDecodingError.self) { try sample.recode(sample.bytes + [0]) }
    }

    @Test(
        "A PDU that ends with a value is an error if it is truncated before the value",
        arguments: Sample.all.filter { $0.endsInBytes }
    )
    func pduTruncatedBeforeItsValueIsAnError(sample: Sample) throws {
        let minimum = try #require(Sample.minimumLengths[sample.bytes[0]])
        for length in sample.bytes.indices {
            let cut = Array(sample.bytes.prefix(length))
            if length < minimum {
                #expect(throws: PacketDecodingError.self) { try sample.recode(cut) }
            } else {
                #expect(try sample.recode(cut) == cut)
            }
        }
    }

    @Test("A flipped bit is an error or makes another valid PDU, and never traps", arguments: Sample.all)
    func flippedBitIsAnErrorOrMakesAnotherValidPDU(sample: Sample) {
        for position in sample.bytes.indices {
            for bit in 0..<8 {
                var bytes = sample.bytes
                bytes[position] ^= 1 << UInt8(bit)
                let again = try? sample.recode(bytes)
                #expect(again == nil || again == bytes)
                if position == 0 { #expect(again == nil, "another opcode is another PDU") }
            }
        }
    }

    @Test(
        arguments: [
            [0x05, 0x01, 1, 0, 2], [0x05, 0x03, 1, 0, 2, 0], [0x05, 0x02, 1, 0, 2, 0], [0x05, 0x01],
            [0x07], [0x07, 1, 0, 2], [0x09, 0x00], [0x09, 0x01, 1], [0x09, 0x05, 1, 0, 2], [0x09, 0x02],
            [0x11, 0x03, 1, 2, 3],
            [0x11, 0x06, 1, 0, 2, 0, 3], [0x0E, 1, 0], [0x20, 1, 0], [0x23, 1, 0, 0, 0], [0x23, 1, 0, 9, 0, 1],
            [0x18, 0x02],
            [0x08, 1, 0, 2, 0, 1, 2, 3, 4], [0x10, 1, 0, 2, 0, 1], [0xD2, 1, 0, 1, 2, 3],
        ] as [[UInt8]]
    )
    func pduWithAnImpossibleLengthIsAnError(bytes: [UInt8]) throws {
        let sample = try #require(Sample.all.first { $0.bytes[0] == bytes[0] })
        #expect((try? sample.recode(bytes)) == nil)
    }

    @Test("A list response ends at the first entry that does not fit or has another length")
    func listEndsAtTheFirstEntryThatDoesNotFitOrHasAnotherLength() {
        func write(_ values: [[UInt8]], mtu: Int) -> [UInt8] {
            PacketBuffer.bytes { buffer in
                var writer = ListResponseWriter(.readByTypeResponse, mtu: mtu, in: &buffer)
                for (index, value) in values.enumerated() {
                    guard writer.append(handle: AttributeHandle(UInt16(index + 1)), value: value.rawSpan, to: &buffer)
                    else {
                        break
                    }
                }
                if writer.isEmpty { writer.discard(from: &buffer) }
            }
        }
        #expect(write([[9], [8], [7, 7]], mtu: 23) == [0x09, 0x03, 1, 0, 9, 2, 0, 8])
        #expect(write([[9], [8], [7]], mtu: 8) == [0x09, 0x03, 1, 0, 9, 2, 0, 8])
        #expect(write([Array(repeating: 1, count: 40)], mtu: 23).count == 23)
        #expect(write([Array(repeating: 1, count: 400)], mtu: 517).count == 257, "an entry has at most 255 bytes")
        #expect(write([], mtu: 23).isEmpty)
        let long = [UInt8](repeating: 1, count: 300)
        #expect(write([long, long], mtu: 517).count == 2 + 255 + 255)
        #expect(write([long, Array(long.prefix(253))], mtu: 517).count == 2 + 255, "though cut, they differ in length")
        #expect(write([Array(long.prefix(253)), long], mtu: 517).count == 2 + 255)
        #expect(write([[], []], mtu: 23) == [0x09, 0x02, 1, 0, 2, 0])
    }

    @Test("A list of groups holds both handles of each, and the first value is cut to ATT_MTU - 6 or 251")
    func groupListHoldsBothHandlesAndCutsTheFirstValue() {
        func write(_ values: [[UInt8]], mtu: Int) -> [UInt8] {
            PacketBuffer.bytes { buffer in
                var writer = ListResponseWriter(.readByGroupTypeResponse, mtu: mtu, in: &buffer)
                for value in values {
                    guard writer.append(handle: 0x0102, end: 0x0304, value: value.rawSpan, to: &buffer) else { break }
                }
            }
        }
        #expect(write([[9, 8], [7, 6]], mtu: 23) == [0x11, 6, 2, 1, 4, 3, 9, 8, 2, 1, 4, 3, 7, 6])
        #expect(write([[9, 8], [7, 6]], mtu: 13) == [0x11, 6, 2, 1, 4, 3, 9, 8])
        let long = [UInt8](repeating: 1, count: 300)
        #expect(write([long], mtu: 23) == [0x11, 21, 2, 1, 4, 3] + long.prefix(17))
        #expect(write([long], mtu: 517) == [0x11, 255, 2, 1, 4, 3] + long.prefix(251))
    }
}
