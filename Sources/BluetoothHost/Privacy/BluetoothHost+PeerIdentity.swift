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

    /// Whether peers to connect to must be found by scanning first.
    var isSeekingPeers: Bool {
        !privacy.resolver.keys.isEmpty
            && connector.attempts.contains { attempt in
                attempt.addresses.contains { connector.foundPeers[$0] == nil && mustBeSought($0) }
            }
    }

    /// Handles a connectable advertisement. If the host searches for its sender, the controller connects to the address
    /// that the sender uses now.
    func met(_ identity: DeviceAddress, at address: DeviceAddress) {
        guard scan.isSeeking, connector.isSeeking(identity), mustBeSought(identity) else { return }
        connector.found(identity, at: address, loop.now)
        reconcileConnections()
        reconcileScan()
    }
}
