import BLESMP
import BluetoothHost
import BluetoothTypes

/// The saved state of a host after a number of changes, each of which makes, replaces or removes one bond.
struct Generation: Sendable {
    static let peers = 8

    let number: UInt32

    var security: HostSecurityState {
        var security = HostSecurityState(
            identity: HostIdentity(
                staticAddress: DeviceAddress(0xC000_0000_0001, isRandom: true),
                // Identifies the generation of the saved state.
                resolvingKey: Generation.mark | UInt128(number)
            )
        )
        for peer in 0..<UInt32(Generation.peers) where number >= peer {
            let change = number - (number - peer) % UInt32(Generation.peers)
            if !change.isMultiple(of: 5) { security.bonds.append(bond(of: peer, since: change)) }
        }
        return security
    }

    private static let mark: UInt128 = 1 << 64

    /// Identifies the generation of saved state; nil if it is no generation.
    init?(of security: HostSecurityState) {
        guard let key = security.identity?.resolvingKey, let number = UInt32(exactly: key & ~Generation.mark) else {
            return nil
        }
        self.init(number: number)
        guard self.security == security else { return nil }
    }

    init(number: UInt32) {
        self.number = number
    }

    /// Makes a bond in which every field identifies the change that wrote it.
    private func bond(of peer: UInt32, since change: UInt32) -> BondRecord {
        var bond = Bond(identity: DeviceAddress(0xF000_0000_0000 + UInt64(peer), isRandom: true))
        let value = UInt128(peer + 1) << 96 | UInt128(change) << 32 | 1
        let strength = KeyStrength(isAuthenticated: true, isSecureConnections: false, keySize: 16)
        bond.centralKey = LongTermKey(
            value: value,
            encryptedDiversifier: UInt16(truncatingIfNeeded: change),
            randomNumber: UInt64(change),
            strength: strength
        )
        bond.peripheralKey = LongTermKey(value: value | 2, strength: strength)
        bond.identityResolvingKey = value | 4
        bond.ownSigningKey = SigningKey(value: value | 8, isAuthenticated: true, nextCounter: change)
        return BondRecord(bond: bond)
    }
}
