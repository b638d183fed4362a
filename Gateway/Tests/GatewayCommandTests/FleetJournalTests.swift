import Foundation
import Testing

@testable import Gateway

struct JournalRecordTests {
    static let records: [JournalRecord] = [
        .message(token: 1, arrival: -1, topic: "ble/sensors/C0DE00000001/a", payload: Array("{}".utf8)),
        .message(token: .max, arrival: .max, topic: "", payload: []),
        .finished([]), .finished([1, .max, 7]),
    ]

    private func bytes(_ records: [JournalRecord]) -> [UInt8] {
        var bytes: [UInt8] = []
        for record in records { record.encode(into: &bytes) }
        return bytes
    }

    @Test func messageHasTheseBytes() {
        let record = JournalRecord.message(token: 0x0102, arrival: 3, topic: "t", payload: [0xAA])
        #expect(
            bytes([record]) == [
                0x15, 0, 0, 0, 0x6D, 0x4C, 0xC3, 0xA2, 1, 2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0x74,
                0xAA,
            ]
        )
    }

    @Test func recordsAreReadAsTheyWereWritten() {
        var rest = bytes(Self.records)[...]
        var found: [JournalRecord] = []
        while let record = JournalRecord.decode(from: &rest) { found.append(record) }
        #expect(found == Self.records)
        #expect(rest.isEmpty)
    }

    @Test func incompleteRecordIsNotRead() {
        let all = bytes([Self.records[0]])
        for count in 0..<all.count {
            var rest = all.prefix(count)
            #expect(JournalRecord.decode(from: &rest) == nil)
            #expect(rest.count == count)
        }
    }

    @Test func changedByteIsNoticed() {
        let all = bytes([Self.records[0]])
        for index in all.indices {
            var changed = all
            changed[index] ^= 0x10
            var rest = changed[...]
            #expect(JournalRecord.decode(from: &rest) == nil)
        }
    }
}

struct FleetJournalTests {
    private func withDirectory(_ body: (String) throws -> Void) throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "journal-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        try body(path)
    }

    private func append(_ number: Int, to journal: FleetJournal) throws -> UInt64 {
        try #require(journal.append(topic: "t\(number)", payload: Array("p\(number)".utf8), arrival: Int64(number)))
    }

    private func files(_ path: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path).filter { $0.hasSuffix(".journal") }.sorted()
    }

    @Test func messagesAreFoundWithTheirState() throws {
        try withDirectory { path in
            do {
                let journal = try FleetJournal(directory: path)
                #expect(journal.takeFound().isEmpty)
                let tokens = try (0..<4).map { try append($0, to: journal) }
                #expect(tokens == [1, 2, 3, 4])
                #expect(journal.finish([tokens[1], tokens[3]]).isEmpty)
                #expect(journal.unfinishedCount == 2)
            }
            let journal = try FleetJournal(directory: path)
            let found = journal.takeFound()
            #expect(found.map(\.isFinished) == [false, true, false, true])
            #expect(found[2].topic == "t2" && found[2].payload == Array("p2".utf8) && found[2].arrival == 2)
            #expect(journal.unfinishedCount == 2)
            // New tokens follow those that were found.
            #expect(try append(4, to: journal) == 5)
            #expect(journal.takeFound().isEmpty)
        }
    }

    @Test func incompleteLastRecordIsRemovedAndLaterOnesAreFound() throws {
        try withDirectory { path in
            do {
                let journal = try FleetJournal(directory: path)
                for number in 0..<3 { _ = try append(number, to: journal) }
            }
            let file = try #require(try files(path).first)
            let handle = try #require(FileHandle(forWritingAtPath: "\(path)/\(file)"))
            let size = try handle.seekToEnd()
            try handle.truncate(atOffset: size - 1)
            do {
                let journal = try FleetJournal(directory: path)
                #expect(journal.damagedFileCount == 1)
                #expect(journal.takeFound().map(\.token) == [1, 2])
                #expect(try append(9, to: journal) == 3)
            }
            let journal = try FleetJournal(directory: path)
            #expect(journal.damagedFileCount == 0)
            #expect(journal.takeFound().map(\.topic) == ["t0", "t1", "t9"])
        }
    }

    /// A change of a record by a failure of the disk.
    enum Damage: CaseIterable {
        case content
        case kind
        case checksum
        case shorterLength
        case longerLength
        case lengthBeyondTheEnd
        case zeros

        func change(_ record: inout [UInt8]) {
            switch self {
            case .content: record[record.count - 1] ^= 1
            case .kind: record[8] = 9
            case .checksum: record[4] ^= 1
            case .shorterLength: record[0] -= 1
            case .longerLength: record[0] += 1
            case .lengthBeyondTheEnd: record[2] = 0x0F
            case .zeros: record = [UInt8](repeating: 0, count: record.count)
            }
        }
    }

    /// Messages with the tokens 1 to 3, of which one is damaged.
    private func messages(with damage: Damage, of damaged: UInt64) -> [[UInt8]] {
        (1...3).map { (token: UInt64) in
            var record: [UInt8] = []
            JournalRecord.message(token: token, arrival: 0, topic: "t\(token)", payload: [0x7B, 0x7D])
                .encode(into: &record)
            if token == damaged { damage.change(&record) }
            return record
        }
    }

    /// Writes the first file of a journal.
    private func write(_ bytes: [UInt8], in path: String) throws {
        try StateDirectory(path: path).create()
        try Data(bytes).write(to: URL(fileURLWithPath: "\(path)/0000000000000001.journal"))
    }

    @Test(arguments: Damage.allCases) func damagedRecordIsSkippedAndLaterOnesAreFound(damage: Damage) throws {
        try withDirectory { path in
            let records = messages(with: damage, of: 2)
            try write(Array(records.joined()), in: path)
            do {
                let journal = try FleetJournal(directory: path)
                #expect(journal.takeFound().map(\.token) == [1, 3])
                #expect(journal.damagedFileCount == 1)
                #expect(journal.skippedByteCount == records[1].count && journal.removedByteCount == 0)
                #expect(try append(4, to: journal) == 4)
            }
            // Nothing of the file was removed.
            let contents = try Data(contentsOf: URL(fileURLWithPath: "\(path)/0000000000000001.journal"))
            #expect(Array(contents) == Array(records.joined()))
            #expect(try FleetJournal(directory: path).takeFound().map(\.token) == [1, 3, 4])
        }
    }

    @Test(arguments: [2, 3] as [UInt64]) func incompleteLastRecordIsRemovedBehindADamagedOne(damaged: UInt64) throws {
        try withDirectory { path in
            let records = messages(with: .content, of: damaged)
            var last: [UInt8] = []
            JournalRecord.message(token: 4, arrival: 0, topic: "t4", payload: []).encode(into: &last)
            try write(Array(records.joined()) + last.prefix(10), in: path)
            let journal = try FleetJournal(directory: path)
            #expect(journal.takeFound().map(\.token) == [1, 2, 3].filter { $0 != damaged })
            #expect(journal.damagedFileCount == 1)
            #expect(journal.skippedByteCount == records[0].count && journal.removedByteCount == 10)
            let contents = try Data(contentsOf: URL(fileURLWithPath: "\(path)/0000000000000001.journal"))
            #expect(Array(contents) == Array(records.joined()))
        }
    }

    @Test func finishedMessagesBehindADamagedLengthAreFinished() throws {
        try withDirectory { path in
            let records = messages(with: .lengthBeyondTheEnd, of: 2).prefix(2)
            var finished: [UInt8] = []
            JournalRecord.finished([1]).encode(into: &finished)
            try write(Array(records.joined()) + finished, in: path)
            let journal = try FleetJournal(directory: path)
            #expect(journal.takeFound().map(\.isFinished) == [true])
            #expect(journal.damagedFileCount == 1 && journal.removedByteCount == 0)
        }
    }

    /// A later version may write records of other kinds.
    @Test func recordOfAnUnknownKindIsSkipped() throws {
        try withDirectory { path in
            let content: [UInt8] = [9, 1, 2, 3]
            var checksum: UInt32 = 0x811C_9DC5
            for byte in content { checksum = (checksum ^ UInt32(byte)) &* 0x0100_0193 }
            var bytes: [UInt8] = [4, 0, 0, 0]
            for shift in [0, 8, 16, 24] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: checksum >> shift)) }
            bytes += content
            JournalRecord.message(token: 1, arrival: 0, topic: "t", payload: []).encode(into: &bytes)
            try write(bytes, in: path)
            let journal = try FleetJournal(directory: path)
            #expect(journal.takeFound().map(\.topic) == ["t"])
            #expect(journal.skippedByteCount == 12)
        }
    }

    /// A process that was killed while it wrote its first record.
    @Test func firstRecordThatIsIncompleteDoesNotHideLaterOnes() throws {
        try withDirectory { path in
            do {
                let journal = try FleetJournal(directory: path)
                _ = try append(0, to: journal)
            }
            let file = try #require(try files(path).first)
            let handle = try #require(FileHandle(forWritingAtPath: "\(path)/\(file)"))
            try handle.truncate(atOffset: 5)
            do {
                let journal = try FleetJournal(directory: path)
                #expect(journal.takeFound().isEmpty)
                _ = try append(7, to: journal)
            }
            #expect(try FleetJournal(directory: path).takeFound().map(\.topic) == ["t7"])
        }
    }

    @Test func filesAreRemovedWhenTheirMessagesAreFinishedAndOldEnough() throws {
        try withDirectory { path in
            let journal = try FleetJournal(directory: path)
            var kept: UInt64?
            for number in 0..<30_000 {
                let token = try append(number, to: journal)
                if number == 9000 { kept = token } else { #expect(journal.finish([token]).isEmpty) }
            }
            // The file of the unfinished message remains, and all later ones.
            let last = try #require(kept)
            #expect(journal.unfinishedCount == 1)
            let found = try files(path)
            #expect(found.first == "0000000000002001.journal")
            #expect(found.count == journal.fileCount)
            #expect(journal.finish([last]).isEmpty)
            #expect(journal.fileCount == 3)
            #expect(try files(path).count == 3)
            #expect(journal.unfinishedCount == 0)
        }
    }

    @Test func filesWithTokensThatNeverComeAreIgnored() throws {
        try withDirectory { path in
            do { _ = try append(1, to: FleetJournal(directory: path)) }
            var record: [UInt8] = []
            JournalRecord.message(token: .max, arrival: 0, topic: "t", payload: []).encode(into: &record)
            for name in ["ffffffffffffffff", "0000000000000009"] {
                try Data(record).write(to: URL(fileURLWithPath: "\(path)/\(name).journal"))
            }
            let journal = try FleetJournal(directory: path)
            #expect(journal.takeFound().map(\.topic) == ["t1"])
            let token = try append(2, to: journal)
            #expect(token < 20)
        }
    }

    @Test func sizeOfUnfinishedMessagesIsKnown() throws {
        try withDirectory { path in
            let journal = try FleetJournal(directory: path)
            #expect(journal.unfinishedByteCount == 0)
            let payload = [UInt8](repeating: 0x20, count: 16_000)
            var tokens: [UInt64] = []
            for _ in 0..<100 { tokens.append(try #require(journal.append(topic: "t", payload: payload, arrival: 0))) }
            #expect((1_600_000..<1_700_000).contains(journal.unfinishedByteCount))
            #expect(journal.finish(tokens).isEmpty)
            #expect(journal.unfinishedByteCount == 0)
        }
    }

    @Test func sizeOfUnfinishedMessagesThatWereFoundIsKnown() throws {
        try withDirectory { path in
            let payload = [UInt8](repeating: 0x20, count: 16_000)
            let sizes = try (1...3).map { _ in
                let journal = try FleetJournal(directory: path)
                for _ in 0..<100 { _ = journal.append(topic: "t", payload: payload, arrival: 0) }
                return journal.unfinishedByteCount
            }
            #expect(sizes == (1...3).map { $0 * sizes[0] } && sizes[0] > 1_600_000)
            #expect(try FleetJournal(directory: path).unfinishedByteCount == 3 * sizes[0])
        }
    }

    @Test func journalHasOneUser() throws {
        try withDirectory { path in
            let journal = try FleetJournal(directory: path)
            let error = #expect(throws: StateError.self) { try FleetJournal(directory: path) }
            #expect("\(try #require(error))".contains("another `ble-gateway fleet` uses this directory; stop it"))
            _ = journal.fileCount
        }
    }

    @Test func directoryThatCannotBeMadeIsNamed() throws {
        let error = #expect(throws: StateError.self) { try FleetJournal(directory: "/proc/none") }
        #expect("\(try #require(error))".hasPrefix("/proc/none: the directory cannot be created"))
    }
}
