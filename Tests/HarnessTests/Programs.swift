import Foundation
import Testing

@testable import BLEHarness

/// The programs that were built with the tests.
enum Programs {
    /// The folder of the products.
    static let folder: String = {
        let path = CommandLine.path
        // The tests' own program is in that folder, or in a bundle there.
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        if let bundle = parts.firstIndex(where: { $0.hasSuffix(".xctest") }) {
            return parts[..<bundle].joined(separator: "/")
        }
        return path.split(separator: "/").dropLast().reduce(into: "") { $0 += "/\($1)" }
    }()

    /// The folder of the scripts.
    static let scripts: String = {
        let tests = #filePath.split(separator: "/").dropLast(2).reduce(into: "") { $0 += "/\($1)" }
        return tests + "/Harness/Scripts"
    }()

    /// The result of a program's run.
    struct Outcome: Sendable {
        let status: Int32
        let output: String
        let errors: String
    }

    /// The folder of the package.
    static let root: String =
        #filePath.split(separator: "/").dropLast(3).reduce(into: "") { $0 += "/\($1)" }

    /// Runs the harness and waits for its end.
    static func harness(_ arguments: [String]) async throws -> Outcome {
        try await run(folder + "/hci-harness", arguments)
    }

    /// Runs a program and waits for its end.
    ///
    /// - Parameter environment: the variables to set in addition to those of this process.
    static func run(
        _ path: String,
        _ arguments: [String],
        environment: [String: String] = [:]
    ) async throws -> Outcome {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let output = Pipe()
        let errors = Pipe()
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = errors
        async let outputText = text(of: output.fileHandleForReading)
        async let errorText = text(of: errors.fileHandleForReading)
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            process.terminationHandler = { _ in continuation.resume() }
            do {
                try process.run()
            } catch {
                process.terminationHandler = nil
                continuation.resume(throwing: error)
            }
        }
        return Outcome(status: process.terminationStatus, output: await outputText, errors: await errorText)
    }

    /// Reads a pipe to its end on a separate thread.
    private static func text(of handle: FileHandle) async -> String {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                let data = (try? handle.readToEnd()) ?? Data()
                continuation.resume(returning: String(decoding: data, as: UTF8.self))
            }
        }
    }
}

func write(_ text: String, to path: String) throws {
    try text.write(toFile: path, atomically: false, encoding: .utf8)
}
