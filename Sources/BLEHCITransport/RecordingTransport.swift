import BLEByteCoding
import BLECapture

/// A transport that writes all packets of another transport to a capture.
package final class RecordingTransport: Transport {
    private let base: any Transport
    private let file: LoopConfined<CaptureFile>
    /// The directions of the packets that the base receives and sends.
    private let inbound: CaptureDirection
    private let outbound: CaptureDirection

    /// Creates a recording of a transport.
    ///
    /// - Parameters:
    ///   - base: the transport whose packets are recorded.
    ///   - file: the capture file, confined to the loop of the base. Several transports can share it.
    ///   - isControllersEnd: whether the base leads to a host, not to a controller.
    package init(_ base: any Transport, file: LoopConfined<CaptureFile>, isControllersEnd: Bool = false) {
        self.base = base
        self.file = file
        inbound = isControllersEnd ? .hostToController : .controllerToHost
        outbound = isControllersEnd ? .controllerToHost : .hostToController
    }

    package func start(
        onPacket: @escaping @Sendable (RawSpan) -> Void,
        onEnd: @escaping @Sendable (TransportError) -> Void
    ) {
        let file = file
        let inbound = inbound
        base.start(
            onPacket: { packet in
                file.value.append(packet, direction: inbound)
                onPacket(packet)
            },
            onEnd: onEnd
        )
    }

    package func send(_ packet: RawSpan) {
        file.value.append(packet, direction: outbound)
        base.send(packet)
    }

    package func close() {
        base.close()
    }
}
