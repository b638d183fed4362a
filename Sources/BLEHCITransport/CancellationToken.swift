import BLEByteCoding
import CBLEBluetooth
import Glibc
import Synchronization

/// A token that cancels a read from any thread, even if the read waits for bytes. It also cancels a capture that waits
/// for the reader of a pipe.
public final class CancellationToken: Sendable {
    /// The longest time between two checks of ``isCancelled`` if the process had no descriptor left for the event.
    private static let interval: Int32 = 100

    private let event = OwnedDescriptor(ble_eventfd())
    private let cancelled = Atomic(false)

    /// Creates a token that is not cancelled.
    public init() {}

    /// Whether ``cancel()`` was called.
    var isCancelled: Bool { cancelled.load(ordering: .sequentiallyConsistent) }

    /// Ends current and future waits with this token.
    public func cancel() {
        cancelled.store(true, ordering: .sequentiallyConsistent)
        // An eventfd takes a 64-bit number; any number except zero works.
        let number = [UInt8](repeating: 1, count: 8)
        _ = write(event.number, number.rawSpan)
    }

    /// Waits until a descriptor is ready, or at its end. Returns false when reading is cancelled.
    ///
    /// - Parameters:
    ///   - events: the events to wait for: those of a descriptor that is readable, if none are given.
    ///   - beforeWaiting: called if the descriptor is not ready yet.
    func wait(
        for descriptor: Int32,
        events: Int32 = POLLIN,
        beforeWaiting: () -> Void = {}
    ) throws(Errno) -> Bool {
        // `poll` ignores an entry with a negative number.
        var entries = [
            pollfd(fd: descriptor, events: Int16(truncatingIfNeeded: events), revents: 0),
            pollfd(fd: event.number, events: Int16(POLLIN), revents: 0),
        ]
        func isReady(within milliseconds: Int32) throws(Errno) -> Bool {
            try uninterrupted({ unsafe Int(Glibc.poll(&entries, 2, milliseconds)) }).get() > 0
        }
        if try !isReady(within: 0) {
            beforeWaiting()
            let limit = event.number < 0 ? CancellationToken.interval : -1
            while !isCancelled {
                if try isReady(within: limit) { break }
            }
        }
        return !isCancelled
    }

    /// Waits for a time, or less if reading is stopped or a signal arrives. Returns false when reading is cancelled.
    func pause(milliseconds: Int32) -> Bool {
        var entry = pollfd(fd: event.number, events: Int16(POLLIN), revents: 0)
        _ = unsafe Glibc.poll(&entry, 1, milliseconds)
        return !isCancelled
    }
}
