import Foundation
import Testing

@testable import BLETool

@Suite("Files with out of band data")
final class OutOfBandFileTests {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("oob-\(UUID().uuidString)").path
    private var path: String { "\(folder)/theirs.json" }

    init() throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: folder)
    }

    private func write(_ key: UInt128) throws {
        try OutOfBandFile(data: .temporaryKey(key)).write(to: path)
    }

    private func text() throws -> String { try String(contentsOfFile: path, encoding: .utf8) }

    @Test("The file's content at the start of the command is used, and later changes are not")
    func fileChangedAfterTheStartHasNoEffect() async throws {
        try write(1)
        let options = try PairingOptions.parse(["--oob", path])
        // The command line was parsed; the command itself has not started.
        try write(2)
        let policy = try await options.policy()
        #expect(policy.peerOutOfBandData == .temporaryKey(2))
        #expect(policy.ownOutOfBandData == .temporaryKey(2))
        try write(3)
        #expect(policy.peerOutOfBandData == .temporaryKey(2))
    }

    @Test("A file that was replaced after parsing ends the command in one line")
    func replacedFileIsRefused() async throws {
        let replacements: [(make: (String) throws -> Void, problem: String?)] = [
            ({ _ in }, "No such file or directory"),
            ({ try "not JSON".write(toFile: $0, atomically: false, encoding: .utf8) }, nil),
            (
                { try #"{"confirm": "00"}"#.write(toFile: $0, atomically: false, encoding: .utf8) },
                "\"confirm\" is not a string of 32 hexadecimal digits"
            ),
            (
                { path in
                    let other = path + ".other"
                    try OutOfBandFile(data: .temporaryKey(9)).write(to: other)
                    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: other)
                }, "Too many levels of symbolic links"
            ),
        ]
        for (make, problem) in replacements {
            try write(1)
            let options = try PairingOptions.parse(["--oob", path])
            try FileManager.default.removeItem(atPath: path)
            try make(path)
            let error = await #expect(throws: FileError.self) { try await options.policy() }
            let line = ToolError.description(of: try #require(error))
            #expect(line.hasPrefix("\(path): ") && !line.contains("\n"))
            if let problem { #expect(line.contains(problem)) }
            try? FileManager.default.removeItem(atPath: path)
        }
    }

    @Test("The command line is parsed without the file, which may be a pipe")
    func fileIsNotReadWithTheCommandLine() async throws {
        let options = try PairingOptions.parse(["--oob", path])
        let error = await #expect(throws: FileError.self) { try await options.policy() }
        #expect(error.map { "\($0)" } == "\(path): No such file or directory")
        try write(1)
        #expect(try await options.policy().peerOutOfBandData == .temporaryKey(1))
    }

    @Test("An existing file is replaced completely, and only its owner can read it")
    func writtenFileReplacesAnother() async throws {
        try String(repeating: "x", count: 4_096).write(toFile: path, atomically: false, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
        try OutOfBandFile(data: .secureConnections(confirm: 1, random: 2)).write(to: path)
        #expect(try await OutOfBandFile(contentsOf: path).data == .secureConnections(confirm: 1, random: 2))
        #expect(try text().utf8.count < 4_096)
        let permissions = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(permissions == 0o600)
    }

    @Test("A symbolic link at the file's place is not followed for writing")
    func linkIsNotWritten() throws {
        let other = "\(folder)/other"
        try "kept".write(toFile: other, atomically: false, encoding: .utf8)
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: other)
        #expect(throws: FileError.self) { try write(1) }
        #expect(try String(contentsOfFile: other, encoding: .utf8) == "kept")
    }
}
