import BluetoothTypes
import HCI

/// One wish to be connected to any of some peers.
struct ConnectionAttempt {
    let identifier: UInt64
    let addresses: Set<DeviceAddress>
    let parameters: ConnectionParameters
    var timer: TimerQueue.Token?
    let completion: (Result<LinkIdentifier, HostError>) -> Void
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

    var attempts: [ConnectionAttempt] = []
    var state = State.idle
    var reconciliation = Reconciliation()

    var isInitiating: Bool { state != .idle || !attempts.isEmpty }

    /// What the controller is to initiate for all attempts together, as far as its accept list reaches.
    func wanted(acceptListSize: Int) -> Initiation? {
        guard let first = attempts.first else { return nil }
        var addresses: Set<DeviceAddress> = []
        for attempt in attempts {
            for address in attempt.addresses.inOrder where addresses.count < max(1, acceptListSize) {
                addresses.insert(address)
            }
        }
        return Initiation(addresses: addresses, parameters: first.parameters)
    }

    /// Takes the attempts that a connection to `address` fulfils.
    mutating func takeAttempts(for address: DeviceAddress) -> [ConnectionAttempt] {
        let fulfilled = attempts.filter { $0.addresses.contains(address) }
        attempts.removeAll { $0.addresses.contains(address) }
        return fulfilled
    }

    mutating func takeAttempt(_ identifier: UInt64) -> ConnectionAttempt? {
        guard let index = attempts.firstIndex(where: { $0.identifier == identifier }) else { return nil }
        return attempts.remove(at: index)
    }

    mutating func forgetController() {
        state = .idle
    }
}

extension Set<DeviceAddress> {
    /// The addresses in an order that is the same in each run.
    var inOrder: [DeviceAddress] {
        sorted { ($0.isRandom ? 1 : 0, $0.value) < ($1.isRandom ? 1 : 0, $1.value) }
    }
}
