import CBluetooth
import Glibc
import Synchronization

/// Lets a transport wait for the next packet inside its read handler for a moment, while its link is busy.
///
/// Returning from a Dispatch handler and being called again costs about 5 us and two context switches for each packet.
/// While packets come less than ``duration`` apart, a transport with a linger waits in `poll` instead. It holds its queue
/// meanwhile: whoever hands work to that queue calls ``interrupt()`` after it, so that the work does not wait.
public final class Linger: Sendable {
    /// How long the handler waits, and how close together packets are on a busy link.
    public let duration: Duration

    private let wakeUp: OwnedDescriptor
    /// Work was handed to the queue since the handler last asked.
    private let hasWork = Atomic(false)
    private let isWaiting = Atomic(false)

    /// - Parameter duration: whole milliseconds; one at least.
    public init(duration: Duration = .milliseconds(1)) {
        self.duration = max(duration, .milliseconds(1))
        wakeUp = OwnedDescriptor(ble_eventfd())
    }

    /// Ends the wait that goes on, or the next one before it begins. Called from any thread, after work was enqueued.
    public func interrupt() {
        hasWork.store(true, ordering: .sequentiallyConsistent)
        guard isWaiting.load(ordering: .sequentiallyConsistent) else { return }
        var one: UInt64 = 1
        _ = unsafe Glibc.write(wakeUp.number, &one, MemoryLayout<UInt64>.size)
    }

    /// Waits for `descriptor` to have something to read; tells whether it has.
    func wait(for descriptor: Int32) -> Bool {
        guard wakeUp.number >= 0 else { return false }
        isWaiting.store(true, ordering: .sequentiallyConsistent)
        defer { isWaiting.store(false, ordering: .sequentiallyConsistent) }
        if hasWork.exchange(false, ordering: .sequentiallyConsistent) { return false }
        var entries = [
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: wakeUp.number, events: Int16(POLLIN), revents: 0),
        ]
        let (seconds, attoseconds) = duration.components
        let milliseconds = Int32(clamping: seconds * 1000 + attoseconds / 1_000_000_000_000_000)
        guard unsafe Glibc.poll(&entries, 2, milliseconds) > 0 else { return false }
        guard entries[1].revents == 0 else {
            var count: UInt64 = 0
            _ = unsafe Glibc.read(wakeUp.number, &count, MemoryLayout<UInt64>.size)
            hasWork.store(false, ordering: .sequentiallyConsistent)
            return false
        }
        return true
    }
}
