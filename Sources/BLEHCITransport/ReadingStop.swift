import BLEByteCoding
import CBLEBluetooth
import Glibc

/// Stops a read from any thread, even if it waits for bytes.
public final class ReadingStop: Sendable {
    private let event = OwnedDescriptor(ble_eventfd())

    /// Creates an object that has not stopped anything.
    public init() {}

    /// Ends current and future waits with this object.
    public func stop() {
        // An eventfd takes a 64-bit number; any number except zero works.
        let number = [UInt8](repeating: 1, count: 8)
        _ = write(event.number, number.rawSpan)
    }

    /// Waits until a descriptor is readable or at its end. Returns false when reading is stopped.
    ///
    /// - Parameter beforeWaiting: called if nothing is available yet.
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
