import BluetoothTypes
import GATT
import SMP
import Synchronization
import Testing

@testable import BluetoothHost

/// Takes what it is given to keep, and says whether it could.
private final class RecordingStore: BondStore {
    private let state = Mutex((kept: [KeptSecurity](), canKeep: true))

    var kept: [KeptSecurity] { state.withLock { $0.kept } }

    func fail() { state.withLock { $0.canKeep = false } }

    nonisolated(nonsending) func load(for publicAddress: DeviceAddress?) async -> KeptSecurity {
        kept.last ?? KeptSecurity()
    }

    func keep(_ security: KeptSecurity, whenKept: (@Sendable (Bool) -> Void)?) {
        let canKeep = state.withLock { state in
            state.kept.append(security)
            return state.canKeep
        }
        whenKept?(canKeep)
    }
}

@Suite("The table of bonds")
struct BondTableTests {
    private let store = RecordingStore()

    private func table(limit: Int = 3) -> BondTable {
        var random = Counting()
        return BondTable(store: store, limit: limit, random: &random)
    }

    private func record(_ value: UInt64) -> BondRecord {
        BondRecord(bond: Bond(identity: DeviceAddress(value, isRandom: false)))
    }

    private func address(_ value: UInt64) -> DeviceAddress { DeviceAddress(value, isRandom: false) }

    @Test("A host's identity is kept before it goes to work, once, and is the one that was kept")
    func identity() {
        var first = table()
        first.begin {}
        first.begin {}
        #expect(store.kept.count == 1)
        #expect(first.identity.staticAddress.kind == .randomStatic)
        #expect(first.identity.resolvingKey != 0)
        var random = Counting(state: 99)
        var second = BondTable(store: store, limit: 3, random: &random)
        #expect(second.identity != first.identity)
        second.load(store.kept[0])
        #expect(second.identity == first.identity)
    }

    @Test("A full table takes no new bond, and the same peer's again")
    func limit() {
        var table = table(limit: 2)
        for value: UInt64 in [1, 2] {
            let isTaken = table.insert(record(value))
            #expect(isTaken)
        }
        let isTaken = table.insert(record(3))
        #expect(!isTaken)
        let isReplaced = table.insert(record(1))
        #expect(isReplaced)
        #expect(table.records.map(\.bond.identity) == [address(2), address(1)])
    }

    @Test("Each change is kept whole, and what is no change is not")
    func changes() {
        var table = table()
        table.insert(record(1))
        table.insert(record(2))
        #expect(store.kept.last?.bonds.map(\.bond.identity) == [address(1), address(2)])
        let count = store.kept.count
        let isUnchanged = !table.update(address(1)) { _ in }
        let isUnknown = !table.update(address(9)) { $0.bond.identityResolvingKey = 5 }
        #expect(isUnchanged && isUnknown && store.kept.count == count)
        let isChanged = table.update(address(1)) { $0.bond.identityResolvingKey = 5 }
        #expect(isChanged)
        #expect(store.kept.last?.bonds.first?.bond.identityResolvingKey == 5)
        table.remove(address(1))
        #expect(store.kept.last?.bonds.map(\.bond.identity) == [address(2)])
    }

    @Test("A bond that is used comes last, and a change does not make it another's")
    func use() {
        var table = table()
        for value: UInt64 in [1, 2, 3] { table.insert(record(value)) }
        table.touch(address(1))
        #expect(table.records.map(\.bond.identity) == [address(2), address(3), address(1)])
        table.update(address(2)) {
            $0.bond.identity = address(3)
            $0.bond.identityResolvingKey = 7
        }
        #expect(table[address(2)]?.bond.identityResolvingKey == 7)
        #expect(table[address(3)]?.bond.identityResolvingKey == nil)
    }

    @Test("What the store cannot keep is told to who changed it and to the host")
    func failure() {
        let told = Recorder<String>()
        var table = table()
        table.begin { told.append("host") }
        store.fail()
        table.insert(record(1)) { isKept in told.append("caller \(isKept)") }
        #expect(told.all == ["host", "caller false"])
    }
}
