import BLE
import BLEKeyStore
import BLEVirtualController
import BluetoothHost
import Dispatch
import Foundation
import Glibc
import Testing

@testable import BondWriter

@Suite("Bonds survive killing the process at any moment")
struct CrashTests {
    private static let rounds = 125

    @Test("The store opens, each bond is old or new, and no saved change is lost", arguments: 1...4)
    func killedProcessLeavesEachBondOldOrNew(seed: UInt64) async throws {
        let directory = FileManager.default.temporaryDirectory.path + "/crash-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var dice = SeededGenerator(seed: seed)
        var before: UInt32 = 0
        for round in 1...CrashTests.rounds {
            let lines = try await CrashTests.run(
                in: directory,
                untilKept: Int.random(in: 0...4, using: &dice),
                thenFor: UInt32.random(in: 0...2000, using: &dice)
            )
            var (begun, saved) = (before, before)
            for line in lines {
                let words = line.split(separator: " ")
                let number = words.count == 2 ? UInt32(words[1]) : nil
                switch (words.first, number) {
                case ("+", let number?): begun = max(begun, number)
                case ("=", let number?): saved = max(saved, number)
                default: Issue.record("round \(round) of \(seed): the writer says: \(line)")
                }
            }
            let (security, warnings) = await CrashTests.open(directory)
            #expect(warnings == [])
            if begun > 0, !(saved == 0 && security == HostSecurityState()) {
                let generation = try #require(Generation(of: security), "round \(round) of \(seed): \(security)")
                #expect((saved...begun).contains(generation.number), "round \(round) of \(seed)")
                before = generation.number
            }
        }
        // Otherwise no process was killed while it was writing.
        #expect(before > UInt32(CrashTests.rounds))
        let left = try FileManager.default.contentsOfDirectory(atPath: directory).filter { !$0.hasSuffix(".new") }
        #expect(Set(left) == ["00-11-22-33-44-55.json", "00-11-22-33-44-55.json.lock"])
    }

    private static func open(_ directory: String) async -> (HostSecurityState, [String]) {
        let warnings = Warnings()
        let store = await KeyStore.open(adapter: BondWriter.host, in: directory) { warnings.add($0) }
        let security = await BondFileStore(store) { warnings.add($0) }.load(for: nil)
        await store.close()
        return (security, warnings.all)
    }

    // MARK: The writer

    /// Runs the writer until it has reported a number of saves, and for some microseconds more. Then kills it and
    /// returns what it reported. Runs on a separate thread, which it blocks.
    private static func run(
        in directory: String,
        untilKept count: Int,
        thenFor microseconds: UInt32
    ) async throws -> [String] {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(with: Result { try spawn(directory, untilKept: count, thenFor: microseconds) })
            }
        }
    }

    private static func spawn(
        _ directory: String,
        untilKept count: Int,
        thenFor microseconds: UInt32
    ) throws -> [String] {
        var ends: [Int32] = [0, 0]
        // Unlike those of a pipe, its ends are never inherited by a writer that another thread starts at the same time.
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        try #require(socketpair(AF_UNIX, kind, 0, &ends) == 0)
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
        let path = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().path + "/BondWriter"
        var arguments = [strdup(path), strdup(directory), nil]
        defer { for argument in arguments { free(argument) } }
        var process: pid_t = 0
        let status = posix_spawn(&process, path, &actions, nil, &arguments, environ)
        close(ends[1])
        defer { close(ends[0]) }
        try #require(status == 0, "\(path): \(String(cString: strerror(status)))")

        var output: [UInt8] = []
        var isAlive = true
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            if isAlive, output.count(where: { $0 == UInt8(ascii: "=") }) >= count {
                // The progress at that moment is deliberately random.
                usleep(microseconds)
                Glibc.kill(process, SIGKILL)
                isAlive = false
            }
            let length = read(ends[0], &chunk, chunk.count)
            if length < 0, errno == EINTR { continue }
            guard length > 0 else { break }
            output += chunk.prefix(length)
        }
        var end: Int32 = 0
        waitpid(process, &end, 0)
        // The process was killed, and did not end otherwise.
        #expect(end & 0x7F == SIGKILL)
        return String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init)
    }
}
