import BluetoothTypes
import HCI

// Who it is that uses an address.
extension BluetoothHost {
    /// Whom a device that uses an address is known as: the address itself, unless a bond says otherwise.
    func identity(of address: DeviceAddress) -> DeviceAddress {
        guard address.kind == .resolvablePrivate else { return address }
        return privacy.resolver.identity(of: address) ?? address
    }

    /// Whether a peer is not heard because it uses its identity address though it has a key for private ones, in network
    /// privacy mode (Vol 6, Part B, 4.7). For a peer on the controller's resolving list, the controller sees to that.
    ///
    /// - Parameter address: as it was received.
    func isSilencedByPrivacy(_ address: DeviceAddress) -> Bool {
        configuration.privacyMode == .network && mustBeSought(address)
    }

    /// The bonds are others than before: private addresses are looked up by their keys from now on.
    func bondsChanged() {
        setResolvingKeys()
        reconcileAddresses()
        reconcileScan()
        reconcileConnections()
    }

    func setResolvingKeys() {
        // Who was met last is likely to be met again.
        privacy.resolver.setKeys(
            bonds.records.reversed().compactMap { record in
                record.bond.identityResolvingKey.map { AddressResolver.Key(identity: record.bond.identity, value: $0) }
            }
        )
    }

    // MARK: Seeking

    /// Whether a peer may use private addresses that only this host can resolve: it is then sought by scanning, for the
    /// controller would not know whom to connect to.
    func mustBeSought(_ identity: DeviceAddress) -> Bool {
        privacy.resolver.keys[identity] != nil && privacy.list?.resolves(identity) != true
    }

    /// Peers to connect to that are to be met by scanning first.
    var soughtPeers: Set<DeviceAddress> {
        var sought: Set<DeviceAddress> = []
        for attempt in connector.attempts {
            for address in attempt.addresses where connector.meetings[address] == nil && mustBeSought(address) {
                sought.insert(address)
            }
        }
        return sought
    }

    /// What the controller is to initiate now, if it is the turn of the peers of `window`.
    func wantedInitiation(for window: Connector.Window) -> Connector.Initiation? {
        guard privacy.hold == .nothing, !connector.yieldsToScan else { return nil }
        return connector.initiation(for: window)
    }

    /// The peers whose turn it is.
    func connectorWindow(_ information: ControllerInformation) -> Connector.Window {
        connector.window(acceptListSize: information.filterAcceptListSize) { mustBeSought($0) }
    }

    /// A connectable advertisement was heard; where its sender is sought, the controller connects to the address that it
    /// uses now. That may change at any time, so that the peer is sought anew if no link is made of it.
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

    /// Has a peer found again whose private address may have changed.
    func meetingTimedOut(_ identity: DeviceAddress) {
        connector.meetings[identity] = nil
        reconcileConnections()
        reconcileScan()
    }

    /// Forgets at which addresses peers were met that nobody wants to connect to any more.
    func forgetMeetings() {
        for (identity, meeting) in connector.meetings
        where !connector.attempts.contains(where: { $0.addresses.contains(identity) }) {
            timers.cancel(meeting.timer)
            connector.meetings[identity] = nil
        }
    }
}
