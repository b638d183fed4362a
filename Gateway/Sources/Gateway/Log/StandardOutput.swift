import Foundation

/// Standard output, to which a command writes its answer.
enum StandardOutput {
    /// Writes a text and a line break.
    ///
    /// - Parameter descriptor: where to write; another file descriptor is for tests.
    /// - Throws: ``OutputError`` if not everything could be written.
    static func line(_ text: String, to descriptor: Int32 = STDOUT_FILENO) throws(OutputError) {
        guard LineWriter.write(text + "\n", to: descriptor) else { throw OutputError(errorNumber: errno) }
    }
}

/// The reason why the answer of a command cannot be written.
struct OutputError: Error, Equatable, CustomStringConvertible {
    let errorNumber: Int32

    var description: String { "standard output cannot be written: \(String(cString: strerror(errorNumber)))" }
}
