import BLEByteCoding
import BLECapture
import CBLEBluetooth
import Glibc

/// A capture that is being written to a file. It outlives the transports of a recovery.
///
/// Each packet is written whole, with one call, as it passes. So the file of a process that was killed ends with a
/// whole record. The file of a transport is confined to the loop of the transport.
public final class CaptureFile {
    /// The bytes that a pipe holds for a reader that pauses, if the system permits so many.
    private static let pipeCapacity: Int32 = 1 << 20
    /// The time between two looks for the reader of a pipe, in milliseconds.
    private static let readerInterval: Int32 = 20

    /// Nil after a failure, so that the reader of a pipe finds its end.
    private var descriptor: OwnedDescriptor?
    private let microsecondsSince1970: @Sendable () -> Int64
    private var writer: CaptureWriter
    private var buffer = PacketBuffer(capacity: 1024, headroom: 0)
    private var length = 0
    /// Replaces keys with zeros, if requested.
    private var mask: CaptureKeyMask?
    /// The error that ended the capture early, such as a full disk. The transport continues without the capture.
    public private(set) var failure: TransportError?
    /// Ends the waits for the reader of a pipe; nil if there are none.
    private let waiting: CancellationToken?
    private var onFailure: (@Sendable (TransportError) -> Void)?
    private let path: String

    /// Creates the file, or empties an existing file. Only its owner may read it, because a capture contains keys.
    ///
    /// A symbolic link is not followed: it is an error (`ELOOP`). An existing file or pipe must belong to this user,
    /// otherwise it is an error (`EPERM`). Its mode is changed so that only its owner can read and write it. If it
    /// fails, a new file is removed again. A device such as `/dev/null` is used as it is.
    ///
    /// A transport's loop does not wait for the reader of a named pipe. Without a reader, it is an error (`ENXIO`). If
    /// the pipe is full, the capture ends (`EAGAIN`), possibly within a record. A caller that may wait gets the same
    /// errors only when its wait is stopped.
    ///
    /// Only one capture at a time can be written to a file. Two would overwrite each other's records.
    ///
    /// - Parameters:
    ///   - path: the file's path.
    ///   - format: the format; nil for H4 packets in the format that the path's name implies.
    ///   - masksKeys: whether keys are replaced by zeros.
    ///   - mayWait: whether to block the thread until a named pipe has a reader, and at each packet until it has room.
    ///     Must be false for the capture of a transport.
    ///   - stop: ends these waits; nil if nothing ends them.
    ///   - microsecondsSince1970: the clock; nil for the system's realtime clock at the start, and the time since then.
    ///   - onFailure: called when the capture ends early, with ``failure``.
    /// - Throws: ``TransportError/captureFile(_:errno:)``.
    public init(
        path: String,
        format: CaptureWriter.Format? = nil,
        masksKeys: Bool = false,
        mayWait: Bool = false,
        stop: CancellationToken? = nil,
        microsecondsSince1970: (@Sendable () -> Int64)? = nil,
        onFailure: (@Sendable (TransportError) -> Void)? = nil
    ) throws(TransportError) {
        self.path = path
        writer = CaptureWriter(format ?? .h4(path: path))
        self.microsecondsSince1970 = microsecondsSince1970 ?? steadyMicrosecondsSince1970()
        mask = masksKeys ? CaptureKeyMask() : nil
        waiting = mayWait ? stop ?? CancellationToken() : nil
        let (opened, isNew) = CaptureFile.open(path, waiting)
        guard opened.number >= 0 else { throw .captureFile(path, errno: -opened.number) }
        descriptor = opened
        do throws(Errno) {
            // The file is emptied only after its owner is verified.
            try makePrivate(opened.number, pipeCapacity: CaptureFile.pipeCapacity)
        } catch {
            if isNew { unsafe unlink(path) }
            throw .captureFile(path, errno: error.code)
        }
        writer.encodeHeader(into: &buffer)
        flush()
        if let failure {
            if isNew { unsafe unlink(path) }
            throw failure
        }
        self.onFailure = onFailure
    }

    /// Opens the file. The number of the descriptor is a negative errno if that fails.
    ///
    /// - Parameter waiting: ends the wait for the reader of a pipe; nil if it must not be waited for.
    private static func open(_ path: String, _ waiting: CancellationToken?) -> (OwnedDescriptor, isNew: Bool) {
        let flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK
        let new = unsafe ble_open(path, flags | O_EXCL, 0o600)
        guard new == -EEXIST else { return (OwnedDescriptor(new), true) }
        // The existing file may be removed at this moment, and is then made again.
        var existing = unsafe ble_open(path, flags, 0o600)
        // The system does not report that a pipe has got a reader.
        while existing == -ENXIO, let waiting, isPipe(path), waiting.pause(milliseconds: readerInterval) {
            existing = unsafe ble_open(path, flags, 0o600)
        }
        return (OwnedDescriptor(existing), false)
    }

    /// Whether a path is that of a named pipe. Sockets and devices can have the same error for another reason.
    private static func isPipe(_ path: String) -> Bool {
        var status = stat()
        return unsafe lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
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

    /// Appends a record that was read. A record that the format cannot represent is left out.
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

    /// Returns a packet with its H4 indicator and masked keys, or nil if nothing in it is masked.
    private func masked(_ packet: RawSpan, _ direction: CaptureDirection) -> [UInt8]? {
        guard mask != nil, let indicator = packet[checked: 0], let kind = CapturedPacketKind(rawValue: indicator) else {
            return nil
        }
        return mask?.mask(kind, direction, packet.extracting(droppingFirst: 1)).map { [indicator] + $0 }
    }

    /// Writes the buffer. After a failure, a partially written record is cut off again. In a pipe it stays, and is
    /// the last.
    private func flush() {
        defer { buffer.reset() }
        guard let descriptor else { return }
        var written = 0
        while written < buffer.count {
            switch writeWithoutSignal(descriptor.number, buffer.bytes.extracting(droppingFirst: written)) {
            case .success(let count): written += count
            case .failure(let error) where error.wouldBlock && waitForRoom(descriptor.number): continue
            case .failure(let error):
                _ = ftruncate(descriptor.number, length)
                let failure = TransportError.captureFile(path, errno: error.code)
                self.failure = failure
                self.descriptor = nil
                onFailure?(failure)
                return
            }
        }
        length += written
    }

    /// Waits until a pipe has room or its reader has closed it. Returns false if the capture must not wait any longer.
    private func waitForRoom(_ descriptor: Int32) -> Bool {
        guard let waiting else { return false }
        return (try? waiting.wait(for: descriptor, events: POLLOUT)) ?? false
    }
}

/// Makes an open file or pipe accessible to its owner only. Empties a file, and enlarges a pipe if possible. A device
/// stays as it is.
private func makePrivate(_ descriptor: CInt, pipeCapacity: Int32) throws(Errno) {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw Errno(code: errno) }
    let type = status.st_mode & S_IFMT
    guard type == S_IFREG || type == S_IFIFO else { return }
    guard status.st_uid == geteuid() else { throw Errno(code: EPERM) }
    guard fchmod(descriptor, 0o600) == 0 else { throw Errno(code: errno) }
    if type == S_IFIFO {
        _ = ble_pipe_enlarge(descriptor, pipeCapacity)
    } else {
        _ = try uninterrupted { Int(ftruncate(descriptor, 0)) }.get()
    }
}

extension CaptureWriter.Format {
    /// H4 packets: in pcapng if the path ends with ".pcapng", in btsnoop otherwise.
    public static func h4(path: String) -> CaptureWriter.Format { path.hasSuffix(".pcapng") ? .pcapng : .btsnoop }

    /// Packets of Linux's monitor channel: in pcapng if the path ends with ".pcapng", in btsnoop otherwise.
    public static func monitor(path: String) -> CaptureWriter.Format {
        path.hasSuffix(".pcapng") ? .pcapngMonitor : .btsnoopMonitor
    }
}

/// Returns a clock that starts with the realtime clock and continues with the time since, asleep or awake. So steps of
/// the realtime clock change neither the order of the packets nor the time between them.
private func steadyMicrosecondsSince1970() -> @Sendable () -> Int64 {
    let start = wallClock()
    let offset = Int64(start.tv_sec) * 1_000_000_000 + Int64(start.tv_nsec) - bootNanoseconds()
    return { (offset + bootNanoseconds()) / 1000 }
}
