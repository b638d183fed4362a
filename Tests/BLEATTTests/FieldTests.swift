import BLEATT
import BLEByteCoding
import BluetoothTypes
import Testing

/// The fields of a PDU as text, with all list entries.
private func fields(_ bytes: [UInt8]) throws(PacketDecodingError) -> String {
    func hexadecimal(_ bytes: RawSpan) -> String { [UInt8](copying: bytes).hexadecimal }
    func handles(_ iterator: consuming HandleIterator) -> String {
        var text = ""
        while let handle = iterator.next() { text += " \(handle)" }
        return text
    }
    let span = bytes.rawSpan
    guard let first = bytes.first else { throw .truncated(needed: 1, available: 0) }
    guard let opcode = ATTOpcode(rawValue: first) else { throw .invalidValue(UInt64(first), field: "opcode") }
    switch opcode {
    case .errorResponse:
        let pdu = try ErrorResponse(decoding: span)
        return "request \(pdu.requestOpcode) handle \(pdu.handle) error \(pdu.error.rawValue)"
    case .exchangeMTURequest: return "MTU \(try ExchangeMTURequest(decoding: span).clientReceiveMTU)"
    case .exchangeMTUResponse: return "MTU \(try ExchangeMTUResponse(decoding: span).serverReceiveMTU)"
    case .findInformationRequest:
        let range = try FindInformationRequest(decoding: span).range
        return "\(range.start) \(range.end)"
    case .findInformationResponse:
        var entries = try FindInformationResponse(decoding: span).entries
        var text = "types"
        while let entry = entries.next() { text += " \(entry.handle) \(entry.type)" }
        return text
    case .findByTypeValueRequest:
        let pdu = try FindByTypeValueRequest(decoding: span)
        return "\(pdu.range.start) \(pdu.range.end) type \(BluetoothUUID(pdu.type)) value \(hexadecimal(pdu.value))"
    case .findByTypeValueResponse:
        var entries = try FindByTypeValueResponse(decoding: span).entries
        var text = "groups"
        while let entry = entries.next() { text += " \(entry.handle) \(entry.endGroupHandle)" }
        return text
    case .readByTypeRequest:
        let pdu = try ReadByTypeRequest(decoding: span)
        return "\(pdu.range.start) \(pdu.range.end) type \(pdu.type)"
    case .readByTypeResponse:
        var entries = try ReadByTypeResponse(decoding: span).entries
        var text = "values"
        while let entry = entries.next() { text += " \(entry.handle) \(hexadecimal(entry.value))" }
        return text
    case .readRequest: return "\(try ReadRequest(decoding: span).handle)"
    case .readResponse: return hexadecimal(try ReadResponse(decoding: span).value)
    case .readBlobRequest:
        let pdu = try ReadBlobRequest(decoding: span)
        return "\(pdu.handle) offset \(pdu.offset)"
    case .readBlobResponse: return hexadecimal(try ReadBlobResponse(decoding: span).value)
    case .readMultipleRequest: return "handles" + handles(try ReadMultipleRequest(decoding: span).handles)
    case .readMultipleResponse: return hexadecimal(try ReadMultipleResponse(decoding: span).values)
    case .readByGroupTypeRequest:
        let pdu = try ReadByGroupTypeRequest(decoding: span)
        return "\(pdu.range.start) \(pdu.range.end) type \(pdu.groupType)"
    case .readByGroupTypeResponse:
        var entries = try ReadByGroupTypeResponse(decoding: span).entries
        var text = "groups"
        while let entry = entries.next() {
            text += " \(entry.handle) \(entry.endGroupHandle) \(hexadecimal(entry.value))"
        }
        return text
    case .writeRequest:
        let pdu = try WriteRequest(decoding: span)
        return "\(pdu.handle) \(hexadecimal(pdu.value))"
    case .writeResponse:
        _ = try WriteResponse(decoding: span)
        return "written"
    case .prepareWriteRequest:
        let pdu = try PrepareWriteRequest(decoding: span)
        return "\(pdu.handle) offset \(pdu.offset) \(hexadecimal(pdu.partValue))"
    case .prepareWriteResponse:
        let pdu = try PrepareWriteResponse(decoding: span)
        return "\(pdu.handle) offset \(pdu.offset) \(hexadecimal(pdu.partValue))"
    case .executeWriteRequest: return "\(try ExecuteWriteRequest(decoding: span).flags)"
    case .executeWriteResponse:
        _ = try ExecuteWriteResponse(decoding: span)
        return "executed"
    case .handleValueNotification:
        let pdu = try HandleValueNotification(decoding: span)
        return "\(pdu.handle) \(hexadecimal(pdu.value))"
    case .handleValueIndication:
        let pdu = try HandleValueIndication(decoding: span)
        return "\(pdu.handle) \(hexadecimal(pdu.value))"
    case .handleValueConfirmation:
        _ = try HandleValueConfirmation(decoding: span)
        return "confirmed"
    case .readMultipleVariableRequest:
        return "handles" + handles(try ReadMultipleVariableRequest(decoding: span).handles)
    case .readMultipleVariableResponse:
        var entries = try ReadMultipleVariableResponse(decoding: span).entries
        var text = "values"
        while let entry = entries.next() { text += " \(entry.length) \(hexadecimal(entry.value))" }
        return text
    case .multipleHandleValueNotification:
        var entries = try MultipleHandleValueNotification(decoding: span).entries
        var text = "values"
        while let entry = entries.next() { text += " \(entry.handle) \(hexadecimal(entry.value))" }
        return text
    case .writeCommand:
        let pdu = try WriteCommand(decoding: span)
        return "\(pdu.handle) \(hexadecimal(pdu.value))"
    case .signedWriteCommand:
        let pdu = try SignedWriteCommand(decoding: span)
        return "\(pdu.handle) \(hexadecimal(pdu.value)) signed \(hexadecimal(pdu.signature))"
    }
}

private let long: [UInt8] = [
    0xFF, 0xEE, 0xDD, 0xCC, 0xBB, 0xAA, 0x99, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x00,
]

@Suite("The fields of ATT PDUs")
struct FieldTests {
    @Test(
        "Each field is read at the place that the specification defines",
        arguments: [
            ("010a030002", "request 10 handle 0x0003 error 2"), ("013fffff80", "request 63 handle 0xFFFF error 128"),
            ("020502", "MTU 517"), ("03f700", "MTU 247"), ("0401000a00", "0x0001 0x000A"),
            ("0501040001290500022a", "types 0x0004 2901 0x0005 2A02"),
            (
                "05020400ffeeddccbbaa99887766554433221100",
                "types 0x0004 00112233-4455-6677-8899-AABBCCDDEEFF"
            ),
            ("060100ffff00280d18", "0x0001 0xFFFF type 2800 value 0d18"),
            ("060100ffff0028", "0x0001 0xFFFF type 2800 value "),
            ("071000170020002000", "groups 0x0010 0x0017 0x0020 0x0020"), ("080100ffff0328", "0x0001 0xFFFF type 2803"),
            (
                "080100ffffffeeddccbbaa99887766554433221100",
                "0x0001 0xFFFF type 00112233-4455-6677-8899-AABBCCDDEEFF"
            ),
            ("09030300aa0500bb", "values 0x0003 aa 0x0005 bb"), ("090203000500", "values 0x0003  0x0005 "),
            ("0a0300", "0x0003"), ("0b", ""), ("0b0102", "0102"), ("0c0300ff01", "0x0003 offset 511"), ("0d", ""),
            ("0e03000700ffff", "handles 0x0003 0x0007 0xFFFF"), ("0f0102", "0102"),
            ("100100ffff0028", "0x0001 0xFFFF type 2800"),
            ("110601000400001805000900011a", "groups 0x0001 0x0004 0018 0x0005 0x0009 011a"),
            ("11040100040005000900", "groups 0x0001 0x0004  0x0005 0x0009 "),
            ("12070001", "0x0007 01"), ("120700", "0x0007 "), ("13", "written"),
            ("16070005000102", "0x0007 offset 5 0102"), ("17070000 01", "0x0007 offset 256 "),
            ("1800", "cancelAll"), ("1801", "writeAll"), ("19", "executed"), ("1b030001", "0x0003 01"),
            ("1d0300", "0x0003 "), ("1e", "confirmed"), ("2003000700", "handles 0x0003 0x0007"),
            ("210100090000", "values 1 09 0 "), ("21ffff0908", "values 65535 0908"),
            ("230300010009050000 00", "values 0x0003 09 0x0005 "), ("52070001", "0x0007 01"),
            ("d2070001000000000102030405060708", "0x0007 01 signed 000000000102030405060708"),
        ]
    )
    func fieldsAreReadAtTheirPlaceInTheSpecification(hexadecimal: String, text: String) throws {
        let bytes = try #require([UInt8](hexadecimal: hexadecimal.filter { $0 != " " }))
        #expect(try fields(bytes) == text)
    }

    @Test("PDUs of fixed fields have the bytes of the specification")
    func pdusOfFixedFieldsHaveTheBytesOfTheSpecification() {
        func bytes(_ pdu: some ProtocolDataUnit) -> [UInt8] { PacketBuffer.bytes { pdu.encode(into: &$0) } }
        let range = HandleRange(start: 0x0102, end: 0x0304)
        let uuid = BluetoothUUID(0x0011_2233_4455_6677_8899_AABB_CCDD_EEFF as UInt128)
        #expect(
            bytes(ErrorResponse(requestOpcode: 0x0A, handle: 0x0102, error: .attributeNotFound)) == [1, 10, 2, 1, 10]
        )
        #expect(bytes(ExchangeMTURequest(clientReceiveMTU: 0x0205)) == [0x02, 0x05, 0x02])
        #expect(bytes(ExchangeMTUResponse(serverReceiveMTU: 0x00F7)) == [0x03, 0xF7, 0x00])
        #expect(bytes(FindInformationRequest(range: range)) == [0x04, 2, 1, 4, 3])
        #expect(bytes(ReadByTypeRequest(range: range, type: "2803")) == [0x08, 2, 1, 4, 3, 0x03, 0x28])
        #expect(bytes(ReadByTypeRequest(range: range, type: uuid)) == [0x08, 2, 1, 4, 3] + long)
        #expect(bytes(ReadByGroupTypeRequest(range: range, groupType: "2800")) == [0x10, 2, 1, 4, 3, 0x00, 0x28])
        #expect(bytes(ReadRequest(handle: 0x0102)) == [0x0A, 2, 1])
        #expect(bytes(ReadBlobRequest(handle: 0x0102, offset: 0x0304)) == [0x0C, 2, 1, 4, 3])
        #expect(bytes(ExecuteWriteRequest(flags: .cancelAll)) == [0x18, 0x00])
        #expect(bytes(ExecuteWriteRequest(flags: .writeAll)) == [0x18, 0x01])
        #expect(bytes(WriteResponse()) == [0x13] && bytes(ExecuteWriteResponse()) == [0x19])
        #expect(bytes(HandleValueConfirmation()) == [0x1E])
    }

    @Test("PDUs with a value have the bytes of the specification")
    func pdusWithAValueHaveTheBytesOfTheSpecification() {
        func bytes(_ pdu: borrowing some ProtocolDataUnit & ~Escapable) -> [UInt8] {
            var buffer = PacketBuffer()
            pdu.encode(into: &buffer)
            return [UInt8](copying: buffer.bytes)
        }
        let storage: [UInt8] = [7, 8]
        let value = storage.rawSpan
        let signatureBytes = [UInt8](1...12)
        let signature = signatureBytes.rawSpan
        let handle = AttributeHandle(0x0102)
        let find = FindByTypeValueRequest(range: .all, type: 0x2800, value: value)
        #expect(bytes(find) == [0x06, 1, 0, 0xFF, 0xFF, 0x00, 0x28, 7, 8])
        #expect(bytes(ReadResponse(value: value)) == [0x0B, 7, 8])
        #expect(bytes(ReadBlobResponse(value: value)) == [0x0D, 7, 8])
        #expect(bytes(ReadMultipleResponse(values: value)) == [0x0F, 7, 8])
        #expect(bytes(WriteRequest(handle: handle, value: value)) == [0x12, 2, 1, 7, 8])
        #expect(bytes(PrepareWriteRequest(handle: handle, offset: 5, partValue: value)) == [0x16, 2, 1, 5, 0, 7, 8])
        #expect(bytes(PrepareWriteResponse(handle: handle, offset: 5, partValue: value)) == [0x17, 2, 1, 5, 0, 7, 8])
        #expect(bytes(HandleValueNotification(handle: handle, value: value)) == [0x1B, 2, 1, 7, 8])
        #expect(bytes(HandleValueIndication(handle: handle, value: value)) == [0x1D, 2, 1, 7, 8])
        #expect(bytes(WriteCommand(handle: handle, value: value)) == [0x52, 2, 1, 7, 8])
        #expect(
            bytes(SignedWriteCommand(handle: handle, value: value, signature: signature))
                == [0xD2, 2, 1, 7, 8] + Array(1...12)
        )
        #expect(
            PacketBuffer.bytes { ReadMultipleRequest.encode([0x0102, 0x0304], into: &$0) } == [0x0E, 2, 1, 4, 3]
        )
        #expect(
            PacketBuffer.bytes { ReadMultipleVariableRequest.encode([0x0102, 0x0304], into: &$0) }
                == [0x20, 2, 1, 4, 3]
        )
    }

    @Test("Every truncated PDU and every flipped bit is decoded or reported as an error", arguments: Sample.all)
    func truncatedOrFlippedPDUIsDecodedOrReportedAsAnError(sample: Sample) throws {
        _ = try fields(sample.bytes)
        for length in sample.bytes.indices {
            let cut = Array(sample.bytes.prefix(length))
            // A PDU that decodes here is also encoded again there.
            #expect(((try? fields(cut)) == nil) == ((try? sample.recode(cut)) == nil))
        }
        for bit in 0..<sample.bytes.count * 8 {
            var bytes = sample.bytes
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            guard bytes[0] == sample.bytes[0] else {
                #expect((try? sample.recode(bytes)) == nil, "another opcode is another PDU")
                _ = try? fields(bytes)
                continue
            }
            #expect(((try? fields(bytes)) == nil) == ((try? sample.recode(bytes)) == nil))
        }
    }

    @Test(
        "PDUs of fixed length must have exactly that length",
        arguments: ["010a030002", "020502", "03f700", "040100ffff", "0a0300", "0c0300ff01", "13", "1801", "19", "1e"]
    )
    func pduOfFixedLengthHasExactlyThatLength(hexadecimal: String) throws {
        let bytes = try #require([UInt8](hexadecimal: hexadecimal))
        _ = try fields(bytes)
        var failure: PacketDecodingError?
        do throws(PacketDecodingError) { _ = try fields(bytes + [0]) } catch { failure = error }
        #expect(failure == .trailingBytes(count: 1))
        for length in bytes.indices { #expect((try? fields(Array(bytes.prefix(length)))) == nil) }
    }

    @Test(
        "Every length field of a list, with every length of the rest, is a list or an error",
        arguments: [ATTOpcode.readByTypeResponse, .readByGroupTypeResponse, .findInformationResponse]
    )
    func everyLengthOfAListIsAListOrAnError(opcode: ATTOpcode) {
        let minimum = opcode == .readByGroupTypeResponse ? 4 : 2
        for length in UInt8.min...UInt8.max {
            for count in [0, 1, 2, 3, 4, 6, 18, 36, 254, 255, 256, 510] {
                let bytes = [opcode.rawValue, length] + [UInt8](repeating: 1, count: count)
                let entry = opcode != .findInformationResponse ? Int(length) : [1: 4, 2: 18][length] ?? 0
                let isList = entry >= minimum && count > 0 && count.isMultiple(of: entry)
                #expect(((try? fields(bytes)) != nil) == isList, "length \(length), \(count) bytes")
            }
        }
    }
}
