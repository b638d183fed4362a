import BluetoothTypes
import Cryptography
import SMP

/// Finds out whose a resolvable private address is, by the keys of those that this host is bonded to (Vol 6, Part B,
/// 1.3.2.3).
///
/// Each key costs a block of AES. So what was found, and that nothing was found, is remembered for as long as the keys stay,
/// in a table that strangers cannot make grow beyond its limit.
struct AddressResolver {
    struct Key: Hashable {
        /// Whose key it is.
        let identity: DeviceAddress
        let value: UInt128
    }

    private struct Finding {
        let identity: DeviceAddress?
    }

    private let toolbox = Toolbox(SwiftCryptography())
    private(set) var keys: [DeviceAddress: UInt128] = [:]
    /// In the order in which they are tried.
    private var ordered: [Key] = []
    private var findings: GenerationalTable<DeviceAddress, Finding>
    /// Under which addresses the peers were met last.
    private var lastAddresses: [DeviceAddress: DeviceAddress] = [:]

    /// - Parameter limit: for how many addresses it is remembered whose they are.
    init(limit: Int = 4096) {
        findings = GenerationalTable(limit: limit)
    }

    /// Takes the keys of all bonds, in the order in which they are to be tried. A key of zero stands for none.
    mutating func setKeys(_ keys: some Sequence<Key>) {
        let ordered = keys.filter { $0.value != 0 }
        guard ordered != self.ordered else { return }
        self.ordered = ordered
        self.keys = Dictionary(ordered.map { ($0.identity, $0.value) }, uniquingKeysWith: { first, _ in first })
        findings.removeAll()
        lastAddresses = lastAddresses.filter { self.keys[$0.key] != nil }
    }

    /// Whose address it is; nil for one that is not resolvable, or a stranger's.
    mutating func identity(of address: DeviceAddress) -> DeviceAddress? {
        guard address.kind == .resolvablePrivate, !ordered.isEmpty else { return nil }
        if let finding = findings[address] { return finding.identity }
        let identity = ordered.first { toolbox.resolves(address, irk: $0.value) }?.identity
        findings[address] = Finding(identity: identity)
        if let identity { lastAddresses[identity] = address }
        return identity
    }

    /// An address under which a peer with a key can be addressed: its last one, or one that is made of its key.
    func address(of identity: DeviceAddress, random: inout some RandomNumberGenerator) -> DeviceAddress? {
        if let address = lastAddresses[identity] { return address }
        return keys[identity].map { toolbox.resolvablePrivateAddress(irk: $0, random: &random) }
    }
}

extension AddressResolver: CustomReflectable {
    var customMirror: Mirror { Mirror(self, children: ["identities": Array(keys.keys)], displayStyle: .struct) }
}
