import BLEGATT
import BLESMP
import BluetoothTypes

@testable import BluetoothHost

/// Bonds, pairings and databases for the tests of ``BondDatabase``.
enum BondSample {
    static let identity = HostIdentity(staticAddress: DeviceAddress(0xC000_0000_00FF, isRandom: true), resolvingKey: 9)
    static let authenticated = KeyStrength(isAuthenticated: true, isSecureConnections: true, keySize: 16)
    static let unauthenticated = KeyStrength(isAuthenticated: false, isSecureConnections: true, keySize: 16)
    static let call = SaveWaiter.call(CallToken(index: 1, generation: 0))

    static func address(_ value: UInt64) -> DeviceAddress { DeviceAddress(value, isRandom: false) }

    static func record(
        _ value: UInt64,
        strength: KeyStrength? = nil,
        isPrivileged: Bool = false,
        _ change: (inout BondRecord) -> Void = { _ in }
    ) -> BondRecord {
        var record = BondRecord(bond: bond(address(value), strength: strength))
        record.isPrivileged = isPrivileged
        change(&record)
        return record
    }

    static func bond(_ identity: DeviceAddress, strength: KeyStrength?) -> Bond {
        var bond = Bond(identity: identity)
        bond.centralKey = strength.map { LongTermKey(value: 1, strength: $0) }
        bond.peripheralKey = bond.centralKey
        return bond
    }

    static func outcome(
        _ identity: DeviceAddress,
        _ strength: KeyStrength = unauthenticated,
        isBonded: Bool = true
    ) -> PairingOutcome {
        PairingOutcome(
            model: .justWorks,
            strength: strength,
            bond: bond(identity, strength: strength),
            isBonded: isBonded
        )
    }

    static func saved(_ records: BondRecord...) -> HostSecurityState {
        HostSecurityState(identity: identity, bonds: records)
    }

    /// A database that has loaded bonds.
    static func database(_ records: BondRecord..., limit: Int = 3, isPersistent: Bool = true) -> BondDatabase {
        var database = BondDatabase(identity: identity, limit: limit, isPersistent: isPersistent)
        database.load(HostSecurityState(identity: identity, bonds: records))
        return database
    }

    /// A cache of one service with this number of attributes.
    static func cache(attributes count: Int) -> DatabaseCache {
        let service = DiscoveredService(uuid: "180F", isPrimary: true, handle: 1, endHandle: 9)
        return DatabaseCache(hash: 1, services: Array(repeating: service, count: count))
    }
}

extension BondDatabase {
    /// Pairs a peer that has not verified a bond on the link.
    mutating func admit(
        _ outcome: PairingOutcome,
        from peer: DeviceAddress? = nil,
        keeping serverState: ServerSession.PersistentState? = nil,
        isForApp: Bool = false,
        isConfirmed: Bool = false,
        inUse: Set<DeviceAddress> = []
    ) -> (BondDecision, [BondEffect]) {
        admit(
            outcome,
            from: peer ?? outcome.bond.identity,
            keeping: serverState,
            isForApp: isForApp,
            isConfirmed: isConfirmed,
            inUse: inUse
        )
    }

    /// The identity addresses of the bonds, as numbers.
    var order: [UInt64] { records.map(\.bond.identity.value) }
}
