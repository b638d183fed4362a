import BLEByteCoding
import Testing

@Suite("Reading bytes")
struct ByteReaderTests {
    static let bytes: [UInt8] = (1...16).map { UInt8($0) }

    @Test("Fields are little-endian, and each read advances by the field's length")
    func fieldsAreReadLittleEndianAndAdvanceByTheirLength() throws {
        var reader = ByteReader(Self.bytes.rawSpan)
        #expect(try reader.readUInt8() == 0x01)
        #expect(try reader.readUInt16() == 0x0302)
        #expect(try reader.readUInt24() == 0x06_0504)
        #expect(try reader.readUInt32() == 0x0A09_0807)
        #expect(try reader.readUInt48() == 0x100F_0E0D_0C0B)
        #expect(reader.isAtEnd && reader.position == 16)
        var wide = ByteReader(Self.bytes.rawSpan)
        #expect(try wide.readUInt64() == 0x0807_0605_0403_0201)
        wide = ByteReader(Self.bytes.rawSpan)
        #expect(try wide.readUInt128() == 0x100F_0E0D_0C0B_0A09_0807_0605_0403_0201)
        wide = ByteReader(([0xFE] as [UInt8]).rawSpan)
        #expect(try wide.readInt8() == -2)
    }

    @Test("A truncated field is an error with the lengths, and nothing is consumed", arguments: 0..<16)
    func truncatedFieldIsAnErrorAndConsumesNothing(length: Int) {
        let bytes = Array(Self.bytes.prefix(length))
        func check(_ needed: Int, _ read: (inout ByteReader) throws(PacketDecodingError) -> Void) {
            var reader = ByteReader(bytes.rawSpan)
            guard length < needed else { return }
            var failure: PacketDecodingError?
            do throws(PacketDecodingError) { try read(&reader) } catch { failure = error }
            guard case .truncated(_, let available)? = failure else {
                Issue.record("\(needed) bytes were read from \(length)")
                return
            }
            #expect(available <= length && reader.position == 0)
        }
        check(1) { reader throws(PacketDecodingError) in _ = try reader.readUInt8() }
        check(2) { reader throws(PacketDecodingError) in _ = try reader.readUInt16() }
        check(3) { reader throws(PacketDecodingError) in _ = try reader.readUInt24() }
        check(4) { reader throws(PacketDecodingError) in _ = try reader.readUInt32() }
        check(6) { reader throws(PacketDecodingError) in _ = try reader.readUInt48() }
        check(8) { reader throws(PacketDecodingError) in _ = try reader.readUInt64() }
        check(16) { reader throws(PacketDecodingError) in _ = try reader.readUInt128() }
        check(16) { reader throws(PacketDecodingError) in _ = try reader.readBytes(count: 16) }
        check(16) { reader throws(PacketDecodingError) in try reader.skip(16) }
    }

    @Test("Borrowed bytes are those of the input; a negative count is an error")
    func borrowedBytesAreTheInputAndANegativeCountIsAnError() throws {
        var reader = ByteReader(Self.bytes.rawSpan)
        let first = try reader.readBytes(count: 3)
        #expect([UInt8](copying: first) == [1, 2, 3])
        try reader.skip(1)
        #expect(reader.remaining == 12)
        do throws(PacketDecodingError) {
            _ = try reader.readBytes(count: -1)
            Issue.record("a negative count was read")
        } catch {
            #expect(error == .truncated(needed: -1, available: 12))
        }
        let rest = reader.readRemaining()
        #expect([UInt8](copying: rest) == Array(5...16))
        try reader.requireEnd()
    }

    @Test("Bytes after the end are an error")
    func bytesAfterTheEndAreAnError() {
        let reader = ByteReader(Self.bytes.rawSpan)
        var failure: PacketDecodingError?
        do throws(PacketDecodingError) { try reader.requireEnd() } catch { failure = error }
        #expect(failure == .trailingBytes(count: 16))
    }

    @Test("Errors with the same content are equal")
    func errorsWithTheSameContentAreEqual() {
        #expect(PacketDecodingError.invalidValue(1, field: "a") == .invalidValue(1, field: "a"))
        #expect(PacketDecodingError.invalidValue(1, field: "a") != .invalidValue(1, field: "b"))
        #expect(PacketDecodingError.invalidLength(1, field: "a") != .invalidLength(2, field: "a"))
        #expect(PacketDecodingError.trailingBytes(count: 1) != .truncated(needed: 1, available: 0))
        #expect("\(PacketDecodingError.invalidValue(0x1F, field: "opcode"))" == "opcode has the invalid value 0x1F")
    }
}

@Suite("Writing packets")
struct PacketBufferTests {
    @Test func fieldsAreWrittenLittleEndian() {
        let bytes = PacketBuffer.bytes { buffer in
            buffer.append(UInt8(0x01))
            buffer.append(Int8(-2))
            buffer.append(UInt16(0x0302))
            buffer.appendUInt24(0x06_0504)
            buffer.append(UInt32(0x0A09_0807))
            buffer.appendUInt48(0x100F_0E0D_0C0B)
            buffer.append(UInt64(0x0807_0605_0403_0201))
            buffer.append(UInt128(1) << 120)
            buffer.append([0xAA, 0xBB])
            buffer.appendZeros(2)
        }
        #expect(
            bytes == [1, 0xFE] + Array(2...16) + Array(1...8) + Array(repeating: 0, count: 15) + [1, 0xAA, 0xBB, 0, 0]
        )
    }

    @Test("Headers go in front without moving the payload, even beyond the headroom", arguments: [0, 1, 3, 16])
    func headersGoInFrontEvenBeyondTheHeadroom(headroom: Int) {
        var buffer = PacketBuffer(capacity: 4, headroom: headroom)
        buffer.append([7, 8])
        for value in (0..<20).reversed() { buffer.prepend(UInt8(value)) }
        buffer.prepend(UInt16(0xBBAA))
        #expect([UInt8](copying: buffer.bytes) == [0xAA, 0xBB] + Array(0..<20) + [7, 8])
        #expect(buffer.count == 24)
    }

    @Test("Bytes removed from the front become headroom again")
    func bytesRemovedFromTheFrontBecomeHeadroom() {
        var buffer = PacketBuffer()
        buffer.append([1, 2, 3, 4, 5])
        buffer.removeFirst(3)
        buffer.prepend(UInt8(9))
        #expect([UInt8](copying: buffer.bytes) == [9, 4, 5])
        buffer.truncate(to: 2)
        buffer.truncate(to: 7)
        #expect([UInt8](copying: buffer.bytes) == [9, 4])
        buffer.overwrite(at: 0, with: UInt16(0x2211))
        buffer.overwrite(at: 1, with: UInt8(0x33))
        #expect([UInt8](copying: buffer.bytes) == [0x11, 0x33])
    }

    @Test("A buffer is empty and has its headroom after a reset, whatever its earlier use")
    func resetBufferIsEmptyAndHasItsHeadroom() {
        var buffer = PacketBuffer()
        buffer.append([1, 2, 3])
        buffer.removeFirst(3)
        buffer.reset()
        #expect(buffer.isEmpty)
        buffer.append([4])
        for _ in 0..<40 { buffer.prepend(UInt8(0)) }
        buffer.reset()
        buffer.append(([5, 6] as [UInt8]).rawSpan)
        #expect([UInt8](copying: buffer.bytes) == [5, 6])
    }

    @Test("Spans are compared byte by byte")
    func spansAreComparedByteByByte() {
        let bytes: [UInt8] = [1, 2, 3]
        func isEqual(_ other: [UInt8]) -> Bool { bytes.rawSpan.elementsEqual(other.rawSpan) }
        #expect(isEqual([1, 2, 3]))
        #expect(!isEqual([1, 2]))
        #expect(!isEqual([1, 2, 4]))
        #expect(bytes.rawSpan[checked: 2] == 3 && bytes.rawSpan[checked: 3] == nil && bytes.rawSpan[checked: -1] == nil)
    }
}
