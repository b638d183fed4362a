import BluetoothHost
import BluetoothTypes
import Foundation

// The peripherals that the host knows, and those that anything on it is connected to.
extension HostCentral {
    func knownPeripherals(_ identifiers: [UUID]) -> [KnownPeripheral] {
        shared.open?.peers.retrieve(identifiers) ?? []
    }

    func connectedPeripherals(withServices services: [BluetoothUUID]) -> [KnownPeripheral] {
        shared.open?.peers.connected(withServices: services) ?? []
    }

    func registerForConnectionEvents(_ filter: ConnectionEventFilter?) {
        post { _, _ in self.eventFilter = filter }
    }

    /// Something on this host is connected to a peripheral, or is no more. Called on the loop.
    func connectionEvent(_ event: CBConnectionEvent, _ peripheral: UUID) {
        guard let open, let filter = eventFilter, let known = open.peers.known([peripheral]).first else { return }
        let isWanted =
            filter == ConnectionEventFilter() || filter.peripherals.contains(peripheral)
            || open.peers.has(peripheral, anyOf: filter.services)
        if isWanted { say(.connectionEvent(known, event)) }
    }

    // MARK: Changes

    func mtuChanged(_ link: LinkIdentifier, _ mtu: Int) {
        for peripheral in peripheralsInOrder {
            if case .connected(link)? = connections[peripheral]?.phase {
                sayChange(.mtuChanged(peripheral, mtu), on: link)
            }
        }
    }

    /// Tells the manager of a change that the peer on a link has caused. A peer that causes more than the app takes is
    /// disconnected. Called on the loop.
    func sayChange(_ event: CentralEvent, on link: LinkIdentifier) {
        guard !say(event), let open else { return }
        open.host.assumeIsolated { $0.disconnectFlooding(link) }
    }
}

extension DisconnectionReason {
    /// Whether no connection can follow, since the controller itself is gone.
    var isEndOfController: Bool {
        switch self {
        case .controllerReset, .adapterClosed: true
        case .controller, .attributeTransactionTimeout, .transmissionStalled, .peerFlooding: false
        }
    }
}
