import BLECryptography
import BLESMP
import BluetoothTypes

/// Resolves private addresses to identities, with the keys of bonded peers (Vol 6, Part B, 1.3.2.3).
///
/// Trying one key costs one AES block. So results, including failures, are cached until the keys change. The cache is
/// bounded, so that strangers cannot make it grow.
struct AddressResolver {
    struct Key: Hashable {
        /// The identity address of the peer that has this key.
        let identity: DeviceAddress
        let value: UInt128
    }

    private struct Finding {
        let identity: DeviceAddress?
    }

    private let toolbox = Toolbox(SwiftCryptography())
    private(set) var keys: [DeviceAddress: UInt128] = [:]
    /// The keys in the order in which they are tried.
    private var ordered: [Key] = []
    private var findings: GenerationalTable<DeviceAddress, Finding>
    /// The last private address of each peer, by identity address.
    private var lastAddresses: [DeviceAddress: DeviceAddress] = [:]

    /// - Parameter limit: maximum number of cached results.
    init(limit: Int = 4096) {
        findings = GenerationalTable(limit: limit)
    }

    /// Sets the keys of all bonds, in the order in which they are tried. Keys of zero are ignored. An address that was
    /// resolved with an earlier key of a peer is forgotten.
    mutating func setKeys(_ keys: some Sequence<Key>) {
        let ordered = keys.filter { $0.value != 0 }
        guard ordered != self.ordered else { return }
        self.ordered = ordered
        let earlier = self.keys
        self.keys = Dictionary(ordered.map { ($0.identity, $0.value) }, uniquingKeysWith: { first, _ in first })
        findings.removeAll()
        lastAddresses = lastAddresses.filter { self.keys[$0.key] == earlier[$0.key] }
    }

    /// Resolves an address.
    ///
    /// - Returns: the identity address of the peer; nil if the address is not resolvable or belongs to no bonded peer.
    mutating func identity(of address: DeviceAddress) -> DeviceAddress? {
        guard address.kind == .resolvablePrivate, !ordered.isEmpty else { return nil }
        if let finding = findings[address] { return finding.identity }
        let identity = ordered.first { toolbox.resolves(address, irk: $0.value) }?.identity
        findings[address] = Finding(identity: identity)
        if let identity { lastAddresses[identity] = address }
        return identity
    }

    /// Returns an address under which a peer with a key can be reached: its last private address, or a new one
    /// generated with its key.
    func address(of identity: DeviceAddress, random: inout some RandomNumberGenerator) -> DeviceAddress? {
        if let address = lastAddresses[identity] { return address }
        return keys[identity].map { toolbox.resolvablePrivateAddress(irk: $0, random: &random) }
    }
}

extension AddressResolver: CustomReflectable {
    var customMirror: Mirror { Mirror(self, children: ["identities": Array(keys.keys)], displayStyle: .struct) }
}
