import Synchronization
import Testing

@testable import BLEKeyStore

@Suite("Sections whose changes are not written yet, and stores without a file")
struct KeyStoreSectionTests {
    private let storeFolder = StoreFolder()

    private func open() async -> KeyStore {
        await storeFolder.open { Issue.record("\($0)") }
    }

    private func save(_ names: [String], in store: KeyStore) async -> Bool {
        await withCheckedContinuation { continuation in
            store.save(["peers": { Peers(names: names) }]) { continuation.resume(returning: $0) }
        }
    }

    @Test func sectionHasTheChangeThatIsNotWrittenYet() async {
        let store = await open()
        #expect(await save(["old"], in: store))
        store.change("peers") { Peers(names: ["new"]) }
        store.change("others") { Peers(names: ["other"]) }
        #expect(store.writeCount == 1)
        #expect(store.section("peers", as: Peers.self) == Peers(names: ["new"]))
        #expect(store.section("others", as: Peers.self) == Peers(names: ["other"]))
        #expect(store.hasSection("others") && !store.hasSection("none"))
        await store.close()
        #expect(store.section("peers", as: Peers.self) == Peers(names: ["new"]))
    }

    @Test func sectionHasTheChangeThatIsBeingWritten() async {
        let store = await open()
        #expect(await save(["old"], in: store))
        let found = Mutex<[[String]]>([])
        store.change("peers") { Peers(names: ["new"]) }
        // Called during the write.
        store.change("others") {
            let names = store.section("peers", as: Peers.self)?.names ?? []
            found.withLock { $0.append(names) }
            return Peers(names: [])
        }
        await store.close()
        #expect(found.withLock { $0 } == [["new"]])
    }

    @Test func sourceOfAChangeMayUseTheStore() async {
        let store = await open()
        store.change("peers") { Peers(names: [store.isPersistent ? "kept" : "lost"]) }
        #expect(store.section("peers", as: Peers.self) == Peers(names: ["kept"]))
        await store.close()
    }

    @Test func sectionHasItsFormerValueIfTheChangeCannotBeEncoded() async {
        let store = await open()
        #expect(await save(["old"], in: store))
        store.change("peers") { [Double.infinity] }
        #expect(store.section("peers", as: Peers.self) == Peers(names: ["old"]))
        await store.close()
    }

    @Test func storeInMemoryHasItsChanges() async {
        let store = KeyStore.inMemory()
        #expect(store.section("peers", as: Peers.self) == nil)
        store.change("peers") { Peers(names: ["new"]) }
        #expect(store.section("peers", as: Peers.self) == Peers(names: ["new"]))
    }

    @Test("A missing directory is a problem, and a store that is wanted in memory has none")
    func missingDirectoryIsAProblem() async {
        let warnings = Mutex<[String]>([])
        let store = await KeyStore.open(adapter: "hci0", in: nil) { text in warnings.withLock { $0.append(text) } }
        let problem = "no directory for the state of hci0: set BLE_STATE_DIR to keep it over restarts"
        #expect(store.problem == problem)
        #expect(warnings.withLock { $0 } == [problem])
        #expect(await !save(["a"], in: store))
        #expect(KeyStore.inMemory().problem == nil)
    }
}
