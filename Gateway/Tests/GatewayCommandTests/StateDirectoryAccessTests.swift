import Foundation
import Testing

@testable import Gateway

struct StateDirectoryAccessTests {
    /// Runs the body with a directory that is removed afterwards.
    private func inDirectory(mode: mode_t, _ body: (StateDirectory) throws -> Void) throws {
        let path = NSTemporaryDirectory() + "/state-\(UUID().uuidString)"
        try #require(mkdir(path, 0o700) == 0 && chmod(path, mode) == 0)
        defer { try? FileManager.default.removeItem(atPath: path) }
        try body(StateDirectory(path: path))
    }

    private func mode(_ path: String) -> mode_t? {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode & 0o7777 : nil
    }

    @Test func newDirectoryIsForItsOwnerOnly() throws {
        try inDirectory(mode: 0o700) { parent in
            let directory = StateDirectory(path: parent.path + "/one/two")
            try directory.create()
            #expect(mode(directory.path) == 0o700)
        }
    }

    @Test(arguments: [0o700, 0o750, 0o755] as [mode_t]) func directoryThatOthersMayReadIsUsed(mode: mode_t) throws {
        try inDirectory(mode: mode) { directory in
            try directory.create()
            #expect(self.mode(directory.path) == mode)
        }
    }

    @Test(arguments: [0o770, 0o702, 0o777, 0o1777] as [mode_t])
    func directoryThatOthersMayChangeIsRefused(mode: mode_t) throws {
        try inDirectory(mode: mode) { directory in
            let expected = StateError(
                path: directory.path,
                failure: "other users can change files in the directory: its mode is \(String(mode, radix: 8))",
                advice: "run `chmod go-w \(directory.path)`, or name another directory with --state-dir"
            )
            #expect(throws: expected) { try directory.create() }
            let settings = GatewaySettings(stateDirectory: directory.path)
            #expect(throws: expected) { try GatewayProcess(settings: settings) }
            #expect(throws: expected) { try FleetJournal(directory: directory.path) }
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).isEmpty)
            try #require(chmod(directory.path, 0o755) == 0)
            try directory.create()
        }
    }

    /// Only root can give directories and files away.
    @Test(.enabled(if: geteuid() == 0)) func directoryOfAnotherUserIsRefused() throws {
        try inDirectory(mode: 0o700) { directory in
            try #require(chown(directory.path, 12345, 12345) == 0)
            let error = #expect(throws: StateError.self) { try directory.create() }
            #expect(error?.failure == "the directory belongs to user 12345, and this program runs as user 0")
        }
    }

    @Test(.enabled(if: geteuid() == 0)) func keyOfAnotherUserIsRefused() throws {
        try inDirectory(mode: 0o700) { directory in
            _ = try directory.keyFile.readOrCreate()
            try #require(chown(directory.keyFile.path, 12345, 12345) == 0)
            let error = #expect(throws: StateError.self) { try directory.keyFile.read() }
            #expect(error?.failure == "the key belongs to user 12345, and this program runs as user 0")
        }
    }

    @Test func newFilesAreForTheirOwnerWhateverTheUmaskIs() throws {
        let before = umask(0o022)
        defer { umask(before) }
        try inDirectory(mode: 0o755) { directory in
            try directory.create()
            let path = directory.path + "/mqtt.sqlite"
            let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
            try #require(descriptor >= 0)
            close(descriptor)
            #expect(mode(path) == 0o600)
        }
    }

    @Test func messagesForTheBrokerBecomeUnreadableForOthers() throws {
        try inDirectory(mode: 0o755) { directory in
            let names = ["mqtt.sqlite", "mqtt.sqlite-wal", "mqtt.sqlite-shm"]
            for name in names + ["gateway-address"] {
                let path = "\(directory.path)/\(name)"
                try #require(FileManager.default.createFile(atPath: path, contents: Data(name.utf8)))
                try #require(chmod(path, 0o644) == 0)
            }
            try directory.create()
            for name in names {
                #expect(mode("\(directory.path)/\(name)") == 0o600)
                #expect(FileManager.default.contents(atPath: "\(directory.path)/\(name)") == Data(name.utf8))
            }
            #expect(mode("\(directory.path)/gateway-address") == 0o644)
        }
    }
}
