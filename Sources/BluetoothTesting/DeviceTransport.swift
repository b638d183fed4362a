import BLEByteCoding
import BLEHCITransport
import BluetoothHost

/// A host's transport to the controller of a device, on the loop of their world.
final class DeviceTransport: Transport {
    private final class State {
        var onPacket: (@Sendable (RawSpan) -> Void)?
        var onEnd: (@Sendable (TransportError) -> Void)?
    }

    private let device: Device
    private let state: LoopConfined<State>

    init(device: Device, loop: SimulatedEventLoop) {
        self.device = device
        state = LoopConfined(State(), to: loop)
    }

    func start(
        onPacket: @escaping @Sendable (RawSpan) -> Void,
        onEnd: @escaping @Sendable (TransportError) -> Void
    ) {
        state.value.onPacket = onPacket
        state.value.onEnd = onEnd
    }

    func send(_ packet: RawSpan) {
        device.receive(packet, from: self)
    }

    func close() {
        state.value.onPacket = nil
        state.value.onEnd = nil
        device.detach(self)
    }

    /// Delivers a packet from the controller to the host.
    func deliver(_ packet: RawSpan) {
        state.value.onPacket?(packet)
    }

    /// Ends the transport, because the controller has vanished.
    func end() {
        let onEnd = state.value.onEnd
        state.value.onPacket = nil
        state.value.onEnd = nil
        onEnd?(.closedByPeer)
    }
}
