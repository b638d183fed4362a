import BLEATT
import BLEByteCoding
import BluetoothTypes
import Testing

/// The entries of a PDU's list as bytes; nil if the PDU holds no list.
private func entries(_ bytes: [UInt8]) throws(PacketDecodingError) -> [[UInt8]]? {
    var entries: [[UInt8]] = []
    func octets(_ handle: AttributeHandle) -> [UInt8] { octets(handle.rawValue) }
    func octets(_ value: UInt16) -> [UInt8] { [UInt8(value & 0xFF), UInt8(value >> 8)] }
    switch bytes.first.flatMap(ATTOpcode.init) {
    case .findInformationResponse:
        var list = try FindInformationResponse(decoding: bytes.rawSpan).entries
        while let entry = list.next() {
            entries.append(octets(entry.handle) + PacketBuffer.bytes { entry.type.encode(into: &$0) })
        }
    case .findByTypeValueResponse:
        var list = try FindByTypeValueResponse(decoding: bytes.rawSpan).entries
        while let entry = list.next() { entries.append(octets(entry.handle) + octets(entry.endGroupHandle)) }
    case .readByTypeResponse:
        var list = try ReadByTypeResponse(decoding: bytes.rawSpan).entries
        while let entry = list.next() { entries.append(octets(entry.handle) + [UInt8](copying: entry.value)) }
    case .readByGroupTypeResponse:
        var list = try ReadByGroupTypeResponse(decoding: bytes.rawSpan).entries
        while let entry = list.next() {
            entries.append(octets(entry.handle) + octets(entry.endGroupHandle) + [UInt8](copying: entry.value))
        }
    case .readMultipleRequest:
        var list = try ReadMultipleRequest(decoding: bytes.rawSpan).handles
        while let handle = list.next() { entries.append(octets(handle)) }
    case .readMultipleVariableRequest:
        var list = try ReadMultipleVariableRequest(decoding: bytes.rawSpan).handles
        while let handle = list.next() { entries.append(octets(handle)) }
    case .readMultipleVariableResponse:
        var list = try ReadMultipleVariableResponse(decoding: bytes.rawSpan).entries
        while let entry = list.next() { entries.append(octets(entry.length) + [UInt8](copying: entry.value)) }
    case .multipleHandleValueNotification:
        var list = try MultipleHandleValueNotification(decoding: bytes.rawSpan).entries
        while let entry = list.next() {
            let value = [UInt8](copying: entry.value)
            entries.append(octets(entry.handle) + octets(UInt16(value.count)) + value)
        }
    default: return nil
    }
    return entries
}

/// The number of bytes before a list: the opcode, and the length or the format if there is one.
private func headerLength(_ bytes: [UInt8]) -> Int {
    [0x05, 0x09, 0x11].contains(bytes[0]) ? 2 : 1
}

@Suite("Lists in ATT PDUs")
struct ListTests {
    static let samples: [[[UInt8]]] = [
        [[0x05, 0x01], [0x04, 0x00, 0x01, 0x29], [0x05, 0x00, 0x02, 0x29]],
        [[0x05, 0x02], [0x04, 0x00] + Array(0..<16), [0x05, 0x00] + Array(16..<32)],
        [[0x07], [0x10, 0x00, 0x17, 0x00], [0x20, 0x00, 0xFF, 0xFF]],
        [[0x09, 0x02], [0x01, 0x00], [0x02, 0x00]],
        [[0x09, 0x07], [0x02, 0x00, 0x02, 0x03, 0x00, 0x00, 0x2A], [0x04, 0x00, 0x02, 0x05, 0x00, 0x01, 0x2A]],
        [[0x11, 0x04], [0x01, 0x00, 0x04, 0x00]],
        [[0x11, 0x06], [0x01, 0x00, 0x04, 0x00, 0x00, 0x18], [0x05, 0x00, 0x09, 0x00, 0x01, 0x18]],
        [[0x0E], [0x03, 0x00], [0x07, 0x00], [0x09, 0x00]],
        [[0x20], [0x03, 0x00], [0x07, 0x00]],
        [[0x21], [0x02, 0x00, 8, 7], [0x00, 0x00], [0x01, 0x00, 1]],
        [[0x23], [0x03, 0x00, 0x01, 0x00, 9], [0x05, 0x00, 0x00, 0x00], [0x06, 0x00, 0x02, 0x00, 1, 2]],
    ]

    @Test("Lists are iterated entry by entry", arguments: samples)
    func listIsIteratedEntryByEntry(parts: [[UInt8]]) throws {
        #expect(try entries(parts.flatMap { $0 }) == Array(parts.dropFirst()))
    }

    @Test("There is a sample of each list")
    func eachListHasASample() {
        let walked = ATTOpcode.allCases.filter { opcode in
            // An opcode alone is an error for PDUs with a list, and no list for all others.
            (try? entries([opcode.rawValue])) != .some(nil)
        }
        #expect(Set(ListTests.samples.map { $0[0][0] }) == Set(walked.map(\.rawValue)))
    }

    @Test("With a flipped bit or truncated, the entries still cover the list exactly", arguments: samples)
    func entriesOfADamagedListStillCoverItExactly(parts: [[UInt8]]) {
        let bytes = parts.flatMap { $0 }
        var variants = bytes.indices.map { Array(bytes.prefix($0)) }
        for position in bytes.indices {
            for bit in 0..<8 {
                variants.append(bytes)
                variants[variants.count - 1][position] ^= 1 << UInt8(bit)
            }
        }
        for variant in variants {
            guard let found = try? entries(variant) else { continue }
            let list = Array(variant.dropFirst(headerLength(variant)))
            let walked = found.flatMap { $0 }
            #expect(list.starts(with: walked))
            // Only the last length of this list may be truncated.
            #expect(list.count - walked.count <= (variant[0] == 0x21 ? 1 : 0))
        }
    }

    @Test("The last of several values may be truncated, and reports its full length")
    func truncatedLastValueReportsItsLength() throws {
        let bytes: [UInt8] = [0x21, 0x02, 0x00, 8, 7, 0xFF, 0xFF, 1]
        var list = try ReadMultipleVariableResponse(decoding: bytes.rawSpan).entries
        var found: [[Int]] = []
        while let entry = list.next() { found.append([Int(entry.length), entry.value.byteCount]) }
        #expect(found == [[2, 2], [0xFFFF, 1]])
    }

    @Test("Types are read with the width that the format defines")
    func typesAreReadWithTheWidthOfTheirFormat() throws {
        let short: [UInt8] = [0x05, 0x01, 0x04, 0x00, 0x01, 0x29]
        var list = try FindInformationResponse(decoding: short.rawSpan).entries
        #expect(list.next()?.type == "2901")
        let long: [UInt8] = [0x05, 0x02, 0x04, 0x00, 0, 0, 0, 0, 0, 0, 0, 0xB0, 0, 0x40, 0x51, 0x04, 1, 0xAA, 0, 0xF0]
        list = try FindInformationResponse(decoding: long.rawSpan).entries
        #expect(list.next()?.type == "F000AA01-0451-4000-B000-000000000000")
    }
}
