import ATT
import BluetoothTypes
import ByteCoding
import GATT
import HCI
import HCITransport
import L2CAP
import Logging
import OrderedCollections
import Synchronization

/// A Bluetooth LE host on one controller: bring-up and recovery, links, GAP, GATT in both roles.
///
/// The actor's executor is its event loop, on which the transport calls in; so an inbound packet goes through all layers in
/// one synchronous call chain, and no protocol state is ever seen from elsewhere. The faces call its methods and give it
/// `@Sendable` closures, which it calls on the loop.
///
/// Each access of a stored property costs a check, at run time, that no other access overlaps it: a fifth of what a packet
/// costs. What is marked `@exclusivity(unchecked)` is on each packet's way and needs none: it is only loaded, stored, and
/// changed by methods that call nothing back, so that on the one loop no two accesses of it can overlap.
package actor BluetoothHost {
    /// What is set when a host is made.
    package struct Configuration: Sendable {
        package var logger = Logger(label: "swift-ble.host", factory: { _ in SwiftLogNoOpLogHandler() })
        /// The ATT_MTU that is offered to peers: 23 to 517 octets.
        package var mtu: UInt16 = 517
        /// Whether a central asks for a longer ATT_MTU on each new link by itself.
        package var requestsMTU = true
        /// How long the controller may take to answer a command.
        package var commandTimeout = Duration.seconds(4)
        /// How long a scan may be silent before it is restarted; nil for ever.
        package var scanSilenceTimeout: Duration? = .seconds(90)
        /// How often an advertisement is started anew, for it may have ended unnoticed; nil for never.
        package var advertisingRefreshInterval: Duration? = .seconds(90)
        /// The host's random static address; nil for the controller's public address, or the one that is kept with the
        /// bonds where the controller has none.
        package var identityAddress: DeviceAddress?
        /// Whether extended advertising, scanning and initiating are used where the controller has them.
        package var usesExtendedCommands = true
        /// What keeps bonds and identity over restarts; nil for nothing. It is read once, when the controller has first told
        /// its public address.
        package var bondStore: (any BondStore)?
        /// Whether bringing the host up fails where the store could not load what it has kept, or cannot keep changes.
        package var requiresState = false
        /// Whether the host shows itself under resolvable private addresses, which change from time to time, instead of its
        /// identity address: when it advertises, scans actively and connects. Only those it is bonded to know it again then,
        /// which is what a phone wants; a gateway that others are to find by its address does not.
        package var usesPrivateAddresses = false
        /// How long a private address is used: 1 s to 1 h, in whole seconds.
        package var privateAddressTimeout = Duration.seconds(900)
        /// Whether a bonded peer that has a key for private addresses is still heard when it uses its identity address
        /// (Vol 6, Part B, 4.7). The controller decides for the peers on its resolving list, the host for the others.
        package var privacyMode = PrivacyMode.device
        package var deviceName = "swift-ble"
        package var appearance = Appearance(rawValue: 0)
        /// How many frames may wait on a link before those who write more are asked to wait.
        package var outboundFrameLimit = 16
        /// How many K-frames of channels may wait on a link beside those; the rest waits in its channels.
        package var channelFrameLimit = 8
        package var security = SecurityPolicy()
        /// Is asked about pairings; nil where there is nobody to ask.
        package var pairingHandler: PairingHandler?
        /// How many bonds there are at the most.
        package var bondLimit = 128

        package init() {}
    }

    /// Whether the controller can be used.
    enum Power: Equatable {
        case off
        case starting
        case on
        case recovering
        case closed
    }

    /// How far a bring-up has come.
    enum BringUpPhase: Equatable {
        /// The controller has not confirmed Reset. An error that it reports now is from before.
        case resetting
        /// The controller is being prepared. An error may erase its settings, such as the event masks.
        case preparing
        /// The controller has failed since its reset; the text says how.
        case failed(String)
    }

    package nonisolated let loop: any EventLoop
    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    nonisolated let submissions = SubmissionQueue()
    nonisolated let calls = CallTable()
    let configuration: Configuration
    package nonisolated let logger: Logger
    let metrics = HostMetrics()
    var random: any RandomNumberGenerator & Sendable

    // Controller.
    let openTransport: TransportOpener
    @exclusivity(unchecked)
    var transport: (any Transport)?
    /// Counts transports and resets, so that what an earlier one still says is not heard.
    var generation: UInt64 = 0
    /// That with which the transport was opened.
    @exclusivity(unchecked)
    var transportGeneration: UInt64 = 0
    var power = Power.off
    /// Whether ``close()`` has finished. No observer is called from then on, and the host holds nothing for its users.
    private nonisolated let end = Atomic(false)
    var bringUpPhase = BringUpPhase.resetting
    var information: ControllerInformation?
    var commands = CommandQueue()
    var commandTimer: TimerQueue.Token?
    /// Runs while commands wait for the controller to take them.
    var commandCreditTimer: TimerQueue.Token?
    @exclusivity(unchecked)
    var sender: LinkSender
    @exclusivity(unchecked)
    var turn = Turn()
    var recoveryDelay = Duration.milliseconds(100)
    /// Ends the pause between two attempts to bring the controller up again.
    var recoveryPause: (() -> Void)?
    var lastPowerOn: Instant?

    // Loop.
    var timers = TimerQueue()
    var alarm: (any Alarm)?
    var armedFor: Instant?

    /// The number of the host's tasks that have started and not ended.
    var taskCount = 0

    // Links.
    // Ordered, as all that is gone through is: the same packets and calls must have the same outcome.
    @exclusivity(unchecked)
    var links = LinkTable()
    /// Why links that are gone have ended, for those who ask late; bounded.
    var endedLinks = GenerationalTable<LinkIdentifier, DisconnectionReason>(limit: 256)
    /// When links ended, by their handles: a controller may still hand up data that were under way.
    var endedHandles = GenerationalTable<ConnectionHandle, Instant>(limit: 64)
    var strayHandles = StrayHandles()
    /// Runs when advertising and initiating are to start again after the end of an unknown link.
    var roleRestartTimer: TimerQueue.Token?
    var nextIdentifier: UInt64 = 0

    // GAP.
    var scanner = Scanner()
    var advertiser = Advertiser()
    var connector = Connector()
    var privacy = Privacy()

    // GATT.
    let server: GATT.Server
    /// Of Central Address Resolution (Vol 3, Part C, 12.4).
    let addressResolutionHandle: AttributeHandle?
    @exclusivity(unchecked)
    var subscriptions = SubscriptionIndex()
    nonisolated let publishedProperties = PublishedProperties()
    var accessHandlers: [AttributeHandle: AccessHandler] = [:]
    var authorizer: Authorizer?

    // L2CAP channels.
    var channelServices = SPSMRegistry()
    var channelAcceptors: [SPSM: ChannelAcceptor] = [:]

    // Security.
    var bonds: BondDatabase
    /// Why saved state could not be used, or changes cannot be saved.
    var stateProblem: String?
    var securityPolicy: SecurityPolicy
    var pairingHandler: PairingHandler?
    /// Names the handler that was set last.
    var pairingHandlerIdentifier: UInt64 = 0
    var pairingAttempts = PairingAttempts()
    /// When the pairing window ends; nil where none is open.
    var pairingWindowEnd: Instant?

    // Observers.
    var securityObservers: OrderedDictionary<UInt64, @Sendable (SecurityEvent) -> Void> = [:]
    var hostObservers: OrderedDictionary<UInt64, @Sendable (HostEvent) -> Void> = [:]
    var serverObservers: OrderedDictionary<UInt64, @Sendable (ServerRoleEvent) -> Void> = [:]

    package init(
        loop: any EventLoop,
        configuration: Configuration,
        random: any RandomNumberGenerator & Sendable,
        openTransport: @escaping TransportOpener
    ) {
        self.loop = loop
        self.configuration = configuration
        self.logger = configuration.logger
        self.openTransport = openTransport
        sender = LinkSender(
            frameLimit: configuration.outboundFrameLimit,
            channelFrameLimit: configuration.channelFrameLimit
        )
        securityPolicy = configuration.security
        pairingHandler = configuration.pairingHandler
        (self.server, addressResolutionHandle) = BluetoothHost.makeServer(configuration)
        var random = random
        bonds = BondDatabase(
            identity: KeptIdentity(random: &random),
            limit: configuration.bondLimit,
            isPersistent: configuration.bondStore != nil
        )
        self.random = random
    }

    /// Ends what apps wait for that no link's end ends.
    func failPendingOperations(_ error: HostError) {
        endScans(error)
        endSleeps(error)
        let attempts = connector.takeAllAttempts()
        forgetMeetings()
        for attempt in attempts { end(attempt, .failure(error)) }
        let entries = advertiser.entries
        advertiser.entries = []
        for entry in entries {
            for call in entry.calls { end(call, .failure(error)) }
        }
    }

    func makeIdentifier() -> UInt64 {
        nextIdentifier += 1
        return nextIdentifier
    }
}

/// What happens to a host as a whole.
public enum HostEvent: Sendable {
    /// The controller has been brought up and can be used.
    case poweredOn(ControllerInformation)
    /// The controller failed and is being brought up again; all links are gone. The text says what had failed.
    case resetting(reason: String)
    /// A scan had been silent and was restarted.
    case scanRestarted(afterSilence: Duration)
    /// The saved state could not be used as it was found, or changes cannot be saved; the text says why.
    ///
    /// Bonds may be missing, and the host may have a new identity that its peers do not know. Each observer receives this
    /// event first, also one that is added later.
    case stateUnavailable(reason: String)
    /// The host was closed.
    case closed
    /// As many events were dropped at this place, because the reader was too slow.
    case eventsDropped(Int)
}

extension BluetoothHost {
    nonisolated var hasEnded: Bool { end.load(ordering: .relaxed) }

    func setEnded() {
        end.store(true, ordering: .relaxed)
    }
}

extension BluetoothHost {
    /// Calls `observer` on the loop with each event from now on, until ``removeObserver(_:)``. The last event is
    /// ``HostEvent/closed``; a closed host reports it immediately.
    package func observe(_ observer: @escaping @Sendable (HostEvent) -> Void) -> UInt64 {
        let identifier = makeIdentifier()
        if hasEnded {
            deliver(.action { observer(.closed) })
        } else {
            hostObservers[identifier] = observer
            if let stateProblem { deliver(.hostEvent(identifier, .stateUnavailable(reason: stateProblem))) }
        }
        endInput()
        return identifier
    }

    /// Calls `observer` on the loop with each event of the server role from now on, until ``removeObserver(_:)``.
    package func observeServer(_ observer: @escaping @Sendable (ServerRoleEvent) -> Void) -> UInt64 {
        let identifier = makeIdentifier()
        guard !hasEnded else { return identifier }
        serverObservers[identifier] = observer
        if serverObservers.count == 1 { serverObserversChanged() }
        return identifier
    }

    package func removeObserver(_ identifier: UInt64) {
        hostObservers[identifier] = nil
        if serverObservers.removeValue(forKey: identifier) != nil, serverObservers.isEmpty { serverObserversChanged() }
        securityObservers[identifier] = nil
    }

    private func serverObserversChanged() {
        for link in links.values { reportServerEvents(of: link) }
    }

    func emit(_ event: HostEvent) {
        for observer in hostObservers.keys { deliver(.hostEvent(observer, event)) }
    }

    func emit(_ event: ServerRoleEvent) {
        for identifier in serverObservers.keys {
            if turn.canDeliverWhileReceiving, let observer = serverObservers[identifier] {
                let phase = beginDelivery()
                observer(event)
                turn.phase = phase
            } else {
                deliver(.serverEvent(identifier, event))
            }
        }
    }

    /// Releases what apps gave to a host that was closed.
    func removeObservers() {
        hostObservers.removeAll()
        serverObservers.removeAll()
        securityObservers.removeAll()
        accessHandlers.removeAll()
        channelServices = SPSMRegistry()
        channelAcceptors.removeAll()
    }
}
