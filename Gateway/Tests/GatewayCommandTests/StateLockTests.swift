import Foundation
import Testing

@testable import Gateway

struct StateLockTests {
    /// Runs the body with the path of a directory that is removed afterwards.
    private func withDirectory(_ body: (StateDirectory) throws -> Void) throws {
        let directory = StateDirectory(path: NSTemporaryDirectory() + "/lock-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(atPath: directory.path) }
        try body(directory)
    }

    @Test func oneGatewayAtATimeHasTheLock() throws {
        try withDirectory { directory in
            try directory.create()
            do {
                let lock = try StateLock(directory)
                defer { withExtendedLifetime(lock) {} }
                let expected = StateError(
                    path: directory.path,
                    failure: "another gateway runs with this state directory",
                    advice: "stop it, or name another directory with --state-dir"
                )
                #expect(throws: expected) { try StateLock(directory) }
            }
            // The lock has ended with its owner, and its file has stayed.
            #expect(FileManager.default.fileExists(atPath: directory.lockPath))
            #expect(throws: Never.self) { try StateLock(directory) }
        }
    }

    @Test func gatewayHasTheLockBeforeItUsesTheKey() throws {
        try withDirectory { directory in
            try directory.create()
            let lock = try StateLock(directory)
            defer { withExtendedLifetime(lock) {} }
            let settings = GatewaySettings(stateDirectory: directory.path)
            let error = #expect(throws: StateError.self) { try GatewayProcess(settings: settings) }
            #expect(error?.failure == "another gateway runs with this state directory")
            #expect(try directory.keyFile.read() == nil)
        }
    }

    @Test func gatewayKeepsTheLock() throws {
        try withDirectory { directory in
            var settings = GatewaySettings(stateDirectory: directory.path)
            settings.servesAPI = false
            let process = try GatewayProcess(settings: settings)
            defer { withExtendedLifetime(process) {} }
            #expect(throws: StateError.self) { try StateLock(directory) }
        }
    }

    /// A run by root with a strict umask creates such a file. The service's user must be able to open it.
    @Test(arguments: [0o600, 0o400] as [mode_t])
    func otherUsersMayReadTheFile(mode: mode_t) throws {
        try withDirectory { directory in
            try directory.create()
            try #require(FileManager.default.createFile(atPath: directory.lockPath, contents: nil))
            chmod(directory.lockPath, mode)
            let lock = try StateLock(directory)
            defer { withExtendedLifetime(lock) {} }
            let attributes = try FileManager.default.attributesOfItem(atPath: directory.lockPath)
            #expect(attributes[.posixPermissions] as? Int == 0o644)
            #expect(throws: StateError.self) { try StateLock(directory) }
        }
    }

    @Test func symbolicLinkIsNotFollowed() throws {
        try withDirectory { directory in
            try directory.create()
            let target = directory.path + "/other"
            try FileManager.default.createSymbolicLink(atPath: directory.lockPath, withDestinationPath: target)
            #expect(throws: StateError.self) { try StateLock(directory) }
            #expect(!FileManager.default.fileExists(atPath: target))
        }
    }

    @Test func directoryThatIsMissingCannotBeLocked() throws {
        try withDirectory { directory in
            let error = #expect(throws: StateError.self) { try StateLock(directory) }
            #expect(error?.failure == "the directory cannot be locked: No such file or directory")
        }
    }
}
