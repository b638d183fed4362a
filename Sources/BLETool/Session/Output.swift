import BLEProfiles
import Glibc
import Synchronization

/// Standard output, whole lines at a time, from any task.
final class Output: Sendable {
    static let standard = Output()

    private let lock = Mutex(())

    private init() {}

    func line(_ text: String) throws(OutputError) {
        try write(text + "\n")
    }

    func json(_ value: JSON) throws(OutputError) {
        try write(value.description + "\n")
    }

    func write(_ text: String) throws(OutputError) {
        try write(Array(text.utf8))
    }

    func write(_ bytes: [UInt8]) throws(OutputError) {
        let failure = lock.withLock { _ in Output.write(bytes, to: STDOUT_FILENO) }
        if let failure { throw failure }
    }

    /// Prints one line on standard error.
    static func complain(_ message: String) {
        let line = message.split(whereSeparator: \.isNewline).joined(separator: " ")
        _ = write(Array("ble: \(line)\n".utf8), to: STDERR_FILENO)
    }

    /// Prints a warning of the library on standard error, with the tool's own option for the state directory.
    static func complainAboutState(_ message: String) {
        complain(ToolError.withStateOption(message))
    }

    /// Writes all of the bytes; returns an error if they could not be written.
    static func write(_ bytes: [UInt8], to descriptor: Int32) -> OutputError? {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = unsafe poll(&waiting, 1, -1)
            } else if errno != EINTR {
                return OutputError(errno: errno)
            }
        }
        return nil
    }
}

/// Standard output accepts no more data.
struct OutputError: Error, CustomStringConvertible {
    let errno: Int32

    /// Whether the reader has closed its end. That is not an error, so it is not reported.
    var isBrokenPipe: Bool { errno == EPIPE }

    var description: String { unsafe "cannot write to standard output: \(String(cString: strerror(errno)))" }
}
