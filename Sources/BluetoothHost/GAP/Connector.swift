import BluetoothTypes
import HCI
import OrderedCollections

/// One wish to be connected to any of some peers.
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

/// The connections that apps wait for, and what the controller initiates for them.
///
/// A controller initiates one connection at a time; for several peers it is given its filter accept list. Peers that do not all
/// fit on the list take turns: see ``Window``.
struct Connector {
    /// What the controller initiates.
    struct Initiation: Equatable {
        var addresses: Set<DeviceAddress>
        var parameters: ConnectionParameters
    }

    enum State: Equatable {
        case idle
        case initiating(Initiation)
        /// Cancel was sent; a Connection Complete event is to come.
        case cancelling
    }

    /// The peers to which the controller is to initiate connections now, as far as its filter accept list reaches.
    struct Window: Equatable {
        /// Their addresses as attempts name them.
        var peers: Set<DeviceAddress> = []
        /// Their addresses on the air.
        var addresses: Set<DeviceAddress> = []
        /// Whether other peers wait until it is their turn.
        var isPartial = false
    }

    /// Whether initiating waits until scanning has stopped, because the controller cannot do both at the same time.
    enum ScanWait {
        case none
        case waiting
        /// The host has stopped scanning, or has tried to.
        case over
    }

    /// Where a peer was met that uses private addresses the controller does not know.
    struct Meeting {
        let address: DeviceAddress
        /// Goes off when the peer is to be sought anew.
        let timer: TimerQueue.Token
    }

    /// How long a turn is. A peer that advertises about once a second is found within this time.
    static let turnDuration = Duration.seconds(4)

    /// The oldest first.
    private(set) var attempts: [ConnectionAttempt] = []
    /// The addresses of all attempts.
    private var queue = AcceptListQueue(sufficientTime: Connector.turnDuration / 2)
    /// Runs while peers take turns.
    var turnTimer: TimerQueue.Token?
    /// Whether it is the turn of scans, on a controller that cannot scan while it initiates.
    var yieldsToScan = false
    var scanWait = ScanWait.none
    /// Where peers were met, by their identity addresses.
    var meetings: OrderedDictionary<DeviceAddress, Meeting> = [:]
    private(set) var state = State.idle
    /// Runs while the end of a cancelled initiation is awaited.
    var cancellationTimer: TimerQueue.Token?
    /// Whether the controller may have ended initiating without an event: it is cancelled and started again.
    var isInitiationDoubtful = false
    /// Links whose end is awaited, because the controller makes no second connection to their peers.
    var blockers: Set<LinkIdentifier> = []
    var reconciliation = Reconciliation()

    /// Whether a connection is wanted or the controller may initiate one, or something waits for its turn. Otherwise there is
    /// nothing to bring the controller to.
    var mayInitiate: Bool {
        !attempts.isEmpty || !isResting || turnTimer != nil || yieldsToScan || scanWait != .none
    }

    /// Whether the controller initiates nothing, and is not being told to.
    var isResting: Bool { state == .idle && !reconciliation.isRunning }

    // MARK: Turns

    /// The peers whose turn it is: the first of the queue.
    ///
    /// - Parameters:
    ///   - acceptListSize: how many addresses the controller's filter accept list holds; without a list, one address is
    ///     initiated at a time.
    ///   - mustBeSought: whether a peer can only be connected to where it was met.
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

    /// What the controller is to initiate for the peers of a window: with the parameters of the oldest attempt for any of them.
    func initiation(for window: Window) -> Initiation? {
        attempts.first { !$0.addresses.isDisjoint(with: window.peers) }
            .map { Initiation(addresses: window.addresses, parameters: $0.parameters) }
    }

    /// Ends the turn of a window's peers: they wait behind the others.
    mutating func endTurn(of window: Window, at now: Instant) {
        queue.endTurn(of: window.peers, at: now)
    }

    /// Changes what the controller initiates. The host calls ``BluetoothHost/setInitiation(_:)``.
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

    /// Takes the attempts that a connection to a device with any of `addresses` fulfils.
    mutating func takeAttempts(forAnyOf addresses: Set<DeviceAddress>) -> [ConnectionAttempt] {
        takeAttempts { !$0.addresses.isDisjoint(with: addresses) }
    }

    /// Takes an attempt that ends without a connection. Its addresses keep their places in the queue.
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

    /// The peers that are initiated at `addresses`: these addresses, and the identities of peers that were found there.
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
