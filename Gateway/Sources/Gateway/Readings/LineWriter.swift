import DequeModule
import Dispatch
import Foundation
import Logging
import Synchronization

/// Writes lines to a file descriptor on a thread of its own, so a reader that is slow holds nothing up.
final class LineWriter: Sendable {
    private struct State {
        var lines: Deque<String> = []
        var isWriting = false
        var droppedCount: UInt64 = 0
        var hasFailed = false
    }

    /// The greatest number of lines that wait; beyond it the oldest are dropped.
    static let limit = 4096

    /// The greatest number of lines in one system call.
    private static let lineCountOfWrite = 64

    private let descriptor: Int32
    private let logger: Logger
    private let queue = DispatchQueue(label: "ble-gateway.readings")
    private let state = Mutex(State())

    init(descriptor: Int32, logger: Logger) {
        self.descriptor = descriptor
        self.logger = logger
    }

    /// The number of lines that were dropped because the reader was too slow.
    var droppedCount: UInt64 { state.withLock(\.droppedCount) }

    /// Writes a line after the earlier ones, and returns at once.
    func write(_ line: String) {
        let (starts, isFirstDrop) = state.withLock { state -> (Bool, Bool) in
            guard !state.hasFailed else { return (false, false) }
            state.lines.append(line)
            let isFull = state.lines.count > Self.limit
            if isFull {
                state.lines.removeFirst()
                state.droppedCount += 1
            }
            let starts = !state.isWriting
            state.isWriting = true
            return (starts, isFull && state.droppedCount == 1)
        }
        if isFirstDrop { logger.warning("readings are lost: standard output is not read fast enough") }
        if starts { queue.async { [self] in writeAll() } }
    }

    private func writeAll() {
        while let lines = next() {
            guard Self.write(lines, to: descriptor) else {
                state.withLock { ($0.hasFailed, $0.lines) = (true, []) }
                let reason = String(cString: strerror(errno))
                logger.warning("readings cannot be written to standard output: \(reason)")
                return
            }
        }
    }

    /// Takes lines that wait, each with its line break; nil if there are none.
    private func next() -> String? {
        let lines = state.withLock { state in
            let lines = Array(state.lines.prefix(Self.lineCountOfWrite))
            state.lines.removeFirst(lines.count)
            state.isWriting = !lines.isEmpty
            return lines
        }
        return lines.isEmpty ? nil : lines.joined(separator: "\n") + "\n"
    }

    /// Writes a text with as few system calls as possible.
    ///
    /// - Returns: false if the descriptor cannot be written; `errno` tells why.
    static func write(_ text: String, to descriptor: Int32) -> Bool {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 {
                guard errno == EINTR else { return false }
            } else {
                bytes = bytes.dropFirst(count)
            }
        }
        return true
    }

    /// Waits until the lines are written, for a limited time.
    func finish(timeout: Duration) {
        let written = DispatchSemaphore(value: 0)
        queue.async { written.signal() }
        _ = written.wait(timeout: .now() + .seconds(Int(timeout.components.seconds)))
    }
}
