import ByteCoding
import Capture
import CBluetooth
import Glibc

/// Writes all that passes through a transport to a btsnoop file.
///
/// Each packet is written as it passes, whole, with one call; so the file of a process that was killed ends with a whole
/// record.
public final class RecordingTransport: Transport, @unchecked Sendable {
    private let base: any Transport
    private let file: CaptureFile

    public init(_ base: any Transport, file: CaptureFile) {
        self.base = base
        self.file = file
    }

    public func start(
        onPacket: @escaping @Sendable (RawSpan) -> Void, onEnd: @escaping @Sendable (TransportError) -> Void
    ) {
        let file = file
        base.start(
            onPacket: { packet in
                file.append(packet, direction: .controllerToHost)
                onPacket(packet)
            },
            onEnd: onEnd
        )
    }

    public func send(_ packet: RawSpan) {
        file.append(packet, direction: .hostToController)
        base.send(packet)
    }

    public func close() {
        base.close()
    }
}

/// A btsnoop file that is being written. It outlives the transports of a recovery.
public final class CaptureFile: @unchecked Sendable {
    private let descriptor: Int32
    private var buffer = PacketBuffer(capacity: 1024, headroom: 0)
    private var hasFailed = false

    /// Creates the file, or empties the one that is there.
    public init(path: String) throws(TransportError) {
        descriptor = ble_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        guard descriptor >= 0 else { throw .captureFile(path, errno: -descriptor) }
        BTSnoopHeader(dataLink: .hciUART).encode(into: &buffer)
        flush()
    }

    deinit {
        _ = Glibc.close(descriptor)
    }

    /// Appends a packet with its H4 indicator. Called on the transport's loop only.
    public func append(_ packet: RawSpan, direction: BTSnoopRecord.Direction) {
        var time = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        BTSnoopRecord(
            packet: packet,
            direction: direction,
            isCommandOrEvent: packet[checked: 0] == 1 || packet[checked: 0] == 4,
            microsecondsSince1970: Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
        ).encode(into: &buffer)
        flush()
    }

    /// A disk that is full ends the capture, not the link.
    private func flush() {
        defer { buffer.reset() }
        guard !hasFailed else { return }
        if case .failure = write(descriptor, buffer.bytes) { hasFailed = true }
    }
}
