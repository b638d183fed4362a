import BLEByteCoding
import BLECapture
import Testing

/// A btsnoop file of two H4 records: Reset, and the Command Complete that answers it.
private let file: [UInt8] = [
    0x62, 0x74, 0x73, 0x6E, 0x6F, 0x6F, 0x70, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x03, 0xEA,
    0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00,
    0x00, 0xE2, 0xE6, 0xDE, 0x4D, 0xA2, 0x20, 0x00, 0x01, 0x03, 0x0C, 0x00,
    0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x05,
    0x00, 0xE2, 0xE6, 0xDE, 0x4D, 0xA2, 0x20, 0x01, 0x04, 0x0E, 0x04, 0x01, 0x03, 0x0C, 0x00,
]
private let offsetOfFirst = 16
private let offsetOfSecond = 44
/// The time of the first record: 0x00E2E6DE4DA22000 minus the offset of 1970.
private let firstTime: Int64 = 0x00E2_E6DE_4DA2_2000 - 0x00DC_DDB3_0F2F_8000

/// One record, without the borrowed bytes.
private struct Record: Equatable {
    var packet: [UInt8]
    var flags: UInt32
    var drops: UInt32 = 0
    var time: Int64
}

private func read(_ bytes: [UInt8]) throws(PacketDecodingError) -> [Record] {
    var reader = ByteReader(bytes.rawSpan)
    _ = try BTSnoopHeader(decoding: reader.readBytes(count: BTSnoopHeader.length))
    var records: [Record] = []
    while !reader.isAtEnd {
        let record = try BTSnoopRecord(decoding: &reader)
        records.append(
            Record(
                packet: [UInt8](copying: record.packet),
                flags: record.flags,
                drops: record.cumulativeDrops,
                time: record.microsecondsSince1970
            )
        )
    }
    return records
}

@Suite("The btsnoop format")
struct BTSnoopTests {
    @Test("A file is read record by record")
    func fileIsReadRecordByRecord() throws {
        #expect(
            try read(file) == [
                Record(packet: [0x01, 0x03, 0x0C, 0x00], flags: 2, time: firstTime),
                Record(packet: [0x04, 0x0E, 0x04, 0x01, 0x03, 0x0C, 0x00], flags: 3, drops: 5, time: firstTime + 1),
            ]
        )
    }

    @Test("A file is written as it was read")
    func fileIsWrittenAsItWasRead() throws {
        var reader = ByteReader(file.rawSpan)
        var buffer = PacketBuffer()
        try BTSnoopHeader(decoding: reader.readBytes(count: BTSnoopHeader.length)).encode(into: &buffer)
        while !reader.isAtEnd { try BTSnoopRecord(decoding: &reader).encode(into: &buffer) }
        #expect([UInt8](copying: buffer.bytes) == file)
    }

    @Test("Times are microseconds from the year 0, and 1970 is 0x00DCDDB30F2F8000")
    func timesAreMicrosecondsFromTheYearZero() {
        let bytes = PacketBuffer.bytes {
            let packet: [UInt8] = [0x04]
            BTSnoopRecord(
                packet: packet.rawSpan,
                direction: .controllerToHost,
                isCommandOrEvent: true,
                microsecondsSince1970: 0
            ).encode(into: &$0)
        }
        #expect(Array(bytes[16..<24]) == [0x00, 0xDC, 0xDD, 0xB3, 0x0F, 0x2F, 0x80, 0x00])
        #expect(Array(bytes[8..<12]) == [0, 0, 0, 3])
    }

    @Test("A file that is truncated within a record is an error", arguments: 0..<file.count)
    func truncatedRecordIsAnError(length: Int) throws {
        let bytes = Array(file.prefix(length))
        if length == offsetOfFirst || length == offsetOfSecond {
            #expect(try read(bytes).count == (length == offsetOfFirst ? 0 : 1))
        } else {
            #expect(throws: PacketDecodingError.self) { try read(bytes) }
        }
    }

    @Test("Every flipped bit is read without a trap")
    func flippedBitIsReadWithoutATrap() {
        for bit in 0..<(file.count * 8) {
            var bytes = file
            bytes[bit / 8] ^= 0x80 >> (bit % 8)
            let records = try? read(bytes)
            // Every flipped bit changes the result.
            #expect(bit / 8 >= 12 && bit / 8 < 16 || records != (try? read(file)) || isLength(of: bit / 8))
        }
    }

    /// Whether the byte belongs to an original length, which readings do not contain.
    private func isLength(of octet: Int) -> Bool {
        (16..<20).contains(octet) || (44..<48).contains(octet)
    }

    @Test(
        "A file with an invalid header is refused",
        arguments: [
            (0, 0x42, "btsnoop identification pattern"), (7, 0x01, "btsnoop identification pattern"),
            (11, 0x02, "btsnoop version"),
        ] as [(Int, UInt8, String)]
    )
    func invalidHeaderIsRefused(offset: Int, value: UInt8, field: String) {
        var bytes = file
        bytes[offset] = value
        let error = #expect(throws: PacketDecodingError.self) { try read(bytes) }
        #expect(error?.description.contains(field) == true)
    }

    @Test("A record that is longer than any packet, or than its original length, is refused", arguments: [1, 3])
    func recordLongerThanAnyPacketOrItsOriginalLengthIsRefused(offset: Int) {
        var bytes = file
        bytes[offsetOfFirst + 4 + offset] = 0x05
        #expect(throws: PacketDecodingError.self) { try read(bytes) }
    }
}
