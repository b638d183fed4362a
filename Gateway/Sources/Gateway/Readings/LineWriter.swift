import DequeModule
import Dispatch
import Foundation
import Logging
import Synchronization

/// Writes lines to a file descriptor on a thread of its own, so a reader that is slow holds nothing up.
///
/// Lines that cannot be written now, for example on a full disk, are dropped, and later ones are tried. Nothing is
/// written any more once the reader has gone.
final class LineWriter: Sendable {
    private struct State {
        var lines: Deque<String> = []
        var isWriting = false
        var droppedCount: UInt64 = 0
        /// Whether a line was dropped because the reader was too slow.
        var wasSlow = false
        /// Whether the reader has gone.
        var hasEnded = false
        /// The number of lines that could not be written; nil if the last ones could.
        var failedCount: Int?
        /// Whether the last line was written in part.
        var isLineIncomplete = false
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

    /// The number of lines that were dropped because the reader was too slow, or because they could not be written.
    var droppedCount: UInt64 { state.withLock(\.droppedCount) }

    /// Writes a line after the earlier ones, and returns at once.
    func write(_ line: String) {
        let (starts, isFirstDrop) = state.withLock { state -> (Bool, Bool) in
            guard !state.hasEnded else { return (false, false) }
            state.lines.append(line)
            var isFirstDrop = false
            if state.lines.count > Self.limit {
                state.lines.removeFirst()
                state.droppedCount += 1
                isFirstDrop = !state.wasSlow
                state.wasSlow = true
            }
            let starts = !state.isWriting
            state.isWriting = true
            return (starts, isFirstDrop)
        }
        if isFirstDrop { logger.warning("readings are lost: standard output is not read fast enough") }
        if starts { queue.async { [self] in writeAll() } }
    }

    private func writeAll() {
        while let batch = next() {
            let (count, error) = Self.write(batch.bytes, to: descriptor)
            if let error {
                failed(batch, count, error)
            } else {
                succeeded()
            }
        }
    }

    private func failed(_ batch: LineBatch, _ count: Int, _ error: Int32) {
        let isKnown = state.withLock { state in
            let isKnown = state.failedCount != nil
            let lostCount = batch.lostCount(afterWriting: count)
            state.failedCount = (state.failedCount ?? 0) + lostCount
            state.droppedCount += UInt64(lostCount)
            state.isLineIncomplete = batch.isIncomplete(afterWriting: count)
            if [EPIPE, EBADF].contains(error) { (state.hasEnded, state.lines) = (true, []) }
            return isKnown
        }
        guard !isKnown else { return }
        logger.warning("readings cannot be written to standard output: \(String(cString: strerror(error)))")
    }

    private func succeeded() {
        let failedCount = state.withLock { state in
            state.isLineIncomplete = false
            defer { state.failedCount = nil }
            return state.failedCount
        }
        guard let failedCount else { return }
        logger.notice("readings are written to standard output again; \(failedCount) were dropped")
    }

    /// Takes lines that wait; nil if there are none.
    private func next() -> LineBatch? {
        state.withLock { state in
            let lines = Array(state.lines.prefix(Self.lineCountOfWrite))
            state.lines.removeFirst(lines.count)
            state.isWriting = !lines.isEmpty
            return lines.isEmpty ? nil : LineBatch(lines, isAfterIncompleteLine: state.isLineIncomplete)
        }
    }

    /// Writes a text with as few system calls as possible.
    ///
    /// - Returns: false if the descriptor cannot be written; `errno` tells why.
    static func write(_ text: String, to descriptor: Int32) -> Bool {
        guard let error = write(Array(text.utf8), to: descriptor).error else { return true }
        errno = error
        return false
    }

    /// Writes bytes, and waits for a descriptor that does not block.
    ///
    /// - Returns: the number of bytes that were written, and why the others could not be written.
    static func write(_ bytes: [UInt8], to descriptor: Int32) -> (count: Int, error: Int32?) {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes {
                Foundation.write(descriptor, $0.baseAddress! + written, $0.count - written)
            }
            guard count < 0 else {
                written += count
                continue
            }
            let error = errno
            if error == EAGAIN {
                var event = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&event, 1, -1)
            } else if error != EINTR {
                return (written, error)
            }
        }
        return (written, nil)
    }

    /// Waits until the lines are written, for a limited time.
    func finish(timeout: Duration) {
        let written = DispatchSemaphore(value: 0)
        queue.async { written.signal() }
        _ = written.wait(timeout: .now() + .seconds(Int(timeout.components.seconds)))
    }
}
