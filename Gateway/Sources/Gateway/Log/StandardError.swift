import Foundation

/// Standard error, to which each line is written by one system call.
enum StandardError {
    /// Writes text.
    static func write(_ text: String) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Foundation.write(STDERR_FILENO, $0.baseAddress, $0.count) }
            if count < 0 {
                guard errno == EINTR else { return }
            } else {
                bytes = bytes.dropFirst(count)
            }
        }
    }
}
