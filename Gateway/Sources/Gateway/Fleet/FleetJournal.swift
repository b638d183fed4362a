import Foundation

/// The messages from the broker whose observations are not written yet, in files.
///
/// ## Overview
/// A message is appended before it is confirmed to the broker, so the broker may forget it. Once the message's
/// observation is written, the message is finished. After the end of the process, also by SIGKILL, the next one finds
/// all messages. A failure of the machine can lose those that the system had not written to the disk yet.
///
/// ## Files
/// A directory has numbered files of records; see ``JournalRecord``. Records are added to the newest one. The oldest
/// one is removed when its messages are finished and ``retention`` later ones follow it: the broker can send the latest
/// messages again, which are then recognized.
///
/// A damaged record, for example after a failure of the disk, is skipped and stays in its file. Only an incomplete
/// record at the end of a file is removed.
///
/// It is used by one thread at a time.
final class FleetJournal {
    /// A message that was read.
    struct Entry: Equatable {
        let token: UInt64
        /// The system's time of the arrival in milliseconds since 1970.
        let arrival: Int64
        let topic: String
        let payload: [UInt8]
        var isFinished: Bool
    }

    private struct Segment {
        let path: String
        /// The token of its first message; that of the next one if it has none.
        let first: UInt64
        var messageCount = 0
        var unfinishedCount = 0
        var size = 0
    }

    /// The number of the latest messages that are kept although they are finished. It is greater than the number of
    /// messages that a broker sends without a confirmation, unless its configuration is unusual.
    static let retention = 8192
    private static let segmentMessageLimit = 4096
    private static let segmentSizeLimit = 16 << 20
    private static let recordTokenLimit = 4096
    private static let suffix = ".journal"
    /// Greater tokens are of a file that something else has written. So many messages never come.
    private static let greatestToken = UInt64.max >> 1

    private let directory: String
    private let lock: Int32
    private var descriptor: Int32 = -1
    private var segments: [Segment] = []
    private var nextToken: UInt64 = 1
    private var buffer: [UInt8] = []
    /// The messages that were found, until they are taken.
    private var found: [Entry] = []
    /// The number of files with records that were damaged or incomplete.
    private(set) var damagedFileCount = 0
    /// The size of the damaged records that were skipped, in bytes.
    private(set) var skippedByteCount = 0
    /// The size of the incomplete records that were removed from the ends of files, in bytes.
    private(set) var removedByteCount = 0
    /// Why records cannot be written now; nil if they can.
    private(set) var failure: String?

    /// Opens the journal in a directory, which is created if there is none.
    ///
    /// - Throws: ``StateError`` if another process uses the journal, or if it cannot be read or written.
    init(directory: String) throws(StateError) {
        self.directory = directory
        try StateDirectory(path: directory).create()
        lock = open("\(directory)/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard lock >= 0 else { throw .failed("the journal cannot be opened", directory, errno) }
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            throw StateError(
                path: directory,
                failure: "another `ble-gateway fleet` uses this directory",
                advice: "stop it, or name another directory with --state-dir"
            )
        }
        try load()
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
        close(lock)
    }

    /// The number of messages that are not finished.
    var unfinishedCount: Int { segments.reduce(0) { $0 + $1.unfinishedCount } }

    /// The size of the files that have messages that are not finished, in bytes.
    var unfinishedByteCount: Int { segments.reduce(0) { $0 + ($1.unfinishedCount > 0 ? $1.size : 0) } }

    /// The number of files.
    var fileCount: Int { segments.count }

    /// Returns the messages that were found, in the order of their tokens. To be called once.
    func takeFound() -> [Entry] {
        defer { found = [] }
        return found
    }

    // MARK: Reading

    private func load() throws(StateError) {
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: directory)
        } catch {
            throw StateError(
                path: directory,
                failure: "the journal cannot be read",
                advice: "check the permissions, or name another directory with --state-dir"
            )
        }
        var places: [UInt64: Int] = [:]
        for name in names.filter({ $0.hasSuffix(Self.suffix) }).sorted() {
            guard let first = UInt64(name.dropLast(Self.suffix.count), radix: 16), first <= Self.greatestToken else {
                continue
            }
            try read("\(directory)/\(name)", first, &places)
        }
        for entry in found where !entry.isFinished { change(segmentOf: entry.token) { $0.unfinishedCount += 1 } }
        if !startSegment() { throw .failed("the journal cannot be written", directory, errno) }
    }

    private func read(_ path: String, _ first: UInt64, _ places: inout [UInt64: Int]) throws(StateError) {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw .failed("the journal cannot be read", path, errno)
        }
        var segment = Segment(path: path, first: first)
        var bytes = Array(data)[...]
        var skippedCount = 0
        while !bytes.isEmpty {
            guard let record = JournalRecord.decode(from: &bytes) else {
                let count = bytes.count
                let least = max(nextToken, first)
                let tokens = least..<max(least, first + UInt64(Self.segmentMessageLimit))
                guard JournalRecord.skipDamage(in: &bytes, tokens: tokens) else { break }
                skippedCount += count - bytes.count
                continue
            }
            switch record {
            case .message(let token, let arrival, let topic, let payload):
                guard token >= nextToken, token <= Self.greatestToken else { continue }
                nextToken = token + 1
                places[token] = found.count
                segment.messageCount += 1
                found.append(
                    Entry(token: token, arrival: arrival, topic: topic, payload: payload, isFinished: false)
                )
            case .finished(let tokens):
                for token in tokens { if let place = places[token] { found[place].isFinished = true } }
            }
        }
        if skippedCount > 0 || !bytes.isEmpty { damagedFileCount += 1 }
        skippedByteCount += skippedCount
        // The last record is incomplete if the process ended while it wrote it. Its message was not confirmed.
        if !bytes.isEmpty {
            removedByteCount += bytes.count
            guard truncate(path, off_t(data.count - bytes.count)) == 0 else {
                throw .failed("the journal cannot be written", path, errno)
            }
        }
        nextToken = max(nextToken, first)
        segment.size = data.count - bytes.count
        segments.append(segment)
    }

    // MARK: Writing

    /// Stores a message.
    ///
    /// - Returns: its token; nil if it cannot be stored, for the reason in ``failure``.
    func append(topic: String, payload: [UInt8], arrival: Int64) -> UInt64? {
        guard topic.utf8.count <= Int(UInt16.max), payload.count <= JournalRecord.sizeLimit / 2 else {
            failure = "the message is too large"
            return nil
        }
        let token = nextToken
        let isFull = segments.last.map {
            $0.messageCount >= Self.segmentMessageLimit || $0.size >= Self.segmentSizeLimit
        }
        if isFull ?? true, !startSegment() { return nil }
        guard write(.message(token: token, arrival: arrival, topic: topic, payload: payload)) else { return nil }
        nextToken += 1
        segments[segments.count - 1].messageCount += 1
        segments[segments.count - 1].unfinishedCount += 1
        return token
    }

    /// Stores that nothing is to be done for messages any more. Each token is given once.
    ///
    /// - Returns: the tokens for which that cannot be stored now.
    func finish(_ tokens: [UInt64]) -> [UInt64] {
        var rest = tokens[...]
        while !rest.isEmpty {
            let some = rest.prefix(Self.recordTokenLimit)
            guard write(.finished(Array(some))) else { return Array(rest) }
            for token in some { change(segmentOf: token) { $0.unfinishedCount -= 1 } }
            rest = rest.dropFirst(some.count)
        }
        removeOld()
        return []
    }

    private func write(_ record: JournalRecord) -> Bool {
        guard descriptor >= 0 || startSegment() else { return false }
        buffer.removeAll(keepingCapacity: true)
        record.encode(into: &buffer)
        var written = 0
        while written < buffer.count {
            let count = buffer.withUnsafeBytes {
                Foundation.write(descriptor, $0.baseAddress! + written, $0.count - written)
            }
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else {
                failure = String(cString: strerror(errno))
                removeIncompleteRecord()
                return false
            }
            written += count
        }
        failure = nil
        segments[segments.count - 1].size += written
        return true
    }

    /// Removes the begin of a record, so that the next one can be read.
    private func removeIncompleteRecord() {
        guard let size = segments.last?.size, ftruncate(descriptor, off_t(size)) == 0 else {
            close(descriptor)
            descriptor = -1
            return
        }
    }

    private func startSegment() -> Bool {
        // Another segment for the same token has no messages: its finished ones are read before.
        if let last = segments.last, last.first == nextToken, last.messageCount == 0, descriptor >= 0 { return true }
        let digits = String(nextToken, radix: 16)
        let path = "\(directory)/\(String(repeating: "0", count: 16 - digits.count))\(digits)\(Self.suffix)"
        let new = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard new >= 0 else {
            failure = String(cString: strerror(errno))
            return false
        }
        if descriptor >= 0 { close(descriptor) }
        descriptor = new
        if segments.last?.path != path { segments.append(Segment(path: path, first: nextToken)) }
        segments[segments.count - 1].size = Int(max(0, lseek(new, 0, SEEK_END)))
        return true
    }

    private func change(segmentOf token: UInt64, _ body: (inout Segment) -> Void) {
        if let index = segments.lastIndex(where: { $0.first <= token }) { body(&segments[index]) }
    }

    private func removeOld() {
        while segments.count > 1, segments[0].unfinishedCount <= 0, nextToken - segments[1].first >= Self.retention {
            guard unlink(segments[0].path) == 0 || errno == ENOENT else { return }
            segments.removeFirst()
        }
    }
}
