import BLEATT
import BLEByteCoding
import BluetoothTypes
import Testing

@Suite("Writing list responses")
struct ListResponseWriterTests {
    /// Writes values of the given lengths until one is refused. Entries of groups also have an end handle.
    private func write(_ lengths: [Int], isGroup: Bool, mtu: Int) -> (count: Int, bytes: [UInt8]) {
        var buffer = PacketBuffer()
        var writer = ListResponseWriter(
            isGroup ? .readByGroupTypeResponse : .readByTypeResponse,
            mtu: mtu,
            in: &buffer
        )
        var count = 0
        for length in lengths {
            let value = [UInt8](repeating: UInt8(truncatingIfNeeded: count + 1), count: length)
            let handle = AttributeHandle(UInt16(truncatingIfNeeded: count + 1))
            guard writer.append(handle: handle, end: isGroup ? handle : nil, value: value.rawSpan, to: &buffer) else {
                break
            }
            count += 1
        }
        #expect(writer.isEmpty == (count == 0))
        return (count, [UInt8](copying: buffer.bytes))
    }

    @Test(
        "As many entries are written as ATT_MTU allows",
        arguments: [23, 24, 64, 247, 255, 256, 257, 258, 517],
        [0, 1, 2, 16]
    )
    func asManyEntriesAreWrittenAsTheMTUAllows(mtu: Int, length: Int) throws {
        let lengths = Array(repeating: length, count: 260)
        let values = write(lengths, isGroup: false, mtu: mtu)
        #expect(values.count == min(260, (mtu - 2) / (2 + length)))
        #expect(values.bytes.count == 2 + values.count * (2 + length) && values.bytes.count <= mtu)
        #expect(try ReadByTypeResponse(decoding: values.bytes.rawSpan).length == UInt8(2 + length))
        let groups = write(lengths, isGroup: true, mtu: mtu)
        #expect(groups.count == min(260, (mtu - 2) / (4 + length)))
        #expect(groups.bytes.count == 2 + groups.count * (4 + length) && groups.bytes.count <= mtu)
        #expect(try ReadByGroupTypeResponse(decoding: groups.bytes.rawSpan).length == UInt8(4 + length))
    }

    @Test(
        "The first value is truncated to ATT_MTU and to the maximum of the length field",
        arguments: [
            (23, 19, 21), (23, 20, 21), (23, 512, 21), (247, 512, 245), (256, 512, 254), (257, 512, 255),
            (258, 512, 255), (517, 253, 255), (517, 254, 255), (517, 252, 254),
        ]
    )
    func firstValueIsTruncated(mtu: Int, length: Int, entryLength: Int) throws {
        for isGroup in [false, true] {
            // A group has two more bytes before its value.
            let size = isGroup ? min(length + 4, mtu - 2, 255) : entryLength
            let result = write([length], isGroup: isGroup, mtu: mtu)
            #expect(result.count == 1 && result.bytes.count == 2 + size && result.bytes[1] == UInt8(size))
        }
    }

    @Test(
        "An entry of another length ends the list",
        arguments: [([1, 2, 1], 1), ([2, 1], 1), ([3, 3, 3, 0], 3), ([0, 1], 1), ([0, 0, 0], 3)]
    )
    func entryOfAnotherLengthEndsTheList(lengths: [Int], count: Int) {
        #expect(write(lengths, isGroup: false, mtu: 64).count == count)
        #expect(write(lengths, isGroup: true, mtu: 64).count == count)
    }

    @Test("Truncated values are listed together only if they are equally long")
    func truncatedValuesMustBeEquallyLong() {
        #expect(write([300, 300], isGroup: false, mtu: 517).count == 2)
        #expect(write([300, 400], isGroup: false, mtu: 517).count == 1)
        #expect(write([253, 254], isGroup: false, mtu: 517).count == 1)
    }

    @Test("The entry of a group has both handles before its value")
    func groupEntryHasBothHandlesBeforeItsValue() {
        var buffer = PacketBuffer()
        var writer = ListResponseWriter(.readByGroupTypeResponse, mtu: 23, in: &buffer)
        let value: [UInt8] = [0x0D, 0x18]
        let isWritten = writer.append(handle: 0x0102, end: 0x0304, value: value.rawSpan, to: &buffer)
        #expect(isWritten)
        #expect([UInt8](copying: buffer.bytes) == [0x11, 0x06, 2, 1, 4, 3, 0x0D, 0x18])
    }

    @Test("Earlier bytes in the buffer are unchanged, even if the response is discarded")
    func earlierBytesAreUnchanged() {
        var buffer = PacketBuffer()
        buffer.append([0xAA, 0xBB, 0xCC])
        var writer = ListResponseWriter(.readByTypeResponse, mtu: 23, in: &buffer)
        let value = [UInt8](repeating: 9, count: 30)
        let isWritten = writer.append(handle: 1, value: value.rawSpan, to: &buffer)
        #expect(isWritten && buffer.count == 3 + 23)
        #expect(Array([UInt8](copying: buffer.bytes).prefix(7)) == [0xAA, 0xBB, 0xCC, 0x09, 21, 1, 0])
        writer.discard(from: &buffer)
        #expect([UInt8](copying: buffer.bytes) == [0xAA, 0xBB, 0xCC])
    }
}
