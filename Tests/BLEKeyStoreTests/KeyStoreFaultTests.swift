import FaultInjection
import Foundation
import Glibc
import Synchronization
import Testing

@testable import BLEKeyStore

@Suite("A store whose disk or whose process has a fault", .timeLimit(.minutes(10)))
struct KeyStoreFaultTests {
    private let folder: StateFaultFolder

    init() throws {
        folder = try StateFaultFolder()
        try folder.file.replace(with: Data(#"{"format":1,"names":["old"]}"#.utf8))
    }

    private func open(_ warnings: FaultWarnings = FaultWarnings()) async -> KeyStore {
        await KeyStore.open(adapter: "a", in: folder.directory, writeDelay: .seconds(3600)) { warnings.add($0) }
    }

    private func save(_ names: [String], _ caches: [String: KeyStore.Source?] = [:], in store: KeyStore) async -> Bool {
        await withCheckedContinuation { continuation in
            store.save(["names": { names }], caches: caches) { continuation.resume(returning: $0) }
        }
    }

    private var saved: [String]? {
        try? KeyStore.inspect(folder.file) { _ in }.section("names", as: [String].self)
    }

    @Test(
        "reports it once with its reason, and saves the change with the next one",
        arguments: [
            Fault(.open, .fails(EMFILE)), Fault(.write, .fails(ENOSPC)), Fault(.fsync, .fails(EIO)),
            Fault(.close, .fails(EIO)), Fault(.rename, .fails(EIO)),
        ]
    )
    func failedSaveIsReportedOnceAndMadeUpFor(fault: Fault) async throws {
        let warnings = FaultWarnings()
        let store = await open(warnings)
        let injection = FaultInjection(fault, at: .path(folder.directory + "/a.json"))
        for name in ["first", "second"] { #expect(await !save([name], in: store)) }
        #expect(injection.uses > 0)
        injection.end()
        #expect(saved == ["old"])
        #expect(folder.names == ["a.json", "a.json.lock"])
        #expect(warnings.all.count == 1)
        #expect(warnings.all.first?.hasSuffix("changes are not saved until this succeeds") == true)
        await store.flush()
        #expect(saved == ["second"])
        await store.close()
        #expect(folder.openDescriptors == 0)
    }

    @Test("writes an earlier value again if the file may hold a later one")
    func earlierValueIsWrittenAgainAfterAnUncertainSave() async throws {
        let store = await open()
        // The directory's entry is replaced already.
        let injection = FaultInjection(Fault(.fsync, .fails(EIO), after: 1), at: .path(folder.directory))
        #expect(await !save(["new"], in: store))
        injection.end()
        #expect(saved == ["new"])
        #expect(await save(["old"], in: store))
        #expect(saved == ["old"])
        await store.close()
    }

    private var caches: String { folder.directory + "/a.caches" }

    /// Returns the cache of the peer that a process reads after a restart.
    private func cacheAfterRestart() async -> [String]? {
        let inspected = try? KeyStore.inspect(folder.file) { _ in }
        return await inspected?.caches(["peer"], as: [String].self)["peer"]
    }

    @Test("saves a bond whose earlier cache cannot be removed, and does not use that cache", arguments: [EIO, EACCES])
    func cacheThatCannotBeRemovedIsNotUsed(errno: Int32) async throws {
        let warnings = FaultWarnings()
        let store = await open(warnings)
        #expect(await save(["first"], ["peer": { ["cache of the first"] }], in: store))
        #expect(await cacheAfterRestart() == ["cache of the first"])
        let injection = FaultInjection(Fault(.unlink, .fails(errno)), at: .path(caches + "/peer.json"))
        #expect(await save(["second"], ["peer": nil], in: store))
        #expect(await save(["third"], ["peer": { ["cache of the third"] }], in: store))
        #expect(injection.uses > 0)
        #expect(saved == ["third"])
        #expect(await cacheAfterRestart() == nil)
        #expect(warnings.all.count == 1)
        #expect(warnings.all.first?.hasPrefix("cannot remove \(caches)/peer.json: ") == true)
        injection.end()
        await store.flush()
        #expect(saved == ["third"])
        #expect(await cacheAfterRestart() == ["cache of the third"])
        await store.close()
        #expect(folder.openDescriptors == 0)
    }

    @Test("does not use a cache whose removal may not survive a loss of power")
    func uncertainRemovalMakesTheCacheStale() async throws {
        let store = await open()
        #expect(await save(["first"], ["peer": { ["cache of the first"] }], in: store))
        let cache = try Data(contentsOf: URL(fileURLWithPath: caches + "/peer.json"))
        let injection = FaultInjection(Fault(.fsync, .fails(EIO)), at: .path(caches))
        #expect(await save(["second"], ["peer": nil], in: store))
        #expect(injection.uses == 1)
        // The loss of power.
        try StateFile(directory: caches, name: "peer.json").replace(with: cache, isDurable: false)
        #expect(await cacheAfterRestart() == nil)
        injection.end()
        await store.close()
        #expect(access(caches + "/peer.json", F_OK) != 0)
    }

    @Test("synchronizes the removal of a cache until that has succeeded")
    func removalIsSynchronizedAfterAFailedSave() async throws {
        let store = await open()
        #expect(await save(["first"], ["peer": { ["cache of the first"] }], in: store))
        let synchronization = FaultInjection(Fault(.fsync, .fails(EIO), count: 2), at: .path(caches))
        let replacement = FaultInjection(Fault(.rename, .fails(EIO), count: 1), at: .path(folder.file.path))
        // Nothing is saved: neither the new bond, nor that its cache is stale.
        #expect(await !save(["second"], ["peer": nil], in: store))
        #expect(replacement.uses == 1 && synchronization.uses == 1)
        // The cache is missing now, but may return.
        #expect(await save(["third"], in: store))
        #expect(synchronization.uses == 2)
        #expect(try KeyStore.inspect(folder.file) { _ in }.section("staleCaches", as: [String].self) == ["peer"])
        await store.flush()
        #expect(try KeyStore.inspect(folder.file) { _ in }.section("staleCaches", as: [String].self) == nil)
        await store.close()
    }

    @Test("keeps running without a cache that cannot be written or read")
    func cacheFaultsAffectOnlyTheCache() async throws {
        let warnings = FaultWarnings()
        let store = await open(warnings)
        for fault in [Fault(.mkdir, .fails(EIO)), Fault(.open, .fails(EMFILE)), Fault(.write, .fails(ENOSPC))] {
            let injection = FaultInjection(fault, at: .path(caches))
            #expect(await save(["\(fault)"], ["peer": { [1] }], in: store))
            #expect(injection.uses > 0)
            injection.end()
            #expect(await store.caches(["peer"], as: [Int].self).isEmpty)
        }
        #expect(await save(["new"], ["peer": { [1] }], in: store))
        for fault in [Fault(.opendir, .fails(EMFILE)), Fault(.readdir, .fails(EIO), after: 3)] {
            let injection = FaultInjection(fault, at: .path(caches))
            #expect(await store.caches(["peer"], as: [Int].self).isEmpty)
            #expect(injection.uses > 0)
        }
        #expect(await store.caches(["peer"], as: [Int].self) == ["peer": [1]])
        await store.close()
        #expect(warnings.all.isEmpty)
        #expect(folder.openDescriptors == 0)
    }

    @Test(
        "does not change the file if it could not be locked or read",
        arguments: [
            (Fault(.stat, .fails(EIO)), "", "nothing is saved"),
            (Fault(.open, .fails(EMFILE)), "/a.json.lock", "changes are not saved"),
            (Fault(.flock, .fails(ENOLCK)), "/a.json.lock", "changes are not saved"),
            (Fault(.open, .fails(EMFILE), after: 1), "/a.json", "nothing is saved"),
            (Fault(.read, .fails(EIO)), "/a.json", "nothing is saved"),
        ] as [(Fault, String, String)]
    )
    func fileThatCannotBeUsedIsNotChanged(fault: Fault, name: String, words: String) async throws {
        let warnings = FaultWarnings()
        let injection = FaultInjection(fault, at: .path(folder.directory + name))
        let store = await open(warnings)
        #expect(injection.uses > 0)
        injection.end()
        #expect(warnings.all.count == 1)
        #expect(warnings.all.first?.hasSuffix(words) == true)
        #expect(store.problem == warnings.all.first)
        #expect(await !save(["new"], in: store))
        #expect(saved == ["old"])
        await store.close()
        #expect(folder.openDescriptors == 0)
    }
}

private final class FaultWarnings: Sendable {
    private let texts = Mutex<[String]>([])

    var all: [String] { texts.withLock { $0 } }

    func add(_ text: String) {
        texts.withLock { $0.append(text) }
    }
}
