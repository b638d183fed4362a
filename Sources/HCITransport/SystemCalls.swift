import CBluetooth
import Glibc

/// The system's words for an errno.
func describe(_ errno: Int32) -> String {
    unsafe strerror(errno).map { unsafe String(cString: $0) } ?? "error \(errno)"
}

/// Repeats a call that a signal has interrupted.
func uninterrupted(_ call: () -> Int) -> Result<Int, Errno> {
    while true {
        let result = call()
        if result >= 0 { return .success(result) }
        if errno != EINTR { return .failure(Errno(code: errno)) }
    }
}

struct Errno: Error, Equatable {
    let code: Int32

    var wouldBlock: Bool { code == EAGAIN || code == EWOULDBLOCK }
}

/// Reads into `buffer` from `offset` on.
func read(_ descriptor: Int32, into buffer: inout [UInt8], from offset: Int) -> Result<Int, Errno> {
    unsafe buffer.withUnsafeMutableBytes { bytes in
        let room = unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[offset...])
        return uninterrupted { unsafe Glibc.read(descriptor, room.baseAddress, room.count) }
    }
}

func write(_ descriptor: Int32, _ bytes: RawSpan) -> Result<Int, Errno> {
    unsafe bytes.withUnsafeBytes { bytes in
        uninterrupted { unsafe Glibc.write(descriptor, bytes.baseAddress, bytes.count) }
    }
}

/// Waits until a descriptor is ready for one of `events`, or for `milliseconds`; tells whether it is.
func poll(_ descriptor: Int32, events: Int32, milliseconds: Int32) -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(truncatingIfNeeded: events), revents: 0)
    return unsafe Glibc.poll(&entry, 1, milliseconds) > 0
}
