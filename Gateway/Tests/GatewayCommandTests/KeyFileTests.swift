import Foundation
import Testing

@testable import Gateway

struct KeyFileTests {
    /// Runs the body with a directory that is removed afterwards.
    private func inDirectory(_ body: (StateDirectory) throws -> Void) throws {
        let path = NSTemporaryDirectory() + "/key-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let directory = StateDirectory(path: path)
        try directory.create()
        try body(directory)
    }

    @Test func keyIsMadeOnceAndReadByItsOwnerOnly() throws {
        try inDirectory { directory in
            #expect(try directory.keyFile.read() == nil)
            let (key, isNew) = try directory.keyFile.readOrCreate()
            #expect(isNew)
            let (again, isNewAgain) = try directory.keyFile.readOrCreate()
            #expect(again == key)
            #expect(!isNewAgain)
            let attributes = try FileManager.default.attributesOfItem(atPath: directory.keyFile.path)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["encryption.key"])
        }
    }

    @Test func processesThatStartTogetherUseOneKey() async throws {
        let path = NSTemporaryDirectory() + "/key-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try StateDirectory(path: path).create()
        let first = KeyFile(path: "\(path)/encryption.key")
        let key = try first.readOrCreate().key
        #expect(try KeyFile(path: first.path).readOrCreate().key == key)
    }

    @Test func fileWithoutKeyIsRefused() throws {
        try inDirectory { directory in
            try #require(
                FileManager.default.createFile(
                    atPath: directory.keyFile.path,
                    contents: Data("secret".utf8),
                    attributes: [.posixPermissions: 0o600]
                )
            )
            let error = #expect(throws: StateError.self) { try directory.keyFile.readOrCreate() }
            #expect(error?.failure.contains("holds no key") == true)
        }
    }

    @Test func keyThatOthersCanReadIsRefused() throws {
        try inDirectory { directory in
            _ = try directory.keyFile.readOrCreate()
            chmod(directory.keyFile.path, 0o644)
            let error = #expect(throws: StateError.self) { try directory.keyFile.read() }
            #expect(error?.advice.contains("chmod 600") == true)
        }
    }

    @Test func newKeyIsReportedWithItsDirectory() throws {
        try inDirectory { directory in
            let command = try Key.parse(["--state-dir", directory.path])
            let output = open("/dev/null", O_WRONLY)
            defer { close(output) }
            var notices: [String] = []
            for _ in 0..<2 { try command.printKey(to: output) { notices.append($0) } }
            #expect(notices == ["ble-gateway: made a new key in \(directory.path)\n"])
        }
    }

    @Test func keyThatCannotBePrintedIsAnError() throws {
        try inDirectory { directory in
            let command = try Key.parse(["--state-dir", directory.path])
            let full = open("/dev/full", O_WRONLY)
            defer { close(full) }
            let error = #expect(throws: OutputError.self) { try command.printKey(to: full) { _ in } }
            #expect(error?.errorNumber == ENOSPC)
        }
    }

    @Test func commandForTheKeyNamesAnotherDirectoryThanTheDefault() {
        let home = ["HOME": "/home/me", "STATE_DIRECTORY": "/var/lib/ble-gateway"]
        func command(_ path: String, _ environment: [String: String], isRoot: Bool = false) -> String {
            StateDirectory(path: path).keyCommand(environment: environment, isRoot: isRoot)
        }
        #expect(command("/home/me/.local/state/ble-gateway", home) == "ble-gateway key")
        #expect(command("/var/lib/ble-gateway", [:], isRoot: true) == "ble-gateway key")
        #expect(command("/var/lib/ble-gateway", home) == "ble-gateway key --state-dir /var/lib/ble-gateway")
        #expect(command("/srv/gateway", home) == "ble-gateway key --state-dir /srv/gateway")
    }

    @Test func directoryThatCannotBeMadeIsNamed() {
        let error = #expect(throws: StateError.self) { try StateDirectory(path: "/dev/null/state").create() }
        #expect(error?.path == "/dev/null/state")
    }
}
