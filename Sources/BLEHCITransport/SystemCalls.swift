import CBLEBluetooth
import Glibc
import Synchronization

/// Returns the system's description of an errno.
func describe(_ errno: Int32) -> String {
    unsafe strerror(errno).map { unsafe String(cString: $0) } ?? "error \(errno)"
}

/// Returns what to do about an errno that concerns this machine, not the file or the peer; nil for other errnos.
func advice(_ errno: Int32) -> String? {
    switch errno {
    case EMFILE: "raise the limit of open files with `ulimit -n`"
    case ENFILE: "close other programs, or raise the limit with `sysctl fs.file-max`"
    case ENOMEM, ENOBUFS: "the machine has no memory left; close other programs"
    default: nil
    }
}

/// Returns the system's description of an errno, and what to do about it if that is known.
func describeWithAdvice(_ errno: Int32) -> String {
    guard let advice = advice(errno) else { return describe(errno) }
    return "\(describe(errno)); \(advice)"
}

struct Errno: Error, Equatable {
    let code: Int32

    var wouldBlock: Bool { code == EAGAIN || code == EWOULDBLOCK }
}

/// Repeats a call that a signal interrupts.
func uninterrupted(_ call: () -> Int) -> Result<Int, Errno> {
    while true {
        let result = call()
        if result >= 0 { return .success(result) }
        if errno != EINTR { return .failure(Errno(code: errno)) }
    }
}

/// Reads into `buffer`, starting at `offset`.
func read(_ descriptor: Int32, into buffer: inout [UInt8], from offset: Int) -> Result<Int, Errno> {
    unsafe buffer.withUnsafeMutableBytes { bytes in
        let room = unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[offset...])
        return uninterrupted { unsafe Glibc.read(descriptor, room.baseAddress, room.count) }
    }
}

/// Reads one packet of a raw HCI channel. `isInbound` is false for a packet that the kernel's own stack sent.
func receive(_ descriptor: Int32, into buffer: inout [UInt8], isInbound: inout Bool) -> Result<Int, Errno> {
    var direction: Int32 = 1
    defer { isInbound = direction != 0 }
    return unsafe buffer.withUnsafeMutableBytes { bytes in
        uninterrupted { unsafe ble_hci_receive(descriptor, bytes.baseAddress, bytes.count, &direction) }
    }
}

/// Reads one message of a socket. If the kernel reports when it received the message, `time` is set to that.
func receive(_ descriptor: Int32, into buffer: inout [UInt8], time: inout timespec) -> Result<Int, Errno> {
    unsafe buffer.withUnsafeMutableBytes { bytes in
        uninterrupted { unsafe ble_receive_timed(descriptor, bytes.baseAddress, bytes.count, &time) }
    }
}

func write(_ descriptor: Int32, _ bytes: RawSpan) -> Result<Int, Errno> {
    let result = unsafe bytes.withUnsafeBytes { bytes in
        uninterrupted { unsafe Glibc.write(descriptor, bytes.baseAddress, bytes.count) }
    }
    return checked(result, bytes)
}

/// Writes to a file. If it is a pipe whose other end is closed, returns `EPIPE`. If it has reached the size limit of
/// the process, returns `EFBIG`. Neither raises a signal that ends the process.
func writeWithoutSignal(_ descriptor: Int32, _ bytes: RawSpan) -> Result<Int, Errno> {
    let result = unsafe bytes.withUnsafeBytes { bytes in
        uninterrupted { unsafe ble_write_without_signal(descriptor, bytes.baseAddress, bytes.count) }
    }
    return checked(result, bytes)
}

/// Returns `EIO` for a write that transferred none of its bytes. Otherwise, a device that accepts nothing and reports
/// no error would be tried without end.
private func checked(_ result: Result<Int, Errno>, _ bytes: RawSpan) -> Result<Int, Errno> {
    result == .success(0) && !bytes.isEmpty ? .failure(Errno(code: EIO)) : result
}

/// Writes to a socket. If the other end is closed, returns an error instead of raising a signal that ends the process.
func send(_ descriptor: Int32, _ bytes: RawSpan) -> Result<Int, Errno> {
    unsafe bytes.withUnsafeBytes { bytes in
        uninterrupted { unsafe Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL)) }
    }
}

/// Waits until a descriptor is ready for one of `events`. Returns false at `deadline`, on the monotonic clock.
func poll(_ descriptor: Int32, events: Int32, until deadline: UInt64) throws(Errno) -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(truncatingIfNeeded: events), revents: 0)
    while true {
        let count = unsafe Glibc.poll(&entry, 1, milliseconds(until: deadline))
        if count >= 0 { return count > 0 }
        // A signal does not extend the time.
        guard errno == EINTR else { throw Errno(code: errno) }
    }
}

/// The time left until `deadline`, rounded up.
func milliseconds(until deadline: UInt64) -> Int32 {
    let now = monotonicNanoseconds()
    return now >= deadline ? 0 : Int32(clamping: (deadline - now + 999_999) / 1_000_000)
}

/// Blocks the thread for a time, or less if a signal arrives.
func pause(milliseconds: Int32) {
    _ = Glibc.poll(nil, 0, milliseconds)
}

/// The realtime clock, which may be set while the process runs: the time since 1970-01-01 00:00 UTC.
func wallClock() -> timespec {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return time
}

/// The time since the machine was started, also while it was suspended, in nanoseconds.
func bootNanoseconds() -> Int64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_BOOTTIME, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

/// The monotonic clock, in nanoseconds.
func monotonicNanoseconds() -> UInt64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// A descriptor that is closed with its last reference.
final class OwnedDescriptor: Sendable {
    let number: Int32
    private let endUse: (@Sendable (Int32) -> Void)?
    private let isReleased = Atomic(false)

    /// - Parameters:
    ///   - number: the result of a call. A negative number is not closed.
    ///   - endUse: called once with the number, by ``release()`` or just before the descriptor is closed.
    init(_ number: Int32, endUse: (@Sendable (Int32) -> Void)? = nil) {
        self.number = number
        self.endUse = endUse
    }

    deinit {
        guard number >= 0 else { return }
        release()
        _ = Glibc.close(number)
    }

    /// Ends the use of what the descriptor stands for, so that it can be opened again although this descriptor is still
    /// open. A later call does nothing.
    func release() {
        guard let endUse, !isReleased.exchange(true, ordering: .acquiringAndReleasing) else { return }
        endUse(number)
    }
}
