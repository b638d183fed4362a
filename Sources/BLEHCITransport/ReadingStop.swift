import BLEByteCoding
import CBLEBluetooth
import Glibc
import Synchronization

/// Stops a read from any thread, even if it waits for bytes.
public final class ReadingStop: Sendable {
    /// The longest wait between two looks at ``isStopped`` if the process had no descriptor left for the event.
    private static let interval: Int32 = 100

    private let event = OwnedDescriptor(ble_eventfd())
    private let isStopped = Atomic(false)

    /// Creates an object that has not stopped anything.
    public init() {}

    /// Ends current and future waits with this object.
    public func stop() {
        isStopped.store(true, ordering: .sequentiallyConsistent)
        // An eventfd takes a 64-bit number; any number except zero works.
        let number = [UInt8](repeating: 1, count: 8)
        _ = write(event.number, number.rawSpan)
    }

    /// Waits until a descriptor is readable or at its end. Returns false when reading is stopped.
    ///
    /// - Parameter beforeWaiting: called if nothing is available yet.
    func wait(for descriptor: Int32, beforeWaiting: () -> Void) throws(Errno) -> Bool {
        // `poll` ignores an entry with a negative number.
        var entries = [
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: event.number, events: Int16(POLLIN), revents: 0),
        ]
        func isReady(within milliseconds: Int32) throws(Errno) -> Bool {
            try uninterrupted({ unsafe Int(Glibc.poll(&entries, 2, milliseconds)) }).get() > 0
        }
        if try !isReady(within: 0) {
            beforeWaiting()
            let limit = event.number < 0 ? ReadingStop.interval : -1
            while !isStopped.load(ordering: .sequentiallyConsistent) {
                if try isReady(within: limit) { break }
            }
        }
        return !isStopped.load(ordering: .sequentiallyConsistent)
    }
}
