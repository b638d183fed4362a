import BLE
import BLEHCITransport
import BLEVirtualController
import BluetoothHost
import BluetoothTypes
import Dispatch

/// Serves controllers to other processes: each connection gets a new one, and all are on one air.
///
/// # Addresses
/// A controller has the public address that was chosen for its listener, or else the lowest of this project's own
/// addresses that is free. The latter depends on the order of the connections. A host saves bonds by its controller's
/// address, so bonds survive a restart of the server only with chosen addresses. A chosen address is for one host at a
/// time.
///
/// # Hosts that do not read
/// The data that waits for a host is bounded, for each host (``Configuration/backlogByteLimit``) and for all together
/// (``Configuration/totalBacklogByteLimit``). The connection of a host that would exceed a bound is closed, and the
/// event gives this reason.
final class ControllerServer: Sendable {
    /// The configuration of the controllers, and the faults of the controllers and the air.
    struct Configuration: Sendable {
        /// Maximum length of an ACL packet in bytes, at least 27; nil for the default.
        var aclDataLength: UInt16?
        /// Maximum number of ACL packets that a controller holds; nil for the default.
        var aclPacketCount: UInt8?
        /// Maximum number of links of a controller; nil for the default.
        var linkCount: Int?
        /// Whether packets take as long as on a radio.
        var pacesPackets = true
        /// The distance from each controller to the next one.
        var spacingInMetres = 0.0
        var conditions = RadioConditions.perfect
        var faults = ControllerFaults.none
        /// The time at which the air fails, since the server was made.
        var diesAfter: Duration?
        /// The time of each mishap, since the controller's host connected.
        var mishaps: [Mishap: Duration] = [:]
        /// The folder into which each controller's HCI traffic is recorded.
        var captureFolder: String?
        /// Whether keys are replaced by zeros in the captures.
        var captureMasksKeys = false
        /// Makes random events the same each time.
        var seed: UInt64?
        /// Maximum number of bytes that wait for one host that does not read. The default, nil, is 4 MiB, or 64 MiB
        /// without pacing, because a fast sender is then not slowed down for a slow reader.
        var backlogByteLimit: Int?
        /// Maximum number of bytes that wait for all hosts together.
        var totalBacklogByteLimit = 128 << 20

        init() {}
    }

    /// A fault of a controller.
    enum Mishap: String, CaseIterable, Sendable {
        /// It accepts its host's packets and no longer sends any.
        case silent
        /// It reports a hardware error to its host, and has lost all its state.
        case hardwareError
        /// It has disappeared, and its host's connection with it.
        case vanished
    }

    /// One connection of a host, and the controller that it was given.
    struct Connection: Hashable, Sendable {
        /// The number of the connection, from 1.
        let number: Int
        /// The controller's public address.
        let address: DeviceAddress
        /// Where the host connected.
        let listener: ListeningAddress
    }

    enum Event: Sendable {
        case connected(Connection)
        case disconnected(Connection, TransportError)
        /// A configured mishap has happened to the controller.
        case befell(Connection, Mishap)
        /// The air has failed, as configured.
        case airDied
        /// The maximum number of controllers exists; a host was refused.
        case refused(ListeningAddress)
        /// The listener's controller has a host; another was refused.
        case addressInUse(ListeningAddress, DeviceAddress)
        /// The connection is not recorded.
        case notRecorded(Connection, TransportError)
    }

    /// Maximum number of hosts served at once, so that a client that connects endlessly does no harm.
    static let connectionLimit = 256
    /// Interval and maximum number of a host's waits for the end of an earlier host's connection to the same address.
    private static let addressRetry = (interval: Duration.milliseconds(20), count: 50)

    private let configuration: Configuration
    private let air: AirOnQueue
    private let onEvent: @Sendable (Event) -> Void
    private let backlog: BacklogBudget
    private let confined: LoopConfined<State>
    private var state: State { confined.value }

    private final class State {
        var listeners: [StreamListener] = []
        var connections: [Int: Served] = [:]
        /// The number of connections so far.
        var count = 0
    }

    /// - Parameter onEvent: is called with each event, on the air's queue.
    init(configuration: Configuration, onEvent: @escaping @Sendable (Event) -> Void) {
        self.configuration = configuration
        self.onEvent = onEvent
        backlog = BacklogBudget(limit: configuration.totalBacklogByteLimit)
        air = AirOnQueue(label: "served", linger: .milliseconds(1), seed: configuration.seed)
        confined = LoopConfined(State(), to: air.queue)
        air.queue.async { [air] in air.conditions = configuration.conditions }
        perform(after: configuration.diesAfter) { server in
            server.air.conditions.isDead = true
            server.onEvent(.airDied)
        }
    }

    /// Lets hosts connect.
    ///
    /// - Parameter controllerAddress: the public address of the listener's controller, which serves one host at a time;
    ///   nil for a controller with an address of its own for each host.
    /// - Returns: the address that the server listens on. It has the actual port if `address` has port 0.
    func listen(
        on address: ListeningAddress,
        controllerAddress: DeviceAddress? = nil
    ) async throws(ListeningError) -> ListeningAddress {
        let listener = try await StreamListener.open(address, on: air.loop, options: transportOptions)
        air.queue.async { [self] in
            state.listeners.append(listener)
            if let controllerAddress { air.reserve(controllerAddress) }
            listener.start { [weak self] in self?.connected($0, through: listener.address, controllerAddress) }
        }
        return listener.address
    }

    private var transportOptions: TransportOptions {
        var options = TransportOptions()
        // Without pacing, nothing slows down a host that sends faster than another one reads.
        options.backlogByteLimit = configuration.backlogByteLimit ?? (configuration.pacesPackets ? 4 << 20 : 64 << 20)
        options.sharedBacklog = backlog
        return options
    }

    /// Ends all connections and removes the UNIX sockets.
    func close() async {
        await withCheckedContinuation { continuation in
            air.queue.async { [self] in
                let state = state
                for listener in state.listeners { listener.close() }
                state.listeners = []
                for served in state.connections.values { air.detach(served.controller) }
                state.connections = [:]
                continuation.resume()
            }
        }
    }

    /// - Parameter attempt: the number of times that the host has waited for the address.
    private func connected(
        _ transport: any Transport,
        through listener: ListeningAddress,
        _ address: DeviceAddress?,
        attempt: Int = 0
    ) {
        if let address, air.hasController(address) {
            guard attempt < ControllerServer.addressRetry.count else {
                transport.close()
                return onEvent(.addressInUse(listener, address))
            }
            // A host that restarts may connect before the end of its earlier connection is noticed.
            return perform(after: ControllerServer.addressRetry.interval) {
                $0.connected(transport, through: listener, address, attempt: attempt + 1)
            }
        }
        guard state.connections.count < ControllerServer.connectionLimit else {
            transport.close()
            return onEvent(.refused(listener))
        }
        state.count += 1
        let number = state.count
        let recording = record(transport, number) { [weak self] in
            guard let self, let served = state.connections[number] else { return }
            onEvent(.notRecorded(served.connection, $0))
        }
        let attached = air.attach(
            (try? recording.get()) ?? transport,
            address: address,
            configure: { configure($0, &$1) },
            onEnd: { [weak self] in self?.disconnected(number, $0) }
        )
        let connection = Connection(number: number, address: attached.address, listener: listener)
        state.connections[number] = Served(connection: connection, controller: attached)
        onEvent(.connected(connection))
        if case .failure(let error) = recording { onEvent(.notRecorded(connection, error)) }
        air.disturb(attached) { $0.faults = configuration.faults }
        for mishap in Mishap.allCases {
            perform(after: configuration.mishaps[mishap]) { $0.suffer(mishap, number) }
        }
    }

    private func configure(_ place: Int, _ controller: inout VirtualController.Configuration) {
        if let length = configuration.aclDataLength { controller.aclDataLength = length }
        if let count = configuration.aclPacketCount { controller.aclPacketCount = count }
        if let count = configuration.linkCount { controller.maximumLinks = count }
        controller.pacesPackets = configuration.pacesPackets
        controller.position = Position(x: Double(place - 1) * configuration.spacingInMetres, y: 0)
    }

    private func suffer(_ mishap: Mishap, _ number: Int) {
        guard let served = state.connections[number] else { return }
        switch mishap {
        case .silent: air.disturb(served.controller) { $0.faults.isSilent = true }
        case .hardwareError: air.disturb(served.controller) { $0.failWithHardwareError(code: 0) }
        case .vanished:
            state.connections[number] = nil
            air.detach(served.controller)
        }
        onEvent(.befell(served.connection, mishap))
    }

    /// Returns the transport, wrapped in a recorder if captures are configured.
    ///
    /// - Parameter onFailure: called on the queue if the capture ends early.
    private func record(
        _ transport: any Transport,
        _ number: Int,
        onFailure: @escaping @Sendable (TransportError) -> Void
    ) -> Result<any Transport, TransportError> {
        guard let folder = configuration.captureFolder else { return .success(transport) }
        return Result { () throws(TransportError) in
            let file = try CaptureFile(
                path: "\(folder)/controller-\(number).btsnoop",
                masksKeys: configuration.captureMasksKeys,
                onFailure: onFailure
            )
            return RecordingTransport(
                transport,
                file: LoopConfined(file, to: air.queue),
                isControllersEnd: true
            )
        }
    }

    private func disconnected(_ number: Int, _ error: TransportError) {
        guard let served = state.connections.removeValue(forKey: number) else { return }
        onEvent(.disconnected(served.connection, error))
    }

    private func perform(after delay: Duration?, _ action: @escaping @Sendable (ControllerServer) -> Void) {
        guard let delay else { return }
        air.queue.asyncAfter(deadline: .now() + .nanoseconds(Int(delay.wholeNanoseconds))) { [weak self] in
            if let self { action(self) }
        }
    }

    private struct Served {
        let connection: Connection
        let controller: AttachedController
    }
}
