import BLEATT
import BLEByteCoding
import BLEGATT
import BLEHCI
import BLEHCITransport
import BLEL2CAP
import BluetoothTypes
import Logging

/// A Bluetooth LE host on one controller: bring-up and recovery, links, GAP, GATT in both roles.
///
/// The actor's executor is its event loop, on which the transport delivers packets. An inbound packet passes through
/// all layers in one synchronous call chain, and protocol state is accessed on the loop only. The APIs call the host's
/// methods and pass `@Sendable` closures, which the host calls on the loop.
///
/// Each change of a stored structure in place checks at run time that no other access overlaps it. For the structures
/// that each packet uses (`sender`, `links`, `isochronous` and `Link.att`), these checks would cost a fifth of the time
/// for a packet. So release builds omit them (`@exclusivity(unchecked)`). The methods of these structures call no code
/// of the host, of transports or of apps, so accesses cannot overlap on the loop. Debug builds, and so the tests, check
/// them too.
///
/// The actor is final, so its stored structures are read in place. Otherwise debug builds would read the noncopyable
/// ones through a coroutine, and Swift 6.3.1 uses parts of a large structure after the coroutine has freed them.
package final actor BluetoothHost {
    /// The settings of a host, which stay the same during its life.
    package struct Configuration: Sendable {
        package var logger = Logger(label: "swift-ble.host", factory: { _ in SwiftLogNoOpLogHandler() })
        /// The ATT_MTU that is offered to peers: 23 to 517 bytes.
        package var mtu: UInt16 = 517
        /// Whether the host, as the central, requests a longer ATT_MTU on each new link.
        package var requestsMTU = true
        /// Maximum number of enhanced ATT bearers of a link, besides the fixed channel: 0 to 5 (Vol 3, Part G, 5.3).
        ///
        /// With 0, the host neither opens nor accepts any. Otherwise its server accepts this number on each encrypted
        /// link, and its client opens this number as the central, if the peer's server accepts them.
        package var enhancedBearerLimit = 0
        /// The time within which the controller must answer a command.
        package var commandTimeout = Duration.seconds(4)
        /// The time without received packets after which a scan is restarted; nil for no limit.
        package var scanSilenceTimeout: Duration? = .seconds(90)
        /// The interval at which an advertisement is started again, in case the controller ended it unnoticed; nil for
        /// never.
        package var advertisingRefreshInterval: Duration? = .seconds(90)
        /// The host's random static address. Nil selects the controller's public address; if the controller has none,
        /// the address that is stored with the bonds.
        package var identityAddress: DeviceAddress?
        /// Whether extended advertising, scanning and initiating are used if the controller supports them.
        package var usesExtendedCommands = true
        /// The host features that are set in the controller at bring-up, if it supports them (Vol 4, Part E, 7.8.115).
        package var hostFeatures: LEFeatures = .channelSoundingHostSupport
        /// The store that keeps bonds and identity across restarts; nil to keep nothing. It is read once, when the
        /// controller has first reported its public address.
        package var bondStore: (any BondStore)?
        /// Whether the host fails to start if the store cannot load the saved state or cannot save changes.
        package var requiresState = false
        /// Whether the host uses resolvable private addresses, which change from time to time, instead of its identity
        /// address: for advertising, active scanning and connecting. Then only bonded peers can recognize it, as a
        /// phone needs. A gateway that others find by its address leaves this off.
        package var usesPrivateAddresses = false
        /// How long a private address is used: 1 s to 1 h, in whole seconds.
        package var privateAddressTimeout = Duration.seconds(900)
        /// Whether a bonded peer that has a key for private addresses is still received if it uses its identity address
        /// (Vol 6, Part B, 4.7). The controller decides this for the peers on its resolving list, the host for the
        /// others.
        package var privacyMode = PrivacyMode.device
        package var deviceName = "swift-ble"
        package var appearance = Appearance(rawValue: 0)
        /// The number of unsent frames on a link from which writers have to wait.
        package var outboundFrameLimit = 16
        /// The maximum number of unsent K-frames on a link, in addition to those frames. Further K-frames wait in their
        /// channels.
        package var channelFrameLimit = 8
        package var security = SecurityPolicy()
        /// The first handler that decides about pairings; nil if there is none. The host's own configuration does not
        /// keep it, because a closed host releases its handler.
        package var pairingHandler: PairingHandler?
        /// Maximum number of bonds.
        package var bondLimit = 128

        package init() {}
    }

    package nonisolated let loop: any EventLoop
    package nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    let configuration: Configuration
    let metrics = HostMetrics()
    var random: any RandomNumberGenerator & Sendable

    // What callers on other threads use as well.
    package nonisolated let readers: ReaderQueue
    nonisolated let calls: CallTable
    nonisolated let submissions = SubmissionQueue()

    // Controller.
    var port: TransportPort
    var session: ControllerSession
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var sender: LinkSender

    // Loop.
    var turn = Turn()
    var timers = TimerQueue()

    // All collections that are iterated are ordered: the same packets and calls must have the same outcome.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var links = LinkTable()
    var gap: GAPEngine
    var linkDefaults = LinkDefaults()
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var isochronous = IsochronousEngine()
    var services: PublishedServices
    var updates = UpdatesInFlight()
    var bonds: BondDatabase
    var pairing: HostPairing
    var observers = Observers()

    package init(
        loop: any EventLoop,
        configuration: Configuration,
        random: any RandomNumberGenerator & Sendable,
        openTransport: @escaping TransportOpener
    ) {
        self.loop = loop
        var configuration = configuration
        pairing = HostPairing(policy: configuration.security, handler: configuration.pairingHandler.take())
        self.configuration = configuration
        readers = ReaderQueue(loop: loop)
        calls = CallTable(readers)
        port = TransportPort(open: openTransport)
        session = ControllerSession(
            commandTimeout: configuration.commandTimeout,
            mayUseExtendedCommands: configuration.usesExtendedCommands,
            hostFeatures: configuration.hostFeatures
        )
        sender = LinkSender(
            frameLimit: configuration.outboundFrameLimit,
            channelFrameLimit: configuration.channelFrameLimit
        )
        gap = GAPEngine(
            scanning: ScanPlan(silenceTimeout: configuration.scanSilenceTimeout),
            advertising: AdvertisingPlan(refreshInterval: configuration.advertisingRefreshInterval),
            addresses: AddressPlan(
                AddressPlan.Settings(
                    usesPrivateAddresses: configuration.usesPrivateAddresses,
                    privacyMode: configuration.privacyMode,
                    timeout: configuration.privateAddressTimeout
                )
            )
        )
        services = PublishedServices(configuration)
        var random = random
        bonds = BondDatabase(
            identity: HostIdentity(random: &random),
            limit: configuration.bondLimit,
            isPersistent: configuration.bondStore != nil,
            isRequired: configuration.requiresState
        )
        self.random = random
    }

    package nonisolated var logger: Logger { configuration.logger }

    /// Ends the operations of apps that do not end with a link.
    func failPendingOperations(_ error: HostError) {
        endSleeps(error)
        endLinkDefaults(error)
        perform(gap.endAllOperations(error, gapContext))
        endAllStreams(error, .adapterClosed)
    }
}

/// An event about a host as a whole.
public enum HostEvent: Sendable {
    /// The controller has been brought up and can be used.
    case poweredOn(ControllerInformation)
    /// The controller failed and is being brought up again; all links have ended. The text describes the failure.
    case resetting(reason: String)
    /// A scan received nothing for this long and was restarted.
    case scanRestarted(afterSilence: Duration)
    /// The saved state could not be used as it was, or changes cannot be saved; the text says why.
    ///
    /// Bonds may be missing, and the host may have a new identity that its peers do not know. An observer that is added
    /// while there is such a problem receives this event first. The event also occurs after a loss of the controller,
    /// if the host then uses another controller.
    case stateUnavailable(reason: String)
    /// The host was closed.
    case closed
    /// This number of events was dropped at this place, because the reader was too slow.
    case eventsDropped(Int)
}

extension BluetoothHost {
    /// Calls `observer` on the loop with each event from now on, until ``removeObserver(_:)``. The last event is
    /// ``HostEvent/closed``; a closed host reports it immediately.
    package func observe(_ observer: @escaping @Sendable (HostEvent) -> Void) -> UInt64 {
        let identifier = observers.makeIdentifier()
        if calls.hasEnded {
            deliver(.action { observer(.closed) })
        } else {
            observers.add(identifier, observer)
            if let problem = bonds.problem { deliver(.hostEvent(identifier, .stateUnavailable(reason: problem))) }
        }
        endInput()
        return identifier
    }

    /// Calls `observer` on the loop with each event of the server role from now on, until ``removeObserver(_:)``.
    package func observeServer(_ observer: @escaping @Sendable (ServerRoleEvent) -> Void) -> UInt64 {
        let identifier = observers.makeIdentifier()
        guard !calls.hasEnded else { return identifier }
        observers.add(identifier, observer)
        if observers.server.count == 1 { serverObserversChanged() }
        return identifier
    }

    package func removeObserver(_ identifier: UInt64) {
        let hadServerObservers = !observers.server.isEmpty
        let removed = observers.remove(identifier)
        if hadServerObservers, observers.server.isEmpty { serverObserversChanged() }
        withExtendedLifetime(removed) {}
    }

    private func serverObserversChanged() {
        for link in links.values { reportServerEvents(of: link) }
    }

    func emit(_ event: HostEvent) {
        for observer in observers.host.keys { deliver(.hostEvent(observer, event)) }
    }

    func emit(_ event: ServerRoleEvent) {
        // Usually there is one observer.
        if let observer = observers.onlyServerObserver, turn.canDeliverWhileReceiving {
            let phase = beginDelivery()
            observer(event)
            turn.phase = phase
            return
        }
        for identifier in observers.server.keys {
            if turn.canDeliverWhileReceiving, let observer = observers.server[identifier] {
                let phase = beginDelivery()
                observer(event)
                turn.phase = phase
            } else {
                deliver(.serverEvent(identifier, event))
            }
        }
    }

    /// Releases the closures of apps in a host that was closed, and the function that opens transports.
    func removeObservers() {
        // Code of apps that runs at the release finds no access to this state in progress.
        let closures = (
            observers.removeAll(), services.removeClosures(), updates.removeAll(), pairing.close(), port.removeOpener()
        )
        withExtendedLifetime(closures) {}
    }
}
