import BluetoothTypes
import HCI

// The identities of peers that use private addresses.
extension BluetoothHost {
    /// The identity address of a device that uses `address`, if a bond has its key; otherwise `address` itself.
    func identity(of address: DeviceAddress) -> DeviceAddress {
        // The plan checks this as well, but it is changed by a lookup, and most addresses need none.
        address.kind == .resolvablePrivate ? privacy.identity(of: address) : address
    }

    /// Whether packets of a peer are ignored in network privacy mode: see ``AddressPlan/isSilenced(_:)``.
    ///
    /// - Parameter address: the address as it was received.
    func isSilencedByPrivacy(_ address: DeviceAddress) -> Bool { usesNetworkPrivacy && privacy.isSilenced(address) }

    /// Applies a change of the bonds: private addresses are resolved with their keys from now on.
    func bondsChanged() {
        setResolvingKeys()
        reconcileAddresses()
        reconcileScan()
        reconcileConnections()
    }

    func setResolvingKeys() {
        // The most recently used peer is the most likely to appear again.
        privacy.resolver.setKeys(
            bonds.records.reversed().compactMap { record in
                record.bond.identityResolvingKey.map { AddressResolver.Key(identity: record.bond.identity, value: $0) }
            }
        )
    }

    // MARK: Seeking

    /// Whether a peer must be found by scanning first: see ``AddressPlan/mustBeSought(_:)``.
    func mustBeSought(_ identity: DeviceAddress) -> Bool { privacy.mustBeSought(identity) }

    /// The peers to connect to that must be found by scanning first.
    var soughtPeers: Set<DeviceAddress> {
        var sought: Set<DeviceAddress> = []
        for attempt in connector.attempts {
            for address in attempt.addresses where connector.meetings[address] == nil && mustBeSought(address) {
                sought.insert(address)
            }
        }
        return sought
    }

    /// The initiation that the controller should run now, if it is the turn of the peers of `window`.
    func wantedInitiation(for window: Connector.Window) -> Connector.Initiation? {
        guard privacy.hold == .nothing, !connector.yieldsToScan else { return nil }
        return connector.initiation(for: window)
    }

    /// The peers whose turn it is.
    func connectorWindow(_ information: ControllerInformation) -> Connector.Window {
        connector.window(acceptListSize: information.filterAcceptListSize) { mustBeSought($0) }
    }

    /// Handles a connectable advertisement. If the host searches for its sender, the controller connects to the address
    /// that the sender uses now. That address may change at any time, so the search starts again if no link results
    /// within a few seconds.
    func met(_ identity: DeviceAddress, at address: DeviceAddress) {
        guard scanner.isSeeking, connector.meetings[identity] == nil,
            connector.attempts.contains(where: { $0.addresses.contains(identity) }), mustBeSought(identity)
        else { return }
        let timer = schedule(.meeting(identity), after: .seconds(5))
        connector.meetings[identity] = Connector.Meeting(address: address, timer: timer)
        connector.yieldsToScan = false
        reconcileConnections()
        reconcileScan()
    }

    /// Searches again for a peer whose private address may have changed.
    func meetingTimedOut(_ identity: DeviceAddress) {
        connector.meetings[identity] = nil
        reconcileConnections()
        reconcileScan()
    }

    /// Forgets the addresses of found peers that no attempt wants any more.
    func forgetMeetings() {
        for (identity, meeting) in connector.meetings
        where !connector.attempts.contains(where: { $0.addresses.contains(identity) }) {
            timers.cancel(meeting.timer)
            connector.meetings[identity] = nil
        }
    }
}
