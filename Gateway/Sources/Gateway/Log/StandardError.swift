import Foundation

/// Standard error, to which each line is written by one system call.
enum StandardError {
    /// Writes text.
    static func write(_ text: String) {
        _ = LineWriter.write(text, to: STDERR_FILENO)
    }
}
