import Foundation
import Glibc
import Testing

@testable import BLETool

@Suite("The lines of an input")
final class InputLinesTests {
    private let path = FileManager.default.temporaryDirectory.path + "/lines-\(UUID().uuidString)"

    deinit { try? FileManager.default.removeItem(atPath: path) }

    private func lines(of octets: [UInt8]) async throws -> [String] {
        try Data(octets).write(to: URL(fileURLWithPath: path))
        var lines: [String] = []
        for try await line in input { lines.append(line) }
        return lines
    }

    private var input: InputLines {
        InputLines { [path] () throws(FileError) in try ByteInput(path) }
    }

    @Test(
        "are split at line feeds, without carriage returns, and the last one needs no end",
        arguments: [
            ("", []), ("\n", [""]), ("a\nb\n", ["a", "b"]), ("a\r\n\r\nb", ["a", "", "b"]), ("a\rb\n", ["a\rb"]),
        ] as [(String, [String])]
    )
    func linesAreSplit(text: String, expected: [String]) async throws {
        #expect(try await lines(of: Array(text.utf8)) == expected)
    }

    @Test("are whole, however many blocks they need")
    func longLinesAreWhole() async throws {
        let long = String(repeating: "x", count: 50_000)
        let text = "\(long)\na\n\(long)y\n"
        #expect(try await lines(of: Array(text.utf8)) == [long, "a", long + "y"])
    }

    @Test("have a limited length")
    func lineWithoutEndIsAnError() async throws {
        let octets = [UInt8](repeating: 0x78, count: InputLines.lengthLimit + 100_000)
        let error = await #expect(throws: FileError.self) { try await self.lines(of: octets) }
        #expect(error.map { "\($0)" } == "\(path): a line is longer than 1048576 bytes")
    }

    @Test("end with the error if the input cannot be read")
    func unreadableInputIsAnError() async throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        let error = await #expect(throws: FileError.self) { for try await _ in self.input {} }
        #expect(error.map { "\($0)" } == "\(path): Is a directory")
    }

    @Test("are read only when they are asked for")
    func producerWaits() async throws {
        #expect(unsafe mkfifo(path, 0o600) == 0)
        let descriptor = unsafe open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        defer { close(descriptor) }
        // As much as the pipe holds: a reader that reads ahead would empty it.
        let line = [UInt8](repeating: 0x78, count: 4095) + [0x0A]
        while unsafe write(descriptor, line, line.count) > 0 {}
        var iterator = input.makeAsyncIterator()
        #expect(try await iterator.next()?.utf8.count == 4095)
        var waiting: Int32 = 0
        #expect(unsafe ioctl(descriptor, UInt(FIONREAD), &waiting) == 0)
        #expect(waiting > 16_384)
    }
}
