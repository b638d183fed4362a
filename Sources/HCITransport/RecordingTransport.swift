import ByteCoding
import CBluetooth
import Capture
import Glibc
import HCI

/// Writes all that passes through a transport to a btsnoop file.
public final class RecordingTransport: Transport, @unchecked Sendable {
    private let base: any Transport
    private let file: CaptureFile
    /// Which way goes what the base receives, and what it sends.
    private let inbound: CaptureDirection
    private let outbound: CaptureDirection

    /// - Parameter isControllersEnd: the base leads to a host, not to a controller.
    public init(_ base: any Transport, file: CaptureFile, isControllersEnd: Bool = false) {
        self.base = base
        self.file = file
        inbound = isControllersEnd ? .hostToController : .controllerToHost
        outbound = isControllersEnd ? .controllerToHost : .hostToController
    }

    public func start(
        onPacket: @escaping @Sendable (RawSpan) -> Void,
        onEnd: @escaping @Sendable (TransportError) -> Void
    ) {
        let file = file
        let inbound = inbound
        base.start(
            onPacket: { packet in
                file.append(packet, direction: inbound)
                onPacket(packet)
            },
            onEnd: onEnd
        )
    }

    public func send(_ packet: RawSpan) {
        file.append(packet, direction: outbound)
        base.send(packet)
    }

    public func close() {
        base.close()
    }
}

/// A btsnoop file that is being written. It outlives the transports of a recovery.
///
/// Each packet is written as it passes, whole, with one call; so the file of a process that was killed ends with a whole
/// record.
public final class CaptureFile: @unchecked Sendable {
    private let descriptor: OwnedDescriptor
    private let microsecondsSince1970: @Sendable () -> Int64
    private var buffer = PacketBuffer(capacity: 1024, headroom: 0)
    private var length = 0
    /// Why the capture has ended before its time, if it has: a full disk, say. The link goes on.
    public private(set) var failure: TransportError?
    private let path: String

    /// Creates the file, or empties the one that is there. Only its owner may read it, for a capture holds keys.
    ///
    /// - Parameter microsecondsSince1970: the wall clock; the system's where none is given.
    public init(
        path: String,
        microsecondsSince1970: (@Sendable () -> Int64)? = nil
    ) throws(TransportError) {
        self.path = path
        self.microsecondsSince1970 = microsecondsSince1970 ?? systemMicrosecondsSince1970
        descriptor = OwnedDescriptor(unsafe ble_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600))
        guard descriptor.number >= 0 else { throw .captureFile(path, errno: -descriptor.number) }
        BTSnoopHeader(dataLink: .hciUART).encode(into: &buffer)
        flush()
        if let failure { throw failure }
    }

    /// Appends a packet with its H4 indicator. Called on the transport's loop only.
    public func append(_ packet: RawSpan, direction: CaptureDirection) {
        guard failure == nil else { return }
        let type = packet[checked: 0].flatMap(PacketType.init(rawValue:))
        BTSnoopRecord(
            packet: packet,
            direction: direction,
            isCommandOrEvent: type == .command || type == .event,
            microsecondsSince1970: microsecondsSince1970()
        ).encode(into: &buffer)
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

private func systemMicrosecondsSince1970() -> Int64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
}
