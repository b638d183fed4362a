import Glibc

/// The lines of standard input.
enum StandardInput {
    static var isTerminal: Bool { isatty(STDIN_FILENO) == 1 }

    /// The lines, each read when it is asked for. So a producer waits for a command that is slow.
    static func lines() -> InputLines {
        InputLines { () throws(FileError) in try ByteInput(nil) }
    }
}

/// The lines of an input, without their ends. The last one needs no end.
///
/// Iteration throws ``FileError`` if the input cannot be read. It ends with the input, or if the task is cancelled.
struct InputLines: AsyncSequence, Sendable {
    /// Maximum length of a line, in bytes.
    static let lengthLimit = 1 << 20

    let open: @Sendable () throws(FileError) -> ByteInput

    func makeAsyncIterator() -> Iterator { Iterator(open: open) }

    struct Iterator: AsyncIteratorProtocol, Sendable {
        fileprivate let open: @Sendable () throws(FileError) -> ByteInput
        private var input: ByteInput?
        /// The bytes that were read; the first of them are in lines that were returned.
        private var bytes: [UInt8] = []
        private var start = 0
        private var hasEnded = false

        fileprivate init(open: @escaping @Sendable () throws(FileError) -> ByteInput) {
            self.open = open
        }

        mutating func next() async throws -> String? {
            guard !Task.isCancelled else { return nil }
            let input = try input ?? open()
            self.input = input
            // Where the search for the end of the line continues.
            var searched = start
            while !hasEnded {
                if let end = bytes[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                    defer { start = end + 1 }
                    return InputLines.text(bytes[start..<end])
                }
                bytes.removeFirst(start)
                start = 0
                guard bytes.count <= InputLines.lengthLimit else {
                    throw FileError(path: input.path, problem: "a line is longer than \(InputLines.lengthLimit) bytes")
                }
                searched = bytes.count
                let block = try await input.next()
                bytes += block
                hasEnded = block.isEmpty
            }
            guard !Task.isCancelled, start < bytes.count else { return nil }
            defer { start = bytes.count }
            return InputLines.text(bytes[start...])
        }
    }

    private static func text(_ line: ArraySlice<UInt8>) -> String {
        String(decoding: line.last == UInt8(ascii: "\r") ? line.dropLast() : line, as: UTF8.self)
    }
}
