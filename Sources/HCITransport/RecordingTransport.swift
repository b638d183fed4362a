import ByteCoding
import Capture

/// A transport that writes all packets of another transport to a capture.
public final class RecordingTransport: Transport {
    private let base: any Transport
    private let file: CaptureFile
    /// The directions of the packets that the base receives and sends.
    private let inbound: CaptureDirection
    private let outbound: CaptureDirection

    /// Creates a recording of a transport.
    ///
    /// - Parameters:
    ///   - base: the transport whose packets are recorded.
    ///   - file: the capture file, which several transports can share.
    ///   - isControllersEnd: whether the base leads to a host, not to a controller.
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
