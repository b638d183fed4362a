import BLEGATT
import BLESMP
import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

@Suite("The database of bonds")
struct BondDatabaseTests {
    private typealias Sample = BondSample

    private func address(_ value: UInt64) -> DeviceAddress { Sample.address(value) }

    private func record(_ value: UInt64, isPrivileged: Bool = false) -> BondRecord {
        Sample.record(value, isPrivileged: isPrivileged)
    }

    /// Adds a bond of a peer that paired by Just Works.
    @discardableResult
    private func pair(_ value: UInt64, with database: inout BondDatabase) -> BondDecision {
        database.admit(Sample.outcome(address(value))).0
    }

    // MARK: Identity

    @Test("A new identity is saved before the host uses it, once")
    func newIdentityIsSavedOnce() {
        var database = BondDatabase(identity: Sample.identity, limit: 3, isPersistent: true)
        #expect(!database.isLoaded)
        database.load(HostSecurityState())
        #expect(database.isLoaded)
        #expect(database.begin() == [.save(Sample.saved(), number: nil)])
        #expect(database.begin() == [])
    }

    @Test("The identity that the store has is used and not saved again")
    func storedIdentityIsUsed() {
        let other = HostIdentity(staticAddress: DeviceAddress(0xC000_0000_0001, isRandom: true), resolvingKey: 1)
        var database = BondDatabase(identity: other, limit: 3, isPersistent: true)
        database.load(Sample.saved(record(1)))
        #expect(database.identity == Sample.identity)
        #expect(database.begin() == [])
        #expect(database.order == [1])
    }

    @Test("A generated identity has a random static address and a key")
    func generatedIdentityHasARandomStaticAddressAndAKey() {
        var random = SeededGenerator(seed: 1)
        let identity = HostIdentity(random: &random)
        #expect(identity.staticAddress.kind == .randomStatic)
        #expect(identity.resolvingKey != 0)
    }

    // MARK: Pairings

    @Test("A pairing adds a bond, which is saved and reported")
    func pairingAddsBond() {
        var database = Sample.database(record(1))
        let expected = Sample.record(2, strength: Sample.unauthenticated)
        let (decision, effects) = database.admit(Sample.outcome(address(2)))
        #expect(decision == .bonded)
        #expect(
            effects == [
                .save(Sample.saved(record(1), expected), number: nil), .bondChanged(address(2)),
                .report(.bondAdded(BondInformation(expected))),
            ]
        )
        #expect(database[address(2)] == expected)
    }

    @Test(
        "A bond is privileged if its key is authenticated or the app has asked for it",
        arguments: [
            (Sample.unauthenticated, false, false), (Sample.unauthenticated, true, true),
            (Sample.authenticated, false, true),
        ]
    )
    func bondIsPrivilegedIfAuthenticatedOrAskedFor(strength: KeyStrength, isForApp: Bool, isPrivileged: Bool) {
        var database = Sample.database()
        _ = database.admit(Sample.outcome(address(1), strength), isForApp: isForApp)
        #expect(database[address(1)]?.isPrivileged == isPrivileged)
    }

    @Test("Keys of a pairing without bonding, or of a private address without its key, last as long as the link")
    func keysWithoutABondLastAsLongAsTheLink() {
        var database = Sample.database()
        let passing = database.admit(Sample.outcome(address(1), isBonded: false))
        #expect(passing.0 == .keptForLink)
        #expect(passing.1 == [])
        let resolvable = database.admit(Sample.outcome(DeviceAddress(0x4000_0000_0001, isRandom: true)))
        #expect(resolvable.0 == .keptForLink)
        let lasting = database.admit(Sample.outcome(DeviceAddress(0xC000_0000_0001, isRandom: true)))
        #expect(lasting.0 == .bonded)
        #expect(database.count == 1)
    }

    @Test("A weaker key never replaces a bond, even if the app allows it", arguments: [true, false])
    func weakerKeyIsRefused(isConfirmed: Bool) {
        let strong = Sample.record(1, strength: Sample.authenticated)
        for isBonded in [true, false] {
            var database = Sample.database(strong)
            let outcome = Sample.outcome(address(1), isBonded: isBonded)
            let (decision, effects) = database.admit(outcome, from: address(9), isConfirmed: isConfirmed)
            #expect(decision == .refused(.weakerThanBond(Sample.unauthenticated)))
            #expect(effects == [])
            #expect(database[address(1)] == strong)
        }
    }

    @Test("A key that is weaker than the key of either role does not replace a bond", arguments: [true, false])
    func keyWeakerThanThatOfEitherRoleIsRefused(isCentralStronger: Bool) {
        let mixed = Sample.record(1, strength: Sample.unauthenticated) { record in
            if isCentralStronger {
                record.bond.centralKey?.strength = Sample.authenticated
            } else {
                record.bond.peripheralKey?.strength = Sample.authenticated
            }
        }
        var database = Sample.database(mixed)
        #expect(database.admit(Sample.outcome(address(1))).0 == .refused(.weakerThanBond(Sample.unauthenticated)))
        #expect(database[address(1)] == mixed)
        #expect(database.admit(Sample.outcome(address(1), Sample.authenticated)).0 == .bonded)
    }

    @Test("A peer that claims another peer's identity does not replace its bond unless the app allows it")
    func otherPeersBondIsReplacedOnlyIfConfirmed() {
        let victim = Sample.record(1, strength: Sample.unauthenticated)
        var database = Sample.database(victim)
        let outcome = Sample.outcome(address(1), Sample.authenticated)
        let asked = database.admit(outcome, from: address(9))
        #expect(asked.0 == .replacesOther(Sample.unauthenticated))
        #expect(asked.1 == [])
        #expect(database[address(1)] == victim)
        let confirmed = database.admit(outcome, from: address(9), isConfirmed: true)
        #expect(confirmed.0 == .bonded)
        #expect(database[address(1)]?.bond == outcome.bond)
    }

    @Test("A peer with the resolving key of another bond does not take over that peer's private addresses")
    func resolvingKeyOfAnotherBondIsNotTakenOver() {
        let victim = Sample.record(1, strength: Sample.unauthenticated) { $0.bond.identityResolvingKey = 5 }
        var outcome = Sample.outcome(address(2))
        outcome.bond.identityResolvingKey = 5
        // It is reached at its identity address, so it can be bonded without the key.
        var database = Sample.database(victim)
        #expect(database.admit(outcome, from: address(2)).0 == .bonded)
        #expect(database[address(2)]?.bond.identityResolvingKey == nil)
        #expect(database[address(1)] == victim)
        // At a private address it could not be found again.
        database = Sample.database(victim)
        guard case .refused = database.admit(outcome, from: address(1)).0 else {
            Issue.record("it is bonded")
            return
        }
        #expect(database[address(1)] == victim && database.count == 1)
        // The owner of the key has another identity address now.
        let state = ServerSession.PersistentState(clientFeatures: 2)
        #expect(database.admit(outcome, from: address(1), keeping: state).0 == .bonded)
        #expect(database[address(2)]?.bond.identityResolvingKey == 5)
        #expect(database[address(1)]?.bond.identityResolvingKey == nil, "one bond has the key")
        #expect(database.admit(outcome, from: address(2), keeping: state).0 == .bonded)
        #expect(database[address(2)]?.bond.identityResolvingKey == 5)
        var own = Sample.outcome(address(1))
        own.bond.identityResolvingKey = 5
        database = Sample.database(victim)
        #expect(database.admit(own).0 == .bonded && database[address(1)]?.bond.identityResolvingKey == 5)
    }

    @Test(
        "The counter of a signing key does not decrease when its peer pairs again with the same key",
        arguments: [2, 3]
    )
    func counterOfTheSameSigningKeyDoesNotDecrease(value: UInt128) {
        let key = SigningKey(value: 2, isAuthenticated: false, nextCounter: 30)
        for peer in [address(1), address(9)] {
            var database = Sample.database(
                Sample.record(1) { $0.bond.peerSigningKey = key },
                Sample.record(9) { $0.bond.peerSigningKey = key }
            )
            var outcome = Sample.outcome(address(1))
            outcome.bond.peerSigningKey = SigningKey(value: value, isAuthenticated: false)
            _ = database.admit(outcome, from: peer, isConfirmed: true)
            #expect(database[address(1)]?.bond.peerSigningKey?.nextCounter == (value == 2 ? 30 : 0))
        }
    }

    @Test("A privileged bond stays privileged when its peer pairs again, if it had verified the bond")
    func privilegedBondOfAVerifiedPeerStaysPrivileged() {
        let state = ServerSession.PersistentState()
        for isPrivileged in [true, false] {
            var database = Sample.database(record(1, isPrivileged: isPrivileged))
            _ = database.admit(Sample.outcome(address(1)), keeping: state)
            #expect(database[address(1)]?.isPrivileged == isPrivileged)
        }
        var database = Sample.database(record(1, isPrivileged: true))
        _ = database.admit(Sample.outcome(address(1)))
        #expect(database[address(1)]?.isPrivileged == false, "any device could have replaced the bond")
    }

    @Test(
        "The privilege moves to the new bond of a verified peer with another identity address",
        arguments: [true, false]
    )
    func privilegeMovesToTheNewIdentityOfAVerifiedPeer(usesOldBondAgain: Bool) {
        var database = Sample.database(record(1, isPrivileged: true), limit: 6)
        for value: UInt64 in 2...12 {
            let (decision, effects) = database.admit(
                Sample.outcome(address(value)),
                from: address(usesOldBondAgain ? 1 : value - 1),
                keeping: ServerSession.PersistentState()
            )
            let expected = usesOldBondAgain ? 2 : value
            #expect(decision == .bonded)
            #expect(database.records.filter(\.isPrivileged).map(\.bond.identity) == [address(expected)])
            let saves: [HostSecurityState] = effects.compactMap {
                if case .save(let saved, _) = $0 { saved } else { nil }
            }
            #expect(saves.last?.bonds.filter(\.isPrivileged).map(\.bond.identity) == [address(expected)])
        }
    }

    @Test("The state of a peer is kept when it pairs again, if it had verified its bond")
    func attributesOfVerifiedPeerStay() {
        let cache = Sample.cache(attributes: 1)
        let known = Sample.record(1) {
            $0.serverState = ServerSession.PersistentState(clientFeatures: 1)
            $0.clientCache = cache
        }
        var database = Sample.database(known)
        let state = ServerSession.PersistentState(clientFeatures: 2)
        _ = database.admit(Sample.outcome(address(1)), keeping: state)
        #expect(database[address(1)]?.serverState == state)
        #expect(database[address(1)]?.clientCache == cache)
        _ = database.admit(Sample.outcome(address(1)))
        #expect(database[address(1)]?.serverState == nil)
        #expect(database[address(1)]?.clientCache == nil)
    }

    // MARK: Bounds

    @Test("A full database of privileged bonds refuses a stranger, and accepts a bonded peer again")
    func fullDatabaseRefusesStranger() {
        var database = Sample.database(record(1, isPrivileged: true), record(2, isPrivileged: true), limit: 2)
        #expect(database.isFull)
        let (decision, effects) = database.admit(Sample.outcome(address(3)))
        #expect(decision == .refused(.tooManyBonds(2)))
        #expect(effects == [])
        #expect(throws: SecurityError.tooManyBonds(2)) { try database.insert(record(3), inUse: []) }
        #expect(pair(1, with: &database) == .bonded)
        #expect(database.order == [2, 1])
    }

    @Test("A new bond evicts the least recently used one that is neither privileged nor in use")
    func leastRecentlyUsedUnprivilegedBondIsEvicted() {
        var database = Sample.database(record(1, isPrivileged: true), record(2), record(3), record(4), limit: 4)
        _ = database.update(address(2), .used)
        #expect(!database.isFull)
        let (decision, effects) = database.admit(Sample.outcome(address(5)), inUse: [address(3)])
        #expect(decision == .bonded)
        #expect(database.order == [1, 3, 2, 5])
        #expect(effects.count == 4 && effects[1] == .evicted(address(4)))
        let others = Set(database.records.map(\.bond.identity))
        #expect(database.admit(Sample.outcome(address(6)), inUse: others).0 == .refused(.tooManyBonds(4)))
    }

    @Test("Strangers that fill the database replace each other's bonds but no privileged one")
    func strangersReplaceEachOtherAndNoPrivilegedBond() {
        var database = Sample.database(limit: 8)
        for value: UInt64 in 1...4 { _ = database.admit(Sample.outcome(address(value)), isForApp: true) }
        for value: UInt64 in 100..<1000 { pair(value, with: &database) }
        #expect(database.order == [1, 2, 3, 4, 996, 997, 998, 999])
    }

    @Test("The order of use is saved, and decides evictions after a restart")
    func orderOfUseIsSaved() {
        var first = Sample.database(record(1), record(2), limit: 2)
        #expect(first.update(address(1), .used) == [.saveSoon(Sample.saved(record(2), record(1)))])
        #expect(first.update(address(1), .used) == [])
        #expect(first.flush() == [], "a use alone is not worth a save")
        var second = Sample.database(record(2), record(1), limit: 2)
        #expect(second.admit(Sample.outcome(address(3))).1.contains(.evicted(address(2))))
    }

    // MARK: Changes

    @Test("An imported bond is privileged, and its sign counters never decrease")
    func importedBondIsPrivilegedAndItsCountersNeverDecrease() throws {
        let own = SigningKey(value: 1, isAuthenticated: false, nextCounter: 40)
        var database = Sample.database(Sample.record(1) { $0.bond.ownSigningKey = own })
        var imported = Sample.record(1) { $0.bond.ownSigningKey = own }
        imported.bond.ownSigningKey?.nextCounter = 3
        let expected = Sample.record(1, isPrivileged: true) { $0.bond.ownSigningKey = own }
        let effects = try database.insert(imported, inUse: [])
        #expect(
            effects == [
                .save(Sample.saved(expected), number: nil), .bondChanged(address(1)),
                .report(.bondAdded(BondInformation(expected))),
            ]
        )
    }

    @Test("Changes that a peer can cause repeatedly are gathered, and saved once by a flush")
    func changesOfAPeerAreGatheredAndSavedOnceByAFlush() {
        var database = Sample.database(record(1))
        let changed = Sample.record(1) { $0.serverState = ServerSession.PersistentState(clientFeatures: 7) }
        let state = ServerSession.PersistentState(clientFeatures: 7)
        #expect(database.update(address(1), .serverState(state)) == [.saveSoon(Sample.saved(changed))])
        #expect(database.update(address(1), .serverState(state)) == [], "nothing has changed")
        #expect(database.update(address(9), .serverState(state)) == [], "there is no such bond")
        #expect(database.flush() == [.save(Sample.saved(changed), number: nil)])
        #expect(database.flush() == [])
    }

    @Test("A change that is saved at once also saves what is gathered")
    func saveIncludesGatheredChanges() {
        var database = Sample.database(record(1))
        _ = database.update(address(1), .clientCache(Sample.cache(attributes: 2)))
        let expected = Sample.record(1, isPrivileged: true) { $0.clientCache = Sample.cache(attributes: 2) }
        #expect(database.update(address(1), .privileged(true)) == [.save(Sample.saved(expected), number: nil)])
        #expect(database.flush() == [])
    }

    @Test("A cache that is too large to be loaded again is not stored")
    func oversizedCacheIsNotSaved() {
        var database = Sample.database(record(1))
        _ = database.update(address(1), .clientCache(Sample.cache(attributes: DiscoveryLimits.attributes)))
        #expect(database[address(1)]?.clientCache?.attributeCount == DiscoveryLimits.attributes)
        let oversized = Sample.cache(attributes: DiscoveryLimits.attributes + 1)
        #expect(database.update(address(1), .clientCache(oversized)) == [.saveSoon(Sample.saved(record(1)))])
        #expect(database[address(1)]?.clientCache == nil)
    }

    @Test("A removed bond is reported, and the call ends once the removal is saved", arguments: [true, false])
    func removalIsReportedAndEndsOnceItIsSaved(isSaved: Bool) {
        var database = Sample.database(record(1), record(2))
        #expect(
            database.remove(address(1), notifying: Sample.call) == [
                .save(Sample.saved(record(2)), number: 1), .bondChanged(address(1)),
                .report(.bondRemoved(identity: address(1))),
            ]
        )
        #expect(database.pendingSaveCount == 1)
        let finish = BondEffect.finish(Sample.call, isSaved: isSaved)
        #expect(database.saved(1, isSaved) == (isSaved ? [finish] : [.report(.bondsNotSaved), finish]))
        #expect(database.saved(1, isSaved) == (isSaved ? [] : [.report(.bondsNotSaved)]), "it has ended")
        #expect(database.pendingSaveCount == 0)
        #expect(database.remove(address(1), notifying: Sample.call) == [.finish(Sample.call, isSaved: true)])
    }

    @Test("A failed save is reported if no call waits for it")
    func failedSaveIsReported() {
        var database = Sample.database(record(1))
        #expect(database.saved(nil, true) == [])
        #expect(database.saved(nil, false) == [.report(.bondsNotSaved)])
    }

    @Test("Without a store, nothing is saved and each change finishes at once")
    func nothingIsSavedWithoutAStore() {
        var database = Sample.database(record(1), isPersistent: false)
        #expect(BondDatabase(identity: Sample.identity, limit: 1, isPersistent: false).isLoaded)
        #expect(database.update(address(1), .serverState(ServerSession.PersistentState(clientFeatures: 1))) == [])
        #expect(database.flush() == [])
        #expect(database.update(address(1), .privileged(true)) == [])
        #expect(
            database.remove(address(1), notifying: Sample.call) == [
                .finish(Sample.call, isSaved: true), .bondChanged(address(1)),
                .report(.bondRemoved(identity: address(1))),
            ]
        )
    }

    // MARK: Strengths

    @Test("A bond without a key for encryption is the weakest")
    func bondWithoutAnEncryptionKeyIsTheWeakest() {
        var signing = record(2)
        signing.bond.peerSigningKey = SigningKey(value: 1, isAuthenticated: true)
        let database = Sample.database(Sample.record(1, strength: Sample.authenticated), signing)
        #expect(database.strength(of: address(1)) == Sample.authenticated)
        let weakest = KeyStrength(isAuthenticated: true, isSecureConnections: false, keySize: 7)
        #expect(database.strength(of: address(2)) == weakest)
        #expect(database.strength(of: address(3)) == nil)
    }
}
