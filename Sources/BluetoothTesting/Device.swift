import BLE
import BLEByteCoding
import BLECapture
import BLEHCI
import BLEHCITransport
import BLEVirtualController
import BluetoothHost
import BluetoothTypes
import Glibc

/// A device of a ``World``: a position, a controller, and the hosts that are opened on it.
///
/// Like its world, it belongs to the thread that runs the world. Use it in the body of ``World/run(limit:_:)``, in that
/// body's tasks, or between two runs.
public final class Device: Sendable {
    /// The device's name in the world, in captures and in errors.
    public let name: String
    /// The controller's public device address.
    public var address: DeviceAddress { configuration.address }

    private unowned let world: World
    private let configuration: VirtualController.Configuration
    private let confined: LoopConfined<State>
    private var state: State { confined.value }

    private final class State {
        var random: SeededGenerator
        var controller: VirtualController?
        var transport: DeviceTransport?
        var recorded: MemoryCapture?
        var faults = ControllerFaults.none
        var position: Position
        var adapters: [Adapter] = []

        init(position: Position, random: SeededGenerator, recorded: MemoryCapture?) {
            self.position = position
            self.random = random
            self.recorded = recorded
        }
    }

    init(
        name: String,
        world: World,
        configuration: VirtualController.Configuration,
        random: SeededGenerator,
        isRecorded: Bool
    ) {
        self.name = name
        self.world = world
        self.configuration = configuration
        let state = State(
            position: configuration.position,
            random: random,
            recorded: isRecorded ? MemoryCapture() : nil
        )
        confined = LoopConfined(state, to: world.loop)
        makeController()
    }

    /// The controller, if it is present.
    var controller: VirtualController? { state.controller }

    /// The faults of the controller that its hosts see. They stay over ``vanish()`` and ``comeBack()``.
    public var faults: ControllerFaults {
        get { state.faults }
        set {
            state.faults = newValue
            state.controller?.faults = newValue
        }
    }

    /// The position, in meters. Signals weaken with the distance.
    public var position: Position {
        get { state.position }
        set {
            state.position = newValue
            world.changeAir { state.controller?.position = newValue }
        }
    }

    /// The adapters that were opened on the device, oldest first.
    public var adapters: [Adapter] { state.adapters }

    /// Sets the power with which the controller sends on its present links, as a device does to save energy. Peers that
    /// watch the power are informed. A later link begins with the power of the controller's configuration.
    ///
    /// - Parameter power: in dBm; limited to the range of the controller's configuration.
    public func setTransmitPower(_ power: Int8) {
        world.changeAir { state.controller?.setTransmitPower(power) }
    }

    // MARK: Adapters

    /// Opens an adapter on the device's controller, which one adapter uses at a time.
    ///
    /// The adapter saves no state, so its bonds end with it.
    ///
    /// - Parameter configure: changes the configuration of the adapter.
    /// - Throws:
    ///   - ``/BLE/BLEError/invalidArgument(_:)`` if the configuration names a directory for the state or requires the
    ///     state
    ///   - ``/BLE/BLEError/adapter(_:)`` if the controller is absent, if another adapter uses it, or if the capture
    ///     file cannot be opened
    ///   - the other errors of `Adapter.open`
    public func openAdapter(
        _ configure: (inout Adapter.Configuration) -> Void = { _ in }
    ) async throws(BLEError) -> Adapter {
        var configuration = Adapter.Configuration()
        configuration.deviceName = name
        configure(&configuration)
        try configuration.requireNoSavedState()
        let file = try makeFile(configuration)
        let adapter = try await Adapter.open(
            on: world.loop,
            configuration: configuration,
            random: configuration.seed.map(SeededGenerator.init(seed:)) ?? state.random.split()
        ) { [weak self] () async throws(TransportError) in
            guard let self else { throw .closedByPeer }
            let transport = try attach()
            return file.map { RecordingTransport(transport, file: $0) } ?? transport
        }
        state.adapters.append(adapter)
        return adapter
    }

    private func makeFile(_ configuration: Adapter.Configuration) throws(BLEError) -> LoopConfined<CaptureFile>? {
        guard let path = configuration.capturePath else { return nil }
        let world = world
        do throws(TransportError) {
            let file = try CaptureFile(path: path, masksKeys: configuration.captureMasksKeys) {
                world.microsecondsSince1970
            }
            return LoopConfined(file, to: world.loop)
        } catch {
            throw .adapter(error)
        }
    }

    /// All HCI packets so far as a btsnoop file; empty if the world records nothing.
    public var capture: [UInt8] { state.recorded?.bytes ?? [] }

    // MARK: Presence

    /// Whether the controller is present.
    public var isPresent: Bool { controller != nil }

    /// Removes the controller at once, as if it was unplugged or its battery was empty.
    ///
    /// Hosts on it lose it and try to reach it again. Peers lose their links when the supervision timeouts expire.
    public func vanish() {
        guard let controller else { return }
        world.changeAir {
            controller.vanish()
            state.controller = nil
            let transport = state.transport
            state.transport = nil
            world.loop.execute { transport?.end() }
        }
    }

    /// Creates a new controller for the device. Hosts that try to reach the controller find it.
    public func comeBack() {
        guard controller == nil else { return }
        world.changeAir { makeController() }
    }

    /// Makes the controller fail and reset. It reports this by a Hardware Error event: hosts lose all links and set it
    /// up again.
    public func failWithHardwareError(code: UInt8 = 0) {
        world.changeAir { controller?.failWithHardwareError(code: code) }
    }

    /// Moves in a straight line at constant speed, ten steps a second.
    ///
    /// - Throws: `CancellationError` if the task is cancelled; the device then stays at its current position.
    public func move(to destination: Position, over duration: Duration) async throws {
        let start = position
        let steps = max(1, Int(duration / .milliseconds(100)))
        for step in 1...steps {
            try await world.sleep(until: world.clock.now.advanced(by: duration / steps), caller: "the move of \(name)")
            let part = Double(step) / Double(steps)
            position = Position(
                x: start.x + (destination.x - start.x) * part,
                y: start.y + (destination.y - start.y) * part
            )
        }
    }

    /// Removes the controller permanently and releases the adapters.
    func end() {
        vanish()
        state.adapters = []
    }

    private func makeController() {
        let state = state
        let controller = VirtualController(configuration: configuration, air: world.air, random: state.random.split()) {
            [weak self] packet in self?.emit(packet)
        }
        controller.faults = state.faults
        controller.position = state.position
        state.controller = controller
        world.applyConditions(to: self)
    }

    // MARK: Packets

    func attach() throws(TransportError) -> DeviceTransport {
        guard controller != nil else { throw .closedByPeer }
        guard state.transport == nil else { throw .connectionFailed(name, errno: EBUSY) }
        let transport = DeviceTransport(device: self, loop: world.loop)
        state.transport = transport
        return transport
    }

    func detach(_ transport: DeviceTransport) {
        if state.transport === transport { state.transport = nil }
    }

    /// Passes a packet from the host to the controller, after the current work of the loop.
    func receive(_ packet: RawSpan, from transport: DeviceTransport) {
        guard state.transport === transport else { return }
        record(packet, .hostToController)
        let packet = [UInt8](copying: packet)
        world.loop.execute { [self] in
            guard let controller else { return }
            world.catchUp()
            controller.receive(packet.rawSpan)
            world.runAir()
        }
    }

    /// Delivers a packet to the host, with its H4 indicator, that its controller never sent.
    package func inject(_ packet: RawSpan) {
        emit(packet)
    }

    private func emit(_ packet: RawSpan) {
        guard let transport = state.transport else { return }
        record(packet, .controllerToHost)
        transport.deliver(packet)
    }

    private func record(_ packet: RawSpan, _ direction: CaptureDirection) {
        state.recorded?.append(packet, direction: direction, microsecondsSince1970: world.microsecondsSince1970)
    }
}
