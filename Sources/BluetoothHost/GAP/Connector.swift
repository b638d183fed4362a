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
        /// A completion of the host itself, called at once.
        case task((Result<LinkIdentifier, HostError>) -> Void)
        /// A closure of an app.
        case callback(@Sendable (Result<LinkIdentifier, HostError>) -> Void)
    }
}

/// The connections that apps wait for, and what the controller initiates for them.
///
/// A controller initiates one connection at a time; for several peers it is given its filter accept list.
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

    /// Where a peer was met that uses private addresses the controller does not know.
    struct Meeting {
        let address: DeviceAddress
        /// Goes off when the peer is to be sought anew.
        let timer: TimerQueue.Token
    }

    var attempts: [ConnectionAttempt] = []
    /// Where peers were met, by their identity addresses.
    var meetings: OrderedDictionary<DeviceAddress, Meeting> = [:]
    var state = State.idle
    /// Whether the controller may have ended initiating without an event: it is cancelled and started again.
    var isInitiationDoubtful = false
    /// Links whose end is awaited, because the controller makes no second connection to their peers.
    var blockers: Set<LinkIdentifier> = []
    var reconciliation = Reconciliation()

    /// Whether the controller initiates nothing, and is not being told to.
    var isResting: Bool { state == .idle && !reconciliation.isRunning }

    /// What the controller is to initiate for all attempts together, as far as its accept list reaches.
    ///
    /// - Parameter mustBeSought: whether a peer can only be connected to where it was met.
    func wanted(acceptListSize: Int, mustBeSought: (DeviceAddress) -> Bool) -> Initiation? {
        var addresses: Set<DeviceAddress> = []
        var parameters: ConnectionParameters?
        for attempt in attempts {
            for address in attempt.addresses.inOrder where addresses.count < max(1, acceptListSize) {
                guard let used = mustBeSought(address) ? meetings[address]?.address : address else { continue }
                addresses.insert(used)
                parameters = parameters ?? attempt.parameters
            }
        }
        return parameters.map { Initiation(addresses: addresses, parameters: $0) }
    }

    /// Takes the attempts that a connection to a device with any of `addresses` fulfils.
    mutating func takeAttempts(forAnyOf addresses: Set<DeviceAddress>) -> [ConnectionAttempt] {
        let fulfilled = attempts.filter { !$0.addresses.isDisjoint(with: addresses) }
        attempts.removeAll { !$0.addresses.isDisjoint(with: addresses) }
        return fulfilled
    }

    /// Whom what is initiated is for: the addresses themselves, and the peers that were met there.
    func peers(at addresses: Set<DeviceAddress>) -> Set<DeviceAddress> {
        addresses.union(meetings.filter { addresses.contains($0.value.address) }.keys)
    }

    mutating func takeAttempt(_ identifier: UInt64) -> ConnectionAttempt? {
        guard let index = attempts.firstIndex(where: { $0.identifier == identifier }) else { return nil }
        return attempts.remove(at: index)
    }

    mutating func forgetController() {
        state = .idle
        isInitiationDoubtful = false
    }
}

extension Set<DeviceAddress> {
    /// The addresses in an order that is the same in each run.
    var inOrder: [DeviceAddress] {
        sorted { ($0.isRandom ? 1 : 0, $0.value) < ($1.isRandom ? 1 : 0, $1.value) }
    }
}
