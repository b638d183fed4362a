import ByteCoding
import HCITransport

/// A host's transport to the controller of a device, on the loop of their world.
///
/// Belongs to the thread that runs its world.
final class DeviceTransport: Transport, @unchecked Sendable {
    // @unchecked: used on the thread that runs its world only.

    private let device: Device
    private var onPacket: (@Sendable (RawSpan) -> Void)?
    private var onEnd: (@Sendable (TransportError) -> Void)?

    init(device: Device) {
        self.device = device
    }

    func start(
        onPacket: @escaping @Sendable (RawSpan) -> Void,
        onEnd: @escaping @Sendable (TransportError) -> Void
    ) {
        self.onPacket = onPacket
        self.onEnd = onEnd
    }

    func send(_ packet: RawSpan) {
        device.receive(packet, from: self)
    }

    func close() {
        onPacket = nil
        onEnd = nil
        device.detach(self)
    }

    /// Delivers a packet from the controller to the host.
    func deliver(_ packet: RawSpan) {
        onPacket?(packet)
    }

    /// Ends the transport, because the controller has vanished.
    func end() {
        let onEnd = onEnd
        self.onPacket = nil
        self.onEnd = nil
        onEnd?(.closedByPeer)
    }
}
