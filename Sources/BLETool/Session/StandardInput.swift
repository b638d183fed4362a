import Dispatch
import Glibc

/// The lines of standard input.
enum StandardInput {
    static var isTerminal: Bool { isatty(STDIN_FILENO) == 1 }

    /// Reads on a separate thread, which may block. The stream ends with the input.
    static func lines() -> AsyncStream<String> {
        AsyncStream { continuation in
            DispatchQueue(label: "ble.standard-input").async {
                while let line = readLine() { continuation.yield(line) }
                continuation.finish()
            }
        }
    }
}
