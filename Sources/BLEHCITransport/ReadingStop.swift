import BLEByteCoding
import CBLEBluetooth
import Glibc
import Synchronization

/// Stops a read from any thread, even if it waits for bytes. Also stops a capture that waits for the reader of a pipe.
public final class ReadingStop: Sendable {
    /// The longest wait between two looks at ``isStopped`` if the process had no descriptor left for the event.
    private static let interval: Int32 = 100

    private let event = OwnedDescriptor(ble_eventfd())
    private let stopped = Atomic(false)

    /// Creates an object that has not stopped anything.
    public init() {}

    /// Whether ``stop()`` was called.
    var isStopped: Bool { stopped.load(ordering: .sequentiallyConsistent) }

    /// Ends current and future waits with this object.
    public func stop() {
        stopped.store(true, ordering: .sequentiallyConsistent)
        // An eventfd takes a 64-bit number; any number except zero works.
        let number = [UInt8](repeating: 1, count: 8)
        _ = write(event.number, number.rawSpan)
    }

    /// Waits until a descriptor is ready, or at its end. Returns false when reading is stopped.
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
            let limit = event.number < 0 ? ReadingStop.interval : -1
            while !isStopped {
                if try isReady(within: limit) { break }
            }
        }
        return !isStopped
    }

    /// Waits for a time, or less if reading is stopped or a signal arrives. Returns false when reading is stopped.
    func pause(milliseconds: Int32) -> Bool {
        var entry = pollfd(fd: event.number, events: Int16(POLLIN), revents: 0)
        _ = unsafe Glibc.poll(&entry, 1, milliseconds)
        return !isStopped
    }
}
