import BluetoothTypes
import GATT
import SMP

/// What outlives a host: who it is, and what it knows of those it is bonded to.
package struct KeptSecurity: Hashable, Sendable {
    package var identity: KeptIdentity?
    package var bonds: [BondRecord]

    package init(identity: KeptIdentity? = nil, bonds: [BondRecord] = []) {
        self.identity = identity
        self.bonds = bonds
    }
}

/// Who a host is to its peers.
package struct KeptIdentity: Hashable, Sendable {
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
    /// Whether the bond stays when there are too many: its key is authenticated, this device began the pairing for the app,
    /// or the app has marked it.
    package var isPrivileged = false

    package init(bond: Bond) {
        self.bond = bond
    }
}

/// Keeps what outlives a host. A host loads it once and reports each change.
package protocol BondStore: Sendable {
    /// What was kept by the host on the controller with this public address, or on the one without that the store was made
    /// for.
    nonisolated(nonsending) func load(for publicAddress: DeviceAddress?) async -> KeptSecurity

    /// The reason why the saved state could not be loaded whole, or why changes cannot be saved; nil where both succeed.
    /// Valid once ``load(for:)`` has returned.
    var problem: String? { get }

    /// Keeps the whole state as it is now. `whenKept` is called, from anywhere, once it will outlive the process, or with
    /// false where it cannot be kept.
    func keep(_ security: KeptSecurity, whenKept: (@Sendable (Bool) -> Void)?)

    /// Keeps the whole state as it is now, for changes that a peer can cause again and again. The store writes the first
    /// change at once and may gather later ones for some seconds; ``keep(_:whenKept:)`` writes them too.
    func gather(_ security: KeptSecurity)
}

extension BondStore {
    package var problem: String? { nil }

    package func gather(_ security: KeptSecurity) { keep(security, whenKept: nil) }
}

extension KeptIdentity: CustomReflectable {
    package var customMirror: Mirror {
        Mirror(self, children: ["staticAddress": staticAddress, "resolvingKey": Redacted()], displayStyle: .struct)
    }
}
