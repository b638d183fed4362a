import BLEHCI
import BLEHCITransport
import BLEKeyStore
import BLEVirtualController
import BluetoothHost
import Dispatch
import Logging

/// One Bluetooth controller and the host on it.
///
/// ```swift
/// let adapter = try await Adapter.open(AdapterSpecification(parsing: "hci0"))
/// for try await advertisement in adapter.central.scan() {
///     print(advertisement.address, advertisement.localName ?? "")
/// }
/// ```
public final class Adapter: Sendable {
    /// Settings for opening an adapter.
    public struct Configuration: Sendable {
        /// Receives the host's log messages; by default nothing is logged.
        public var logger = Logger(label: "swift-ble", factory: { _ in SwiftLogNoOpLogHandler() })
        /// Path of a capture of all HCI packets: pcapng if the path ends so, otherwise btsnoop.
        ///
        /// A capture holds keys, unless ``captureMasksKeys`` is set. Only its owner can read it. It is closed when the
        /// adapter is closed.
        public var capturePath: String?
        /// Whether keys are replaced by zeros in the capture: in commands to the controller, in the key distribution of
        /// pairings, and in the values that keys can be computed from.
        public var captureMasksKeys = false
        /// The ATT_MTU offered to peers: 23 to 517 bytes (Vol 3, Part F, 3.4.2). A value outside is taken as the
        /// nearest one.
        public var mtu: UInt16 = 517
        /// Maximum number of enhanced ATT bearers of a link, besides its fixed channel: 0 to 5 (Vol 3, Part G, 5.3).
        ///
        /// With 0, the adapter neither opens nor accepts any. Otherwise its server accepts this number on each
        /// encrypted link. As a central, it opens this number once a link is encrypted, if the peripheral accepts them.
        /// Procedures of different characteristics then run at the same time. Calls on one characteristic keep their
        /// order. Calls on different ones may arrive in another order. The handlers of published values still get the
        /// accesses of one central one after another.
        public var enhancedBearerLimit = 0
        /// Whether connections can be subrated, by this device or by its peers (Vol 6, Part B, 4.5.1), if the
        /// controller supports it. It cannot be changed later, because a controller accepts the features of its host
        /// only while it has no connection.
        public var usesSubrating = false
        /// Whether this device chooses the coding of its advertising on the LE Coded PHY, and distinguishes that of
        /// others, if the controller supports it.
        public var usesAdvertisingCoding = false
        /// Whether extended advertising, scanning and initiating are used if the controller supports them.
        public var usesExtendedCommands = true
        /// Whether connected isochronous streams are used if the controller supports them; see ``IsochronousStream``.
        ///
        /// Controllers learn this only while they have no connection, so it is set when the adapter is opened.
        public var usesConnectedStreams = false
        /// Whether a central requests a longer ATT_MTU automatically on each new link.
        package var requestsMTU = true
        /// Time limit for the controller's answer to a command: at least 100 ms. A shorter one is taken as 100 ms.
        public var commandTimeout = Duration.seconds(4)
        /// How long a scan may be silent before it is restarted: at least 1 s; nil to never restart it. A shorter time
        /// is taken as 1 s.
        public var scanSilenceTimeout: Duration? = .seconds(90)
        /// The host's random static address; nil for the controller's public address. If it has none, a random static
        /// address is generated once and saved.
        ///
        /// The two most significant bits of the address must be set (Vol 6, Part B, 1.3.2.1). The adapter does not
        /// check this. Bonded devices know the host by this address, so it must not change.
        public var identityAddress: DeviceAddress?
        /// Whether the adapter advertises, scans actively and connects under resolvable private addresses instead of
        /// its identity address. These addresses change from time to time, and only bonded devices recognize the
        /// adapter then, as with phones. Do not set this if devices are to find a gateway by its address.
        public var usesPrivateAddresses = false
        /// How long a private address is used: 1 s to 1 h, in whole seconds.
        public var privateAddressTimeout = Duration.seconds(900)
        /// Whether a bonded device that has a key for private addresses is heard only under these, not under its
        /// identity address: network privacy mode (Vol 6, Part B, 4.7). Otherwise both are heard: device privacy mode.
        public var usesNetworkPrivacy = false
        /// The GAP Device Name: at most 248 bytes of UTF-8 (Vol 3, Part C, 12.1). The rest of a longer name is cut off.
        /// Clients read it. Advertisements contain only the name that the app adds to them.
        public var deviceName = "swift-ble"
        /// The GAP Appearance.
        public var appearance = Appearance.unknown
        /// The security that peers must provide, and the operations that they are allowed.
        public var security = SecurityPolicy()
        /// Answers questions about pairings; nil if there is no person or app to ask.
        public var pairingDelegate: (any PairingDelegate)?
        /// Maximum number of bonds: 0 or more. A new bond beyond it replaces the least recently used one that is
        /// neither privileged (``/BluetoothHost/BondInformation/isPrivileged``) nor connected. If there is none, the
        /// pairing is refused. With 0, each pairing that would make a bond is refused. Saved bonds stay, even if there
        /// are more.
        public var bondLimit = 128
        /// Where bonds and identity are saved.
        public var stateLocation = StateLocation.automatic
        /// Whether ``Adapter/open(_:configuration:)`` throws ``BLEError/stateUnavailable(_:)`` if saved state cannot be
        /// used as it was found, or changes cannot be saved. Otherwise the adapter opens, possibly without its bonds
        /// and with a new identity, and reports ``/BluetoothHost/HostEvent/stateUnavailable(reason:)``. After a loss of
        /// the controller, an adapter that requires its state waits for the same controller.
        public var requiresState = false
        /// Whether an adapter of the kernel is brought down before it is opened on the user channel. This ends its use
        /// by the kernel's own stack. ``/BLEHCITransport/AdapterSpecification/automatic`` always does so.
        public var bringsAdapterDown = false
        /// How late advertisements may be reported, so that several are received together: 0 to 50 ms, in whole
        /// milliseconds.
        ///
        /// To wake up for each advertisement costs several times as much as to handle it. So a program that listens to
        /// many advertisers takes less processor time with a delay. Other packets are hardly delayed:
        /// see ``/BLEHCITransport/TransportOptions/advertisingReportDelay``.
        public var advertisingReportDelay = Duration.zero
        /// Seed of the host's random numbers, so that a capture can be replayed; nil for true randomness. Anyone with
        /// the seed can compute the keys and addresses: never set it if security matters.
        public var seed: UInt64?
        /// Receives warnings for the user about the saved state, one line each; nil to log them with ``logger``. They
        /// can come from any thread. The closure must not block.
        public var warn: (@Sendable (String) -> Void)?

        /// Creates a configuration with the default values.
        public init() {}
    }

    /// Finds and connects to peripherals.
    public let central: Central
    /// Advertises and serves centrals.
    public let peripheral: Peripheral
    package let host: BluetoothHost
    /// The store of the state that outlives the process; only in memory if nothing is saved.
    package let store: KeyStore
    private let bonds: BondFileStore?
    private let opening: ControllerOpening?
    private let capture: CaptureOutcome

    init(
        host: BluetoothHost,
        bonds: BondFileStore?,
        opening: ControllerOpening?,
        capture: CaptureOutcome = CaptureOutcome()
    ) {
        self.host = host
        self.capture = capture
        self.bonds = bonds
        self.opening = opening
        store = bonds?.store ?? .inMemory()
        central = Central(host: host)
        peripheral = Peripheral(host: host)
    }

    /// Opens a controller and brings it up.
    ///
    /// A controller that fails during bring-up is reset, at most twice more. If the call throws, the controller is
    /// released.
    ///
    /// If the task is cancelled while the controller is opened, the call does not wait for the step in progress, such
    /// as connecting to a socket or bringing an adapter down. This step ends in the background, and the controller is
    /// released then. No other step follows, and no other adapter is tried.
    ///
    /// - Parameters:
    ///   - specification: names the controller.
    ///   - configuration: the settings of the adapter.
    /// - Throws:
    ///   - ``BLEError/adapter(_:)`` if the controller cannot be reached, or the capture file cannot be opened
    ///   - ``BLEError/controllerFailed(_:)`` if the controller cannot be brought up: it refuses a command that the host
    ///     needs, does not answer or reports an error, or the connection to it ends
    ///   - ``BLEError/stateUnavailable(_:)`` if ``Adapter/Configuration/requiresState`` is set and the state cannot be
    ///     used or saved
    ///   - ``BLEError/cancelled`` if the task is cancelled
    public static func open(
        _ specification: AdapterSpecification,
        configuration: Configuration = Configuration()
    ) async throws(BLEError) -> Adapter {
        let loop = DispatchEventLoop(label: "swift-ble.\(specification)")
        let outcome = CaptureOutcome()
        let file: LoopConfined<CaptureFile>?
        do throws(TransportError) {
            file = try configuration.capturePath.map { path throws(TransportError) in
                let logger = configuration.logger
                let file = try CaptureFile(
                    path: path,
                    masksKeys: configuration.captureMasksKeys,
                    onFailure: { error in
                        logger.error("the capture ends early: \(error)")
                        outcome.set(error)
                    }
                )
                return LoopConfined(file, to: loop.queue.queue)
            }
        } catch {
            throw .adapter(error)
        }
        let bonds = bondStore(of: specification, configuration)
        let random: any RandomNumberGenerator & Sendable =
            if let seed = configuration.seed { SeededGenerator(seed: seed) } else { SystemRandomNumberGenerator() }
        let opening = ControllerOpening(specification, configuration, on: loop)
        return try await open(
            on: loop,
            configuration: configuration,
            bonds: bonds,
            random: random,
            opening: opening,
            capture: outcome
        ) { () async throws(TransportError) in
            let transport = try await opening.open()
            return file.map { RecordingTransport(transport, file: $0) } ?? transport
        }
    }

    /// Opens an adapter on a controller behind the caller's own transport.
    ///
    /// - Parameter bonds: saves the state that outlives the host; nil for none. The configuration's location is not
    ///   used.
    package static func open(
        on loop: any EventLoop,
        configuration: Configuration,
        bonds: BondFileStore? = nil,
        random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator(),
        opening: ControllerOpening? = nil,
        capture: CaptureOutcome = CaptureOutcome(),
        transport: @escaping TransportOpener
    ) async throws(BLEError) -> Adapter {
        var settings = BluetoothHost.Configuration()
        settings.logger = configuration.logger
        settings.mtu = min(max(configuration.mtu, 23), 517)
        settings.requestsMTU = configuration.requestsMTU
        settings.enhancedBearerLimit = min(max(configuration.enhancedBearerLimit, 0), 5)
        if configuration.usesConnectedStreams { settings.hostFeatures.insert(.connectedIsochronousStreamHostSupport) }
        if configuration.usesSubrating { settings.hostFeatures.insert(.connectionSubratingHostSupport) }
        if configuration.usesAdvertisingCoding {
            settings.hostFeatures.insert(.advertisingCodingSelectionHostSupport)
        }
        settings.usesExtendedCommands = configuration.usesExtendedCommands
        settings.commandTimeout = max(configuration.commandTimeout, .milliseconds(100))
        settings.scanSilenceTimeout = configuration.scanSilenceTimeout.map { max($0, .seconds(1)) }
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
        opening?.setReturnHandler { [weak host] in
            loop.execute { host?.assumeIsolated { $0.retryRecovery() } }
        }
        do throws(StartError) {
            try await start(host)
        } catch {
            opening?.close()
            await bonds?.close()
            throw Task.isCancelled ? .cancelled : BLEError(error)
        }
        return Adapter(host: host, bonds: bonds, opening: opening, capture: capture)
    }

    /// Brings a host up, or closes it if the task is cancelled before it is up.
    private static func start(_ host: BluetoothHost) async throws(StartError) {
        let outcome: Result<Void, StartError> = await withTaskCancellationHandler {
            do throws(StartError) {
                if !Task.isCancelled { try await host.start() }
                return .success(())
            } catch {
                return .failure(error)
            }
        } onCancel: {
            Task(executorPreference: host.loop.appTaskExecutor) { await host.close() }
        }
        guard Task.isCancelled else { return try outcome.get() }
        // Returns when the host is closed.
        await Task(executorPreference: host.loop.appTaskExecutor) { await host.close() }.value
        throw .host(.cancelled)
    }

    /// The error that ended the capture early, such as a full disk; nil if there is none.
    package var captureFailure: TransportError? { capture.failure }

    /// Runs tasks on the adapter's own loop, by `Task(executorPreference:)` or `withTaskExecutorPreference`.
    ///
    /// Calls on the adapter from such a task need no thread switch, which matters if the task makes thousands of them
    /// per second. The task occupies the adapter's loop until it awaits, so it must not block or compute for long.
    public var taskExecutor: any TaskExecutor { host.loop.taskExecutor }

    /// The controller that is in use, or was last; nil for an adapter on a transport of the caller.
    ///
    /// After ``/BLEHCITransport/AdapterSpecification/automatic`` or an address, this is the kernel's adapter by its
    /// present number. It changes if the adapter comes back under another number.
    public var controller: AdapterSpecification? { opening?.controller }

    /// What the controller is and can do, from when it was last up.
    ///
    /// - Throws: ``BLEError/notReady`` or ``BLEError/closed`` if the controller was never up. An adapter that
    ///   ``open(_:configuration:)`` has returned throws neither.
    public var information: ControllerInformation {
        get async throws(BLEError) {
            try await translating { () throws(HostError) in try await host.controllerInformation() }
        }
    }

    /// Returns the adapter's events from now on. Each call returns a sequence of its own; the last event is
    /// ``/BluetoothHost/HostEvent/closed``.
    public func events() async -> Events<HostEvent> {
        let buffer = AsyncEventBuffer<HostEvent, Never>(limit: 256, report: .element { .eventsDropped($0) })
        let host = host
        let observer = await host.observe { event in
            buffer.append(event)
            if case .closed = event { buffer.finish() }
        }
        return Events(buffer: buffer, registration: Registration { host.cleanUp { $0.removeObserver(observer) } })
    }

    /// Ends all links, scans and advertisements, saves unsaved state and releases the controller.
    ///
    /// If a lost controller is being opened again, the step in progress ends in the background, as after a cancelled
    /// ``open(_:configuration:)``.
    public func close() async {
        await host.close()
        // Not earlier: the host would report the cancelled step of a recovery as a failure.
        opening?.close()
        // Another call may still be closing the host, whose links save their state when they end.
        if await host.hasEnded { await bonds?.close() }
    }
}
