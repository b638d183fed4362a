import BLEATT
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
        submit { _, _ in
            self.state.eventFilter = filter
            if filter == nil { self.state.unreportedLinks = [] }
        }
    }

    /// Reports that this host has connected to a peripheral, if the app observes the peripheral. Otherwise the
    /// connection may be reported once more services of the peripheral are known. Called on the loop.
    func peerConnected(_ peripheral: UUID, on link: LinkIdentifier) {
        guard state.eventFilter != nil else { return }
        if !report(.peerConnected, of: peripheral) { state.unreportedLinks.insert(link) }
    }

    /// Reports the connection to a peripheral whose services were discovered, if the app observes these and the
    /// connection was not reported before. Called on the loop.
    func servicesDiscovered(of peripheral: UUID, on link: LinkIdentifier) {
        guard state.unreportedLinks.contains(link), report(.peerConnected, of: peripheral) else { return }
        state.unreportedLinks.remove(link)
    }

    /// Reports that this host has disconnected from a peripheral, if the app observes the peripheral and knows of the
    /// connection. Called on the loop.
    func peerDisconnected(_ peripheral: UUID, from link: LinkIdentifier) {
        guard state.unreportedLinks.remove(link) == nil else { return }
        report(.peerDisconnected, of: peripheral)
    }

    /// Reports an event of a peripheral that the app observes.
    ///
    /// - Returns: whether the app observes the peripheral.
    @discardableResult
    private func report(_ event: CBConnectionEvent, of peripheral: UUID) -> Bool {
        guard let open, let filter = state.eventFilter, let known = open.peers.known([peripheral]).first else {
            return false
        }
        let isWanted =
            filter == ConnectionEventFilter() || open.peers.isSame(peripheral, asAnyOf: filter.peripherals)
            || open.peers.has(peripheral, anyOf: filter.services)
        if isWanted { deliver(.connectionEvent(known, event)) }
        return isWanted
    }

    // MARK: Changes

    func mtuChanged(_ link: LinkIdentifier, _ mtu: Int) {
        for peripheral in peripheralsInOrder {
            guard case .connected(link)? = state.connections[peripheral]?.phase else { continue }
            sayChange(.mtuChanged(peripheral, mtu), on: link)
        }
    }

    /// Handles a change of a connected peripheral's attributes. Called on the loop.
    func servicesChanged(
        in range: HandleRange,
        of peripheral: UUID,
        on link: LinkIdentifier,
        _ host: isolated BluetoothHost
    ) {
        state.lastChange += 1
        let number = state.lastChange
        state.connections[peripheral]?.changes.add(range, number: number)
        endSubscriptions(in: range, of: peripheral, on: link, host)
        sayChange(.servicesChanged(peripheral, range, number: number), on: link)
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
