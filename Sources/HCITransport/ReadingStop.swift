import ByteCoding
import CBluetooth
import Glibc

/// Ends, from any thread, a reading that may be waiting for octets.
public final class ReadingStop: Sendable {
    private let event = OwnedDescriptor(ble_eventfd())

    public init() {}

    /// What waits with this waits no longer, now or later.
    public func stop() {
        // An eventfd takes a number of 64 bits; any but zero will do.
        let number = [UInt8](repeating: 1, count: 8)
        _ = write(event.number, number.rawSpan)
    }

    /// Waits until a descriptor has something to read, or its end; false where the reading is to stop.
    ///
    /// - Parameter beforeWaiting: called where nothing is there yet.
    func wait(for descriptor: Int32, beforeWaiting: () -> Void) -> Bool {
        var entries = [
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: event.number, events: Int16(POLLIN), revents: 0),
        ]
        if uninterrupted({ unsafe Int(Glibc.poll(&entries, 2, 0)) }) == .success(0) {
            beforeWaiting()
            _ = uninterrupted { unsafe Int(Glibc.poll(&entries, 2, -1)) }
        }
        return entries[1].revents == 0
    }
}
