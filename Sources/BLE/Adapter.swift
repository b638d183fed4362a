import BluetoothHost
import Dispatch
import HCI
import HCITransport
import KeyStore
import Logging
import VirtualController

/// One Bluetooth controller and the host on it.
///
/// ```swift
/// let adapter = try await Adapter.open(AdapterSpecification(parsing: "hci0"))
/// for try await advertisement in adapter.central.scan() {
///     print(advertisement.address, advertisement.localName ?? "")
/// }
/// ```
public final class Adapter: Sendable {
    /// What is set when an adapter is opened.
    public struct Configuration: Sendable {
        /// Takes what the host has to say; nothing by default.
        public var logger = Logger(label: "swift-ble", factory: { _ in SwiftLogNoOpLogHandler() })
        /// Where all HCI packets are recorded: as pcapng where the path ends so, else as btsnoop.
        ///
        /// A capture holds keys, unless ``captureMasksKeys`` is set; only its owner can read it.
        public var capturePath: String?
        /// Whether keys are replaced by zeros in the capture: in commands to the controller, in the key distribution of
        /// pairings, and in the values that keys can be computed from.
        public var captureMasksKeys = false
        /// The ATT_MTU that is offered to peers: 23 to 517 octets.
        public var mtu: UInt16 = 517
        /// Whether extended advertising, scanning and initiating are used where the controller has them.
        public var usesExtendedCommands = true
        /// Whether a central asks for a longer ATT_MTU on each new link by itself.
        package var requestsMTU = true
        /// How long the controller may take to answer a command.
        public var commandTimeout = Duration.seconds(4)
        /// How long a scan may be silent before it is restarted; nil for ever.
        public var scanSilenceTimeout: Duration? = .seconds(90)
        /// The host's random static address; nil for the controller's public address, or a new random one where it has none.
        public var identityAddress: DeviceAddress?
        /// Whether the adapter shows itself under resolvable private addresses, which change from time to time, instead of
        /// its identity address: when it advertises, scans actively and connects. Only bonded devices know it again then,
        /// as it is with phones; so devices that are to find a gateway by its address do not.
        public var usesPrivateAddresses = false
        /// How long a private address is used: 1 s to 1 h, in whole seconds.
        public var privateAddressTimeout = Duration.seconds(900)
        /// Whether a bonded device that has a key for private addresses is heard only under these, not under its identity
        /// address: network privacy mode (Vol 6, Part B, 4.7). Otherwise device privacy mode, which hears both.
        public var usesNetworkPrivacy = false
        /// The GAP Device Name.
        public var deviceName = "swift-ble"
        public var appearance = Appearance.unknown
        /// What is asked of peers' security, and what is let them do.
        public var security = SecurityPolicy()
        /// Is asked about pairings; nil where there is nobody to ask.
        public var pairingDelegate: (any PairingDelegate)?
        /// The most bonds. A new bond beyond them takes the place of the least recently used one that is not privileged
        /// (``BondInformation/isPrivileged``) and not connected; where there is none, the pairing is refused.
        public var bondLimit = 128
        /// Where bonds and identity outlive the process.
        public var stateLocation = StateLocation.automatic
        /// Whether ``Adapter/open(_:configuration:)`` throws ``BLEError/stateUnavailable(_:)`` where saved state cannot be used
        /// as it was found, or changes cannot be saved. Otherwise the adapter opens, possibly without its bonds and with a
        /// new identity, and ``HostEvent/stateUnavailable(reason:)`` says so.
        public var requiresState = false
        /// Makes all that the host draws by chance the same each time, so that a capture of it can be replayed; nil for real
        /// chance. Keys and addresses are known to whoever knows the seed: never set it where security matters.
        public var seed: UInt64?
        /// Takes what the user should know of the state that is kept, a line each; nil for the logger.
        package var warn: (@Sendable (String) -> Void)?

        public init() {}
    }

    /// Finds and connects to peripherals.
    public let central: Central
    /// Advertises and serves centrals.
    public let peripheral: Peripheral
    package let host: BluetoothHost
    /// What outlives the process; in memory where nothing does.
    package let store: KeyStore
    private let bonds: KeptBonds?

    init(host: BluetoothHost, bonds: KeptBonds?) {
        self.host = host
        self.bonds = bonds
        store = bonds?.store ?? .inMemory()
        central = Central(host: host)
        peripheral = Peripheral(host: host)
    }

    /// Opens a controller and brings it up.
    public static func open(
        _ specification: AdapterSpecification,
        configuration: Configuration = Configuration()
    ) async throws(BLEError) -> Adapter {
        let loop = DispatchEventLoop(label: "swift-ble.\(specification)")
        let file: CaptureFile?
        do throws(TransportError) {
            file = try configuration.capturePath.map { path throws(TransportError) in
                try CaptureFile(path: path, masksKeys: configuration.captureMasksKeys)
            }
        } catch {
            throw .adapter(error)
        }
        let bonds = keptBonds(of: specification, configuration)
        let random: any RandomNumberGenerator & Sendable =
            if let seed = configuration.seed { SeededGenerator(seed: seed) } else { SystemRandomNumberGenerator() }
        return try await open(on: loop, configuration: configuration, bonds: bonds, random: random) {
            () async throws(TransportError) in
            let transport = try await specification.open(
                on: loop.queue,
                makeVirtual: VirtualAdapters.opener(on: loop)
            )
            return file.map { RecordingTransport(transport, file: $0) } ?? transport
        }
    }

    /// Brings up a controller behind a transport of one's own.
    ///
    /// - Parameter bonds: keeps what outlives the host; nil for nothing, wherever the configuration says.
    package static func open(
        on loop: any EventLoop,
        configuration: Configuration,
        bonds: KeptBonds? = nil,
        random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator(),
        transport: @escaping TransportOpener
    ) async throws(BLEError) -> Adapter {
        var settings = BluetoothHost.Configuration()
        settings.logger = configuration.logger
        settings.mtu = min(max(configuration.mtu, 23), 517)
        settings.requestsMTU = configuration.requestsMTU
        settings.usesExtendedCommands = configuration.usesExtendedCommands
        settings.commandTimeout = configuration.commandTimeout
        settings.scanSilenceTimeout = configuration.scanSilenceTimeout
        settings.identityAddress = configuration.identityAddress
        settings.usesPrivateAddresses = configuration.usesPrivateAddresses
        settings.privateAddressTimeout = configuration.privateAddressTimeout
        settings.privacyMode = configuration.usesNetworkPrivacy ? .network : .device
        settings.deviceName = configuration.deviceName
        settings.appearance = configuration.appearance
        settings.bondStore = bonds
        settings.requiresState = configuration.requiresState
        settings.security = configuration.security
        settings.bondLimit = max(configuration.bondLimit, 0)
        settings.pairingHandler = configuration.pairingDelegate?.handler(on: loop.appTaskExecutor)
        let host = BluetoothHost(
            loop: loop,
            configuration: settings,
            random: random,
            openTransport: transport
        )
        do throws(BLEError) {
            try await translating("bringing the controller up") { () throws(HostError) in try await host.start() }
        } catch {
            await bonds?.close()
            throw error
        }
        return Adapter(host: host, bonds: bonds)
    }

    /// Runs tasks on the adapter's own loop, by `Task(executorPreference:)` or `withTaskExecutorPreference`.
    ///
    /// What such a task asks of the adapter costs no switch of threads, which matters where it asks thousands of times a
    /// second. It holds the adapter up for as long as it does not await, so it must not block or compute for long.
    public var taskExecutor: any TaskExecutor { host.loop.taskExecutor }

    /// What the controller is and can do.
    public var information: ControllerInformation {
        get async throws(BLEError) {
            try await translating { () throws(HostError) in try await host.controllerInformation() }
        }
    }

    /// Returns what happens to the adapter from now on. Each call returns a sequence of its own; the last event is
    /// ``HostEvent/closed``.
    public func events() async -> Events<HostEvent> {
        let buffer = AsyncEventBuffer<HostEvent, Never>(limit: 256, report: .element { .eventsDropped($0) })
        let host = host
        let observer = await host.observe { event in
            buffer.append(event)
            if case .closed = event { buffer.finish() }
        }
        return Events(buffer: buffer, registration: Registration { host.cleanUp { $0.removeObserver(observer) } })
    }

    /// Ends all links, scans and advertisements, keeps what is to be kept and lets the controller go.
    public func close() async {
        await host.close()
        await bonds?.close()
    }
}
