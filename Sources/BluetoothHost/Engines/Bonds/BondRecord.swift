import BLEGATT
import BLESMP
import BluetoothTypes

/// The state that outlives a host: its identity, its bonds and the counters of earlier bonds.
package struct HostSecurityState: Hashable, Sendable {
    package var identity: HostIdentity?
    package var bonds: [BondRecord]
    /// The signing keys of peers that no bond has any more.
    package var retiredSigningKeys: RetiredSigningKeys

    package init(
        identity: HostIdentity? = nil,
        bonds: [BondRecord] = [],
        retiredSigningKeys: RetiredSigningKeys = RetiredSigningKeys()
    ) {
        self.identity = identity
        self.bonds = bonds
        self.retiredSigningKeys = retiredSigningKeys
    }
}

/// The identity of a host, as its peers know it.
package struct HostIdentity: Hashable, Sendable {
    /// The random static address, for controllers without a public one.
    package var staticAddress: DeviceAddress
    /// The Identity Resolving Key that makes its private addresses.
    package var resolvingKey: UInt128

    package init(staticAddress: DeviceAddress, resolvingKey: UInt128) {
        self.staticAddress = staticAddress
        self.resolvingKey = resolvingKey
    }
}

/// A bond, and what this host's server and client remember of the peer.
package struct BondRecord: Hashable, Sendable {
    package var bond: Bond
    /// As a server: what the peer has configured and which database it knows.
    package var serverState: ServerSession.PersistentState?
    /// As a client: the peer's database by its hash.
    package var clientCache: DatabaseCache?
    /// The key of the peer's encrypted advertising data, as the peer's server gave it.
    package var advertisingKey: EncryptedDataKeyMaterial?
    /// Whether the bond stays when there are too many: its key is authenticated, this device began the pairing for the
    /// app, or the app has marked it.
    package var isPrivileged = false

    package init(bond: Bond) {
        self.bond = bond
    }
}

extension HostIdentity {
    /// Makes a new identity.
    package init(random: inout some RandomNumberGenerator) {
        let address = DeviceAddress.randomStatic(from: random.next())
        var key: UInt128 = 0
        // A key of zero stands for none.
        while key == 0 { key = random.next() }
        self.init(staticAddress: address, resolvingKey: key)
    }
}

extension HostIdentity: CustomReflectable {
    package var customMirror: Mirror {
        Mirror(self, children: ["staticAddress": staticAddress, "resolvingKey": Redacted()], displayStyle: .struct)
    }
}
