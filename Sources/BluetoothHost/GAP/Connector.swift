import BluetoothTypes
import HCI
import OrderedCollections

/// A request for a connection to any of several peers.
struct ConnectionAttempt {
    let identifier: UInt64
    let addresses: Set<DeviceAddress>
    let parameters: ConnectionParameters
    var timer: TimerQueue.Token?
    let caller: Caller

    enum Caller {
        /// A suspended task, which is resumed at once.
        case task(CallToken)
        /// A closure of an app.
        case callback(@Sendable (Result<LinkIdentifier, HostError>) -> Void)
    }
}

/// The connections that apps wait for, and the controller's initiation of them.
///
/// A controller initiates one connection at a time. For several peers, it uses its filter accept list. Peers that do
/// not all fit on the list take turns: see ``Window``.
struct Connector {
    /// The parameters of the controller's initiation.
    struct Initiation: Equatable {
        var addresses: Set<DeviceAddress>
        var parameters: ConnectionParameters
    }

    enum State: Equatable {
        case idle
        case initiating(Initiation)
        /// Cancel was sent; a Connection Complete event will follow.
        case cancelling
    }

    /// The peers to which the controller is to initiate connections now, limited by the size of its filter accept list.
    struct Window: Equatable {
        /// The peers' addresses as the attempts name them.
        var peers: Set<DeviceAddress> = []
        /// The peers' addresses on the air.
        var addresses: Set<DeviceAddress> = []
        /// Whether other peers wait for their turn.
        var isPartial = false
    }

    /// Whether initiating waits until scanning has stopped, because the controller cannot do both at the same time.
    enum ScanWait {
        case none
        case waiting
        /// The host has stopped scanning, or has tried to.
        case over
    }

    /// The private address at which a peer was found, if the controller cannot resolve the peer's addresses.
    struct Meeting {
        let address: DeviceAddress
        /// Fires when the peer must be searched for again.
        let timer: TimerQueue.Token
    }

    /// The duration of a turn. A peer that advertises about once a second is found within this time.
    static let turnDuration = Duration.seconds(4)

    /// All attempts, oldest first.
    private(set) var attempts: [ConnectionAttempt] = []
    /// The addresses of all attempts.
    private var queue = AcceptListQueue(sufficientTime: Connector.turnDuration / 2)
    /// Runs while peers take turns.
    var turnTimer: TimerQueue.Token?
    /// Whether it is the turn of scans, on a controller that cannot scan while it initiates.
    var yieldsToScan = false
    var scanWait = ScanWait.none
    /// The addresses at which peers were found, by their identity addresses.
    var meetings: OrderedDictionary<DeviceAddress, Meeting> = [:]
    private(set) var state = State.idle
    /// Runs while the host waits for the end of a cancelled initiation.
    var cancellationTimer: TimerQueue.Token?
    /// Whether the controller may have ended initiating without an event. The initiation is then cancelled and started
    /// again.
    var isInitiationDoubtful = false
    /// Links that must end first, because the controller makes no second connection to their peers.
    var blockers: Set<LinkIdentifier> = []
    var reconciliation = Reconciliation()

    /// Whether a connection is wanted, the controller may be initiating one, or a peer or scan waits for its turn.
    /// Otherwise a pass has nothing to do.
    var mayInitiate: Bool {
        !attempts.isEmpty || !isResting || turnTimer != nil || yieldsToScan || scanWait != .none
    }

    /// Whether the controller initiates nothing, and no command for it is in progress.
    var isResting: Bool { state == .idle && !reconciliation.isRunning }

    // MARK: Turns

    /// The peers whose turn it is: those at the front of the queue.
    ///
    /// - Parameters:
    ///   - acceptListSize: the number of addresses that the controller's filter accept list holds. Without a list, one
    ///     address is initiated at a time.
    ///   - mustBeSought: whether a peer can only be connected to at an address at which a scan found it.
    func window(acceptListSize: Int, mustBeSought: (DeviceAddress) -> Bool) -> Window {
        var window = Window()
        for peer in queue.peers {
            guard let address = mustBeSought(peer) ? meetings[peer]?.address : peer else { continue }
            guard window.addresses.count < max(1, acceptListSize) else {
                window.isPartial = true
                break
            }
            window.peers.insert(peer)
            window.addresses.insert(address)
        }
        return window
    }

    /// The initiation for the peers of a window, with the parameters of the oldest attempt for any of them.
    func initiation(for window: Window) -> Initiation? {
        attempts.first { !$0.addresses.isDisjoint(with: window.peers) }
            .map { Initiation(addresses: window.addresses, parameters: $0.parameters) }
    }

    /// Ends the turn of a window's peers: they move to the end of the queue.
    mutating func endTurn(of window: Window, at now: Instant) {
        queue.endTurn(of: window.peers, at: now)
    }

    /// Records what the controller initiates. Only ``BluetoothHost/setInitiation(_:)`` calls this.
    mutating func enter(_ state: State, at now: Instant) {
        if case .initiating(let initiation) = state {
            queue.beginInitiating(peers(at: initiation.addresses), at: now)
        } else {
            queue.endInitiating(at: now)
        }
        self.state = state
    }

    // MARK: Attempts

    mutating func add(_ attempt: ConnectionAttempt) {
        attempts.append(attempt)
        for address in attempt.addresses.inOrder { queue.append(address) }
    }

    /// Removes and returns the attempts that a connection to a device with any of `addresses` fulfils.
    mutating func takeAttempts(forAnyOf addresses: Set<DeviceAddress>) -> [ConnectionAttempt] {
        takeAttempts { !$0.addresses.isDisjoint(with: addresses) }
    }

    /// Removes and returns an attempt that ends without a connection. Its addresses keep their places in the queue.
    mutating func takeAttempt(_ identifier: UInt64, at now: Instant) -> ConnectionAttempt? {
        takeAttempts(keepingPlacesAt: now) { $0.identifier == identifier }.first
    }

    mutating func takeAllAttempts() -> [ConnectionAttempt] {
        takeAttempts { _ in true }
    }

    private mutating func takeAttempts(
        keepingPlacesAt now: Instant? = nil,
        where isTaken: (ConnectionAttempt) -> Bool
    ) -> [ConnectionAttempt] {
        let taken = attempts.filter(isTaken)
        guard !taken.isEmpty else { return [] }
        attempts.removeAll(where: isTaken)
        let wanted = attempts.reduce(into: Set()) { $0.formUnion($1.addresses) }
        queue.removeAll(except: wanted, keepingPlacesAt: now)
        return taken
    }

    /// The peers of an initiation to `addresses`: these addresses, and the identities of peers that were found at them.
    func peers(at addresses: Set<DeviceAddress>) -> Set<DeviceAddress> {
        meetings.isEmpty
            ? addresses : addresses.union(meetings.filter { addresses.contains($0.value.address) }.keys)
    }

    mutating func forgetController() {
        isInitiationDoubtful = false
        scanWait = .none
    }
}

extension Set<DeviceAddress> {
    /// The addresses in an order that is the same in each run.
    var inOrder: [DeviceAddress] {
        sorted { ($0.isRandom ? 1 : 0, $0.value) < ($1.isRandom ? 1 : 0, $1.value) }
    }
}
