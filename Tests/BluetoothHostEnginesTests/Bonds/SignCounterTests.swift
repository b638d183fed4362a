import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The sign counters of the bond database")
struct SignCounterTests {
    private typealias Sample = BondSample

    private let identity = BondSample.address(1)
    private let other = SaveWaiter.call(CallToken(index: 2, generation: 0))

    private func record(own nextCounter: UInt32, of key: UInt128 = 5) -> BondRecord {
        Sample.record(1) {
            $0.bond.ownSigningKey = SigningKey(value: key, isAuthenticated: true, nextCounter: nextCounter)
        }
    }

    private func available(_ counter: UInt32, keyAt nextCounter: UInt32) -> SignCounter {
        .available(SigningKey(value: 5, isAuthenticated: true, nextCounter: nextCounter), counter)
    }

    @Test("Counters are reserved several at a time, and used once the reservation is saved")
    func countersAreUsedOnceTheReservationIsSaved() {
        var database = Sample.database(record(own: 3))
        #expect(database.takeSignCounter(for: identity) == .noneReserved)
        #expect(
            database.reserveSignCounters(for: identity, notifying: Sample.call) == [
                .save(Sample.saved(record(own: 19)), number: 1)
            ]
        )
        #expect(database.takeSignCounter(for: identity) == .noneReserved)
        #expect(database.saved(1, true) == [.finish(Sample.call, isSaved: true)])
        for counter: UInt32 in 3..<19 {
            #expect(database.takeSignCounter(for: identity) == available(counter, keyAt: 19))
        }
        #expect(database.takeSignCounter(for: identity) == .noneReserved)
        // The next reservation follows the used one without a gap.
        _ = database.reserveSignCounters(for: identity, notifying: Sample.call)
        #expect(database.saved(2, true) == [.finish(Sample.call, isSaved: true)])
        for counter: UInt32 in 19..<35 {
            #expect(database.takeSignCounter(for: identity) == available(counter, keyAt: 35))
        }
        #expect(database.takeSignCounter(for: identity) == .noneReserved)
    }

    @Test("Counters whose reservation cannot be saved are never used")
    func unsavedCountersAreNotUsed() {
        var database = Sample.database(record(own: 0))
        _ = database.reserveSignCounters(for: identity, notifying: Sample.call)
        #expect(database.saved(1, false) == [.report(.bondsNotSaved), .finish(Sample.call, isSaved: false)])
        #expect(database.takeSignCounter(for: identity) == .noneReserved)
        _ = database.reserveSignCounters(for: identity, notifying: Sample.call)
        _ = database.saved(2, true)
        #expect(database.takeSignCounter(for: identity) == available(16, keyAt: 32))
    }

    @Test("Counters increase if two calls reserve some at the same time", arguments: [[1, 2], [2, 1] as [UInt64]])
    func countersIncreaseIfTwoCallsReserveSome(order: [UInt64]) {
        var database = Sample.database(record(own: 0))
        _ = database.reserveSignCounters(for: identity, notifying: Sample.call)
        _ = database.reserveSignCounters(for: identity, notifying: other)
        #expect(database.pendingSaveCount == 2)
        for number in order { _ = database.saved(number, true) }
        #expect(database.takeSignCounter(for: identity) == available(16, keyAt: 32))
    }

    @Test("Without a store, counters are used at once")
    func countersAreUsedAtOnceWithoutAStore() {
        var database = Sample.database(record(own: 0), isPersistent: false)
        #expect(
            database.reserveSignCounters(for: identity, notifying: Sample.call)
                == [.finish(Sample.call, isSaved: true)]
        )
        #expect(database.takeSignCounter(for: identity) == available(0, keyAt: 16))
    }

    @Test("No counter without a bond, without a key, or with an exhausted key")
    func noCounterIsGivenWithoutABondOrAUsableKey() {
        var database = Sample.database(Sample.record(1), Sample.record(2))
        #expect(database.takeSignCounter(for: Sample.address(9)) == .noKey)
        #expect(database.takeSignCounter(for: identity) == .noKey)
        let refused = [BondEffect.finish(Sample.call, isSaved: false)]
        #expect(database.reserveSignCounters(for: identity, notifying: Sample.call) == refused)
        var used = Sample.database(record(own: .max))
        #expect(used.takeSignCounter(for: identity) == .usedUp)
        #expect(used.reserveSignCounters(for: identity, notifying: Sample.call) == refused)
    }

    @Test("Counters belong to a key: another pairing starts with other counters")
    func anotherKeyHasItsOwnCounters() throws {
        var database = Sample.database(record(own: 0))
        _ = database.reserveSignCounters(for: identity, notifying: Sample.call)
        _ = database.saved(1, true)
        _ = try database.insert(record(own: 100, of: 6), inUse: [])
        #expect(database.takeSignCounter(for: identity) == .noneReserved)
    }

    @Test func countersAreForgottenWithTheBond() throws {
        var database = Sample.database(record(own: 0), Sample.record(2, isPrivileged: true), limit: 2)
        _ = database.reserveSignCounters(for: identity, notifying: Sample.call)
        _ = database.saved(1, true)
        #expect(database.signCounters.count == 1)
        _ = database.remove(identity, notifying: Sample.call)
        #expect(database.signCounters.count == 0)

        _ = try database.insert(record(own: 0), inUse: [])
        _ = database.update(identity, .privileged(false))
        _ = database.reserveSignCounters(for: identity, notifying: Sample.call)
        for number: UInt64 in 2...9 { _ = database.saved(number, true) }
        #expect(database.signCounters.count == 1)
        _ = try database.insert(Sample.record(3), inUse: [])
        #expect(database[identity] == nil, "the bond was evicted")
        #expect(database.signCounters.count == 0)
    }

    @Test func countersOfTheSameKeyStayWithAnImportedBond() throws {
        var database = Sample.database(record(own: 0))
        _ = database.reserveSignCounters(for: identity, notifying: Sample.call)
        _ = database.saved(1, true)
        _ = try database.insert(record(own: 0), inUse: [])
        #expect(database.takeSignCounter(for: identity) == available(0, keyAt: 16))
    }

    @Test func reservationThatIsSavedAfterTheBondEndedIsForgotten() throws {
        var database = Sample.database(record(own: 0))
        _ = database.reserveSignCounters(for: identity, notifying: Sample.call)
        _ = database.remove(identity, notifying: other)
        #expect(database.saved(1, true) == [.finish(Sample.call, isSaved: true)])
        #expect(database.signCounters.count == 0)
        #expect(database.takeSignCounter(for: identity) == .noKey)
    }

    @Test("The counter of a peer's signed write is saved before the write is carried out")
    func counterOfAPeerIsSavedBeforeItsWriteIsCarriedOut() {
        func record(peer nextCounter: UInt32) -> BondRecord {
            Sample.record(1) {
                $0.bond.peerSigningKey = SigningKey(value: 5, isAuthenticated: true, nextCounter: nextCounter)
            }
        }
        let write = SaveWaiter.signedWrite(7, LinkIdentifier(handle: 0x0040, serial: 1))
        var database = Sample.database(record(peer: 0))
        #expect(
            database.update(identity, .counterUsed(next: 5, write)) == [.save(Sample.saved(record(peer: 5)), number: 1)]
        )
        #expect(database.saved(1, true) == [.finish(write, isSaved: true)])
        let refused = [BondEffect.finish(write, isSaved: false)]
        #expect(database.update(identity, .counterUsed(next: 5, write)) == refused, "the counter was used")
        #expect(database.update(Sample.address(9), .counterUsed(next: 1, write)) == refused, "there is no bond")
    }
}
