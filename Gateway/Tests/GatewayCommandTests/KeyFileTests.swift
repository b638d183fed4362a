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

    @Test func directoryThatCannotBeMadeIsNamed() {
        let error = #expect(throws: StateError.self) { try StateDirectory(path: "/dev/null/state").create() }
        #expect(error?.path == "/dev/null/state")
    }
}
