import ByteCoding
import CBluetooth
import Capture
import Glibc

/// A capture that is being written to a file. It outlives the transports of a recovery.
///
/// Each packet is written as it passes, whole, with one call; so the file of a process that was killed ends with a whole
/// record.
public final class CaptureFile: @unchecked Sendable {
    // @unchecked: used on the loop of its transport only.

    private let descriptor: OwnedDescriptor
    private let microsecondsSince1970: @Sendable () -> Int64
    private var writer: CaptureWriter
    private var buffer = PacketBuffer(capacity: 1024, headroom: 0)
    private var length = 0
    /// Replaces keys, where that is asked for.
    private var mask: CaptureKeyMask?
    /// Why the capture has ended before its time, if it has: a full disk, say. The link goes on.
    public private(set) var failure: TransportError?
    private let path: String

    /// Creates the file, or empties the one that is there. Only its owner may read it, for a capture holds keys.
    ///
    /// A symbolic link is not followed: it is an error (`ELOOP`). A file that is there must belong to this user, else it is
    /// an error (`EPERM`); it is made readable and writable by its owner alone.
    ///
    /// - Parameters:
    ///   - format: where none is given, H4 packets in what the path's name says.
    ///   - masksKeys: whether keys are replaced by zeros; see ``CaptureKeyMask``.
    ///   - microsecondsSince1970: the wall clock; the system's where none is given.
    public init(
        path: String,
        format: CaptureWriter.Format? = nil,
        masksKeys: Bool = false,
        microsecondsSince1970: (@Sendable () -> Int64)? = nil
    ) throws(TransportError) {
        self.path = path
        writer = CaptureWriter(format ?? .h4(path: path))
        self.microsecondsSince1970 = microsecondsSince1970 ?? systemMicrosecondsSince1970
        mask = masksKeys ? CaptureKeyMask() : nil
        // Emptied only once it is known whose it is.
        descriptor = OwnedDescriptor(unsafe ble_open(path, O_WRONLY | O_CREAT | O_NOFOLLOW, 0o600))
        guard descriptor.number >= 0 else { throw .captureFile(path, errno: -descriptor.number) }
        let obstacle = makePrivate(descriptor.number)
        guard obstacle == 0 else { throw .captureFile(path, errno: obstacle) }
        writer.encodeHeader(into: &buffer)
        flush()
        if let failure { throw failure }
    }

    /// Appends a packet with its H4 indicator. Called on the transport's loop only.
    public func append(_ packet: RawSpan, direction: CaptureDirection) {
        guard failure == nil else { return }
        let time = CaptureTime(microsecondsSince1970: microsecondsSince1970())
        if let masked = masked(packet, direction) {
            writer.encode(h4Packet: masked.rawSpan, direction, time: time, into: &buffer)
        } else {
            writer.encode(h4Packet: packet, direction, time: time, into: &buffer)
        }
        flush()
    }

    /// Appends a record as it was read; one for which the format has no place is left out.
    public func append(_ record: borrowing CaptureRecord) {
        guard failure == nil else { return }
        var masked: [UInt8]?
        switch record.content {
        case .packet(let kind, let direction, let bytes):
            masked = mask?.mask(kind, direction, bytes, adapterIndex: record.adapterIndex)
        case .note(let note, let bytes): masked = mask?.mask(note, bytes)
        case .malformed: break
        }
        let isWritten =
            if let masked {
                writer.encode(record, replacingBytesWith: masked.rawSpan, into: &buffer)
            } else {
                writer.encode(record, into: &buffer)
            }
        if isWritten { flush() }
    }

    /// A packet with its H4 indicator, without its keys; nil where nothing in it is masked.
    private func masked(_ packet: RawSpan, _ direction: CaptureDirection) -> [UInt8]? {
        guard mask != nil, let indicator = packet[checked: 0], let kind = CapturedPacketKind(rawValue: indicator) else {
            return nil
        }
        return mask?.mask(kind, direction, packet.extracting(droppingFirst: 1)).map { [indicator] + $0 }
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

/// Makes a file that is open its owner's alone and empties it.
///
/// - Returns: an `errno`; zero where it is done, or where it is no regular file, such as a pipe.
private func makePrivate(_ descriptor: CInt) -> CInt {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { return errno }
    guard status.st_mode & S_IFMT == S_IFREG else { return 0 }
    guard status.st_uid == geteuid() else { return EPERM }
    guard fchmod(descriptor, 0o600) == 0, ftruncate(descriptor, 0) == 0 else { return errno }
    return 0
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
