import ESPHomeProtocol
import Foundation

/// Reads each step of a script as a file of the program: a journal of messages, the configuration file, or the file
/// with the encryption key. A record or a key that was read is written so that it reads as the same.
///
/// The folder `Program` has links to the sources of these files, because no other target can import the program.
enum FileFuzzing {
    static func run(_ script: FuzzScript) {
        for step in script.steps {
            switch step.action & 3 {
            case 0: checkJournal(step.octets)
            case 1: checkJournal(record(step.octets))
            case 2: checkSettings(step.octets)
            default: checkKey(step.octets)
            }
        }
    }

    // MARK: The journal

    private static func checkJournal(_ bytes: [UInt8]) {
        var rest = bytes[...]
        var count = rest.count
        while let record = JournalRecord.decode(from: &rest) {
            require(rest.count < count, "a record without bytes")
            count = rest.count
            check(record)
        }
        require(rest.count == count, "a damaged record has removed bytes")
    }

    private static func check(_ record: JournalRecord) {
        // A topic that is not UTF-8 is longer once it was read. The program writes no topic that is too long.
        if case .message(_, _, let topic, _) = record, topic.utf8.count > Int(UInt16.max) { return }
        var written: [UInt8] = []
        record.encode(into: &written)
        var rest = written[...]
        require(JournalRecord.decode(from: &rest) == record, "\(record) is read as another record")
        require(rest.isEmpty, "\(rest.count) bytes after a record")
    }

    /// A record with this content. Without the right checksum, no content is decoded.
    private static func record(_ content: [UInt8]) -> [UInt8] {
        var checksum: UInt32 = 0x811C_9DC5
        for byte in content { checksum = (checksum ^ UInt32(byte)) &* 0x0100_0193 }
        return bytes(of: UInt32(content.count)) + bytes(of: checksum) + content
    }

    private static func bytes(of number: UInt32) -> [UInt8] {
        [UInt32(0), 8, 16, 24].map { UInt8(truncatingIfNeeded: number >> $0) }
    }

    // MARK: Settings

    private static func checkSettings(_ contents: [UInt8]) {
        let file = SettingsFile(path: "gateway.json", contents: contents)
        _ = try? file.object()
        _ = try? file.values()
    }

    // MARK: The key

    private static let folder =
        FileManager.default.isWritableFile(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory()

    private static func checkKey(_ contents: [UInt8]) {
        // `Tests/Fuzz/run` removes the files of a process that has found a fault.
        let path = "\(folder)/swift-ble-fuzz-\(ProcessInfo.processInfo.processIdentifier)-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        guard let key = readKey(contents, at: path) else { return }
        require(readKey(Array("\(key.base64)\n".utf8), at: path) == key, "a key is read as another one")
    }

    /// Writes a file and reads it as the program does; nil if it has no key.
    private static func readKey(_ contents: [UInt8], at path: String) -> NoiseKey? {
        let isWritten = FileManager.default.createFile(
            atPath: path,
            contents: Data(contents),
            attributes: [.posixPermissions: 0o600]
        )
        require(isWritten, "no file at \(path)")
        do throws(StateError) {
            let key = try KeyFile(path: path).read()
            require(key != nil, "the file at \(path) is not found")
            return key
        } catch {
            require(error.failure.contains("holds no key"), "\(error)")
            return nil
        }
    }
}
