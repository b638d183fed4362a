import BluetoothHost
import BluetoothTypes
import Foundation

// The peripherals that the host knows, and those that it is connected to.
extension HostCentral {
    func knownPeripherals(_ identifiers: [UUID]) -> [KnownPeripheral] {
        shared.open?.peers.retrieve(identifiers) ?? []
    }

    func connectedPeripherals(withServices services: [BluetoothUUID]) -> [KnownPeripheral] {
        shared.open?.peers.connected(withServices: services) ?? []
    }

    func registerForConnectionEvents(_ filter: ConnectionEventFilter?) {
        submit { _, _ in self.state.eventFilter = filter }
    }

    /// Reports that this host has connected to a peripheral or has disconnected, if the app observes such events.
    /// Called on the loop.
    func connectionEvent(_ event: CBConnectionEvent, _ peripheral: UUID) {
        guard let open, let filter = state.eventFilter, let known = open.peers.known([peripheral]).first else { return }
        let isWanted =
            filter == ConnectionEventFilter() || open.peers.isSame(peripheral, asAnyOf: filter.peripherals)
            || open.peers.has(peripheral, anyOf: filter.services)
        if isWanted { deliver(.connectionEvent(known, event)) }
    }

    // MARK: Changes

    func mtuChanged(_ link: LinkIdentifier, _ mtu: Int) {
        for peripheral in peripheralsInOrder {
            guard case .connected(link)? = state.connections[peripheral]?.phase else { continue }
            sayChange(.mtuChanged(peripheral, mtu), on: link)
        }
    }

    /// Reports a change that the peer on a link has caused to the manager. A peer that causes more changes than the app
    /// takes is disconnected. Called on the loop.
    func sayChange(_ event: CentralEvent, on link: LinkIdentifier) {
        guard !deliver(event), let open else { return }
        open.host.assumeIsolated { $0.disconnectFlooding(link) }
    }
}

extension DisconnectionReason {
    /// Whether no connection can follow, because the controller itself is unavailable.
    var isEndOfController: Bool {
        switch self {
        case .controllerReset, .adapterClosed: true
        case .controller, .attributeTransactionTimeout, .transmissionStalled, .peerFlooding: false
        }
    }
}
