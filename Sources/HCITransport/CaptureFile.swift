import ByteCoding
import CBluetooth
import Capture
import Glibc

/// A capture that is being written to a file. It outlives the transports of a recovery.
///
/// Each packet is written as it passes, whole, with one call; so the file of a process that was killed ends with a whole
/// record.
public final class CaptureFile: @unchecked Sendable {
    private let descriptor: OwnedDescriptor
    private let microsecondsSince1970: @Sendable () -> Int64
    private var writer: CaptureWriter
    private var buffer = PacketBuffer(capacity: 1024, headroom: 0)
    private var length = 0
    /// Why the capture has ended before its time, if it has: a full disk, say. The link goes on.
    public private(set) var failure: TransportError?
    private let path: String

    /// Creates the file, or empties the one that is there. Only its owner may read it, for a capture holds keys.
    ///
    /// - Parameters:
    ///   - format: where none is given, H4 packets in what the path's name says.
    ///   - microsecondsSince1970: the wall clock; the system's where none is given.
    public init(
        path: String,
        format: CaptureWriter.Format? = nil,
        microsecondsSince1970: (@Sendable () -> Int64)? = nil
    ) throws(TransportError) {
        self.path = path
        writer = CaptureWriter(format ?? .h4(path: path))
        self.microsecondsSince1970 = microsecondsSince1970 ?? systemMicrosecondsSince1970
        descriptor = OwnedDescriptor(unsafe ble_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600))
        guard descriptor.number >= 0 else { throw .captureFile(path, errno: -descriptor.number) }
        writer.encodeHeader(into: &buffer)
        flush()
        if let failure { throw failure }
    }

    /// Appends a packet with its H4 indicator. Called on the transport's loop only.
    public func append(_ packet: RawSpan, direction: CaptureDirection) {
        guard failure == nil else { return }
        let time = CaptureTime(microsecondsSince1970: microsecondsSince1970())
        writer.encode(h4Packet: packet, direction, time: time, into: &buffer)
        flush()
    }

    /// Appends a record as it was read; one for which the format has no place is left out.
    public func append(_ record: borrowing CaptureRecord) {
        guard failure == nil, writer.encode(record, into: &buffer) else { return }
        flush()
    }

    /// Writes what is in the buffer; what a failure leaves of a record is cut off again.
    private func flush() {
        defer { buffer.reset() }
        var written = 0
        while written < buffer.count {
            switch write(descriptor.number, buffer.bytes.extracting(droppingFirst: written)) {
            case .success(let count): written += count
            case .failure(let error):
                failure = .captureFile(path, errno: error.code)
                _ = ftruncate(descriptor.number, length)
                return
            }
        }
        length += written
    }
}

extension CaptureWriter.Format {
    /// H4 packets: in pcapng for a path that ends so, in btsnoop for any other.
    public static func h4(path: String) -> CaptureWriter.Format { path.hasSuffix(".pcapng") ? .pcapng : .btsnoop }

    /// What Linux's monitor channel gives: in pcapng for a path that ends so, in btsnoop for any other.
    public static func monitor(path: String) -> CaptureWriter.Format {
        path.hasSuffix(".pcapng") ? .pcapngMonitor : .btsnoopMonitor
    }
}

private func systemMicrosecondsSince1970() -> Int64 {
    let time = wallClock()
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
}
