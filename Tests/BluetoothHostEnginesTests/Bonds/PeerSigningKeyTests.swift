import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// Recorded signed writes must not be accepted again (Vol 3, Part H, 2.4.5), however a peer has paired since.
@Suite("The counters of peers' signing keys")
struct PeerSigningKeyTests {
    private typealias Sample = BondSample

    private static let value: UInt128 = 5
    private let write = SaveWaiter.signedWrite(7, LinkIdentifier(handle: 0x0040, serial: 1))

    private func address(_ value: UInt64) -> DeviceAddress { Sample.address(value) }

    private func record(_ identity: UInt64, _ nextCounter: UInt32, of value: UInt128 = value) -> BondRecord {
        Sample.record(identity) {
            $0.bond.peerSigningKey = SigningKey(value: value, isAuthenticated: false, nextCounter: nextCounter)
        }
    }

    /// The outcome of a pairing in which the peer has given a signing key; nil for none.
    private func outcome(_ identity: UInt64, key value: UInt128? = value) -> PairingOutcome {
        var outcome = Sample.outcome(address(identity))
        outcome.bond.peerSigningKey = value.map { SigningKey(value: $0, isAuthenticated: false) }
        return outcome
    }

    private func counter(_ identity: UInt64, in database: BondDatabase) -> UInt32? {
        database[address(identity)]?.bond.peerSigningKey?.nextCounter
    }

    @Test func counterIsUsedForAllIdentitiesWithTheKey() {
        var database = Sample.database(record(1, 3), record(2, 3), record(9, 3, of: 6))
        let effects = database.update(address(1), .counterUsed(next: 8, write))
        #expect(effects == [.save(Sample.saved(record(1, 8), record(2, 8), record(9, 3, of: 6)), number: 1)])
    }

    @Test func differentCountersOfOneKeyAreRaisedWhenTheyAreLoaded() {
        let database = Sample.database(record(1, 3), record(2, 30))
        #expect(counter(1, in: database) == 30 && counter(2, in: database) == 30)
    }

    @Test func counterOfARetiredKeyIsUsedForABondThatIsLoaded() {
        var saved = Sample.saved(record(1, 0))
        saved.retiredSigningKeys.add(SigningKey(value: Self.value, isAuthenticated: false, nextCounter: 30))
        var database = BondDatabase(identity: Sample.identity, limit: 3, isPersistent: true)
        database.load(saved)
        #expect(counter(1, in: database) == 30)
    }

    @Test func counterContinuesUnderAnotherIdentity() throws {
        var database = Sample.database(record(9, 30), limit: 4)
        _ = database.admit(outcome(1))
        #expect(counter(1, in: database) == 30)
        _ = try database.insert(record(2, 40), inUse: [])
        for identity: UInt64 in [1, 2, 9] { #expect(counter(identity, in: database) == 40) }
    }

    @Test func counterContinuesAfterAPairingWithoutTheKey() {
        for other in [nil, 6] as [UInt128?] {
            var database = Sample.database(record(1, 30))
            _ = database.admit(outcome(1, key: other))
            #expect(database[address(1)]?.bond.peerSigningKey?.value == other)
            _ = database.admit(outcome(1))
            #expect(counter(1, in: database) == 30)
        }
    }

    @Test func counterContinuesAfterTheBondWasRemovedOrEvicted() {
        var removed = Sample.database(record(1, 30))
        _ = removed.remove(address(1), notifying: Sample.call)
        _ = removed.admit(outcome(2))
        #expect(counter(2, in: removed) == 30)

        var evicted = Sample.database(record(1, 30), limit: 1)
        #expect(evicted.admit(outcome(2, key: 6)).1.contains(.evicted(address(1))))
        _ = evicted.admit(outcome(1))
        #expect(counter(1, in: evicted) == 30)
    }

    @Test func counterOfARemovedBondIsSaved() {
        var database = Sample.database(record(1, 30), record(2, 0, of: 6))
        var saved = Sample.saved(record(2, 0, of: 6))
        saved.retiredSigningKeys.add(SigningKey(value: Self.value, isAuthenticated: false, nextCounter: 30))
        #expect(database.remove(address(1), notifying: Sample.call).first == .save(saved, number: 1))
        #expect(
            database.remove(address(2), notifying: Sample.call).first
                == .save(
                    HostSecurityState(identity: Sample.identity, retiredSigningKeys: saved.retiredSigningKeys),
                    number: 2
                ),
            "no counter of the other key was used"
        )
        var next = BondDatabase(identity: Sample.identity, limit: 3, isPersistent: true)
        next.load(saved)
        _ = next.admit(outcome(1))
        #expect(counter(1, in: next) == 30)
    }

    @Test func keyThatAnotherBondHasIsNotRetired() {
        var database = Sample.database(record(1, 30), record(2, 30))
        #expect(
            database.remove(address(1), notifying: Sample.call).first == .save(Sample.saved(record(2, 30)), number: 1)
        )
    }

    @Test func retiredKeysAreBounded() {
        var retired = RetiredSigningKeys()
        for value in 1...(RetiredSigningKeys.limit + 1) {
            retired.add(SigningKey(value: UInt128(value), isAuthenticated: false, nextCounter: 2))
        }
        #expect(retired.keys.count == RetiredSigningKeys.limit)
        #expect(retired[1] == nil && retired[2]?.nextCounter == 2)
        retired.add(SigningKey(value: 2, isAuthenticated: false, nextCounter: 1))
        #expect(retired.keys.count == RetiredSigningKeys.limit)
        #expect(retired.keys.last == SigningKey(value: 2, isAuthenticated: false, nextCounter: 2))
    }
}
