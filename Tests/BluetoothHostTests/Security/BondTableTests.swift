import BluetoothTypes
import GATT
import SMP
import Synchronization
import Testing

@testable import BluetoothHost

/// Takes what it is given to keep, and says whether it could.
private final class RecordingStore: BondStore {
    private let state = Mutex((kept: [KeptSecurity](), canKeep: true, gathered: KeptSecurity?.none))

    var kept: [KeptSecurity] { state.withLock { $0.kept } }
    /// The last that may be gathered.
    var gathered: KeptSecurity? { state.withLock { $0.gathered } }

    func fail() { state.withLock { $0.canKeep = false } }

    nonisolated(nonsending) func load(for publicAddress: DeviceAddress?) async -> KeptSecurity {
        kept.last ?? KeptSecurity()
    }

    func gather(_ security: KeptSecurity) { state.withLock { $0.gathered = security } }

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

    @Test("The order of use is kept: after a restart, the least recently used bond is evicted")
    func orderOfUseIsKept() throws {
        var first = table(limit: 2)
        first.insert(record(1))
        first.insert(record(2))
        first.touch(address(1))
        let kept = try #require(store.gathered)
        #expect(kept.bonds.map(\.bond.identity) == [address(2), address(1)])
        var second = table(limit: 2)
        second.load(kept)
        #expect(second.insert(record(3)) == .evicted(address(2)))
    }

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

    private func privileged(_ value: UInt64) -> BondRecord {
        var record = record(value)
        record.isPrivileged = true
        return record
    }

    @Test("A full table of privileged bonds takes no new bond, and the same peer's again")
    func limit() {
        var table = table(limit: 2)
        for value: UInt64 in [1, 2] {
            let insertion = table.insert(privileged(value))
            #expect(insertion == .added)
        }
        let refused = table.insert(record(3))
        #expect(refused == .refused)
        let isFull = table.isFull
        #expect(isFull)
        let replaced = table.insert(privileged(1))
        #expect(replaced == .added)
        #expect(table.records.map(\.bond.identity) == [address(2), address(1)])
    }

    @Test("A new bond evicts the least recently used one that is neither privileged nor in use")
    func leastRecentlyUsedUnprivilegedBondIsEvicted() {
        var table = table(limit: 4)
        table.insert(privileged(1))
        for value: UInt64 in [2, 3, 4] { table.insert(record(value)) }
        table.touch(address(2))
        let isFull = table.isFull
        #expect(!isFull)
        let inUse = address(3)
        let insertion = table.insert(record(5), isInUse: { $0 == inUse })
        #expect(insertion == .evicted(address(4)))
        #expect(table.records.map(\.bond.identity) == [address(1), address(3), address(2), address(5)])
        #expect(store.kept.last?.bonds.count == 4)
        let refused = table.insert(record(6), isInUse: { _ in true })
        #expect(refused == .refused)
    }

    @Test("Strangers that fill the table replace each other's bonds and no privileged one")
    func strangersReplaceEachOther() {
        var table = table(limit: 8)
        for value: UInt64 in 1...4 { table.insert(privileged(value)) }
        for value: UInt64 in 100..<1000 { table.insert(record(value)) }
        #expect(table.count == 8)
        let left = (1...4 as ClosedRange<UInt64>).filter { table[address($0)] != nil }
        #expect(left == [1, 2, 3, 4])
        #expect(table[address(999)] != nil)
    }

    @Test("Changes that may be gathered are given to the store as such, and flushed once")
    func gatheredChanges() {
        var table = table()
        table.insert(record(1))
        let count = store.kept.count
        for value: UInt8 in 1...100 {
            table.update(address(1), isGathered: true) {
                $0.serverState = ServerSession.PersistentState(clientFeatures: value)
            }
        }
        #expect(store.kept.count == count)
        #expect(store.gathered?.bonds.first?.serverState?.clientFeatures == 100)
        table.flush()
        table.flush()
        #expect(store.kept.count == count + 1)
        #expect(store.kept.last?.bonds.first?.serverState?.clientFeatures == 100)
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
        table.insert(record(1), whenKept: { isKept in told.append("caller \(isKept)") })
        #expect(told.all == ["host", "caller false"])
    }
}
