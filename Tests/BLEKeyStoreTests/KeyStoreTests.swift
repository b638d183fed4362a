import BLEJSONText
import FaultInjection
import Foundation
import Glibc
import Synchronization
import Testing

@testable import BLEKeyStore

@Suite("The state that hosts keep over restarts")
final class KeyStoreTests {
    private let storeFolder = StoreFolder()
    private var directory: String { storeFolder.path }

    private func open(_ warnings: Warnings = Warnings()) async -> KeyStore {
        await storeFolder.open { warnings.add($0) }
    }

    /// The section as the next user of the store loads it.
    private func saved(_ warnings: Warnings = Warnings()) async -> Peers? {
        let store = await open(warnings)
        let peers = store.section("peers", as: Peers.self)
        await store.close()
        return peers
    }

    private var file: StateFile { StateFile(directory: directory, name: "00-11-22.json") }

    @Test(
        "The directory is taken from the environment, from the first of its variables",
        arguments: [
            (["BLE_STATE_DIR": "/a", "STATE_DIRECTORY": "/b", "XDG_STATE_HOME": "/c", "HOME": "/d"], "/a"),
            (["STATE_DIRECTORY": "/b:/e", "XDG_STATE_HOME": "/c", "HOME": "/d"], "/b"),
            (["XDG_STATE_HOME": "/c", "HOME": "/d"], "/c/swift-ble"),
            (["XDG_STATE_HOME": "c", "HOME": "/d"], "/d/.local/state/swift-ble"),
            (["HOME": "/d", "BLE_STATE_DIR": ""], "/d/.local/state/swift-ble"),
            ([:], nil),
        ] as [([String: String], String?)]
    )
    func stateDirectoryIsThatOfTheFirstSetVariable(environment: [String: String], path: String?) {
        #expect(StateDirectory.resolve(environment: environment) == path)
    }

    @Test("A change is loaded when the store is opened again, and only its owner can read it")
    func changeIsLoadedAgainAndReadableByItsOwnerOnly() async throws {
        let store = await open()
        #expect(store.section("peers", as: Peers.self) == nil)
        store.change("peers") { Peers(names: ["lamp"]) }
        await store.close()
        #expect(await saved() == Peers(names: ["lamp"]))
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
        let folder = try FileManager.default.attributesOfItem(atPath: directory)
        #expect((folder[.posixPermissions] as? NSNumber)?.intValue == 0o700)
        let names = Set(try FileManager.default.contentsOfDirectory(atPath: directory))
        #expect(names == ["00-11-22.json", "00-11-22.json.lock"])
    }

    @Test("Sections that nobody changes are kept")
    func sectionsThatNobodyChangesAreKept() async throws {
        try file.replace(with: Data(#"{"format":1,"bonds":{"a":[1,2.5,null,true]},"peers":{"names":["old"]}}"#.utf8))
        let store = await open()
        store.change("peers") { Peers(names: ["new"]) }
        await store.close()
        let contents = try #require(try file.read())
        let document = try JSONDecoder().decode([String: JSON].self, from: contents.data)
        #expect(document["bonds"] == ["a": [1, .decimal(2.5), nil, true]])
        #expect(document["peers"] == ["names": ["new"]])
    }

    @Test(
        "A damaged file is renamed with a warning, never overwritten",
        arguments: [
            "", "{", "[]", #"{"peers":{}}"#, #"{"format":"x"}"#, "\u{0}\u{0}\u{0}",
            #"{"format":1,"deep":"# + String(repeating: "[", count: 400) + String(repeating: "]", count: 400) + "}",
            #"{"format":1,"deep":"# + String(repeating: "[", count: 1 << 20),
        ]
    )
    func damagedFileIsRenamedWithAWarning(contents: String) async throws {
        for round in 1...2 {
            try file.replace(with: Data(contents.utf8))
            let warnings = Warnings()
            let store = await open(warnings)
            #expect(warnings.all.count == 1)
            #expect(warnings.all.first?.contains("damaged") == true)
            store.change("peers") { Peers(names: ["a"]) }
            await store.close()
            #expect(await saved() == Peers(names: ["a"]))
            let aside = StateFile(directory: directory, name: "00-11-22.json.damaged-\(round)")
            #expect(try aside.read()?.data == Data(contents.utf8))
        }
    }

    @Test("A file of a later format is not changed")
    func fileOfALaterFormatIsNotChanged() async throws {
        let contents = Data(#"{"format":2,"peers":7}"#.utf8)
        try file.replace(with: contents)
        let warnings = Warnings()
        let store = await open(warnings)
        #expect(warnings.all.count == 1)
        store.change("peers") { Peers(names: ["a"]) }
        await store.close()
        #expect(try file.read()?.data == contents)
    }

    @Test("A section of another form is replaced with a warning, and the old file is kept")
    func sectionOfAnotherFormIsReplacedWithAWarning() async throws {
        let contents = Data(#"{"format":1,"peers":7}"#.utf8)
        try file.replace(with: contents)
        let warnings = Warnings()
        let store = await open(warnings)
        for _ in 1...2 { #expect(store.section("peers", as: Peers.self) == nil) }
        store.change("peers") { Peers(names: ["a"]) }
        await store.close()
        let copy = StateFile(directory: directory, name: "00-11-22.json.damaged-1")
        // One for each use of the section.
        #expect(warnings.all.count == 2)
        #expect(warnings.all.allSatisfy { $0.contains("is not understood") && $0.hasSuffix(copy.path) })
        #expect(try copy.read()?.data == contents)
        #expect(await saved() == Peers(names: ["a"]))
        #expect(access(copy.path.dropLast() + "2", F_OK) != 0)
    }

    @Test("Nothing is written over a section of another form that could not be kept aside")
    func nothingIsWrittenOverASectionThatCouldNotBeKeptAside() async throws {
        let contents = Data(#"{"format":1,"peers":7}"#.utf8)
        try file.replace(with: contents)
        let warnings = Warnings()
        let store = await open(warnings)
        let trial = FaultRun([Fault(.link, .fails(EPERM))]) { store.section("peers", as: Peers.self) }
        #expect(trial.unused.isEmpty)
        #expect(!store.isPersistent)
        #expect(warnings.all.count == 1)
        #expect(warnings.all.first?.hasSuffix("Operation not permitted: nothing is saved") == true, "\(warnings.all)")
        #expect(await save(["a"], in: store) == false)
        #expect(store.hasUnsavedChanges)
        await store.close()
        #expect(try file.read()?.data == contents)
    }

    // MARK: What must not be lost

    @Test("A change that must not be lost is written at once, and its end is reported")
    func durableChangeIsWrittenAtOnce() async throws {
        let store = await open()
        store.change("others") { Peers(names: ["gathered"]) }
        let isSaved = await withCheckedContinuation { continuation in
            store.save(["peers": { Peers(names: ["lamp"]) }]) { continuation.resume(returning: $0) }
        }
        #expect(isSaved)
        // Does not wait for anything else.
        let reader = try KeyStore.inspect(file) { Issue.record("\($0)") }
        #expect(reader.section("peers", as: Peers.self) == Peers(names: ["lamp"]))
        #expect(reader.section("others", as: Peers.self) == Peers(names: ["gathered"]))
        await store.close()
    }

    @Test("Keeping an unchanged value reports success as well")
    func keepingAnUnchangedValueSucceeds() async {
        let store = await open()
        for _ in 1...2 { #expect(await save(["lamp"], in: store)) }
        await store.close()
    }

    @Test("A failed save is reported: in memory, after closing, and on a full or failed disk")
    func failedSavesAreReported() async throws {
        #expect(await !save(["a"], in: .inMemory()))
        let store = await open()
        #expect(await save(["a"], in: store))
        try FileManager.default.removeItem(atPath: directory)
        try Data().write(to: URL(fileURLWithPath: directory))
        #expect(await !save(["b"], in: store))
        try FileManager.default.removeItem(atPath: directory)
        // A change that could not be written is written with the next one.
        store.save(["others": { Peers(names: ["c"]) }])
        await store.close()
        #expect(await saved() == Peers(names: ["b"]))
        #expect(await !save(["d"], in: store))
        #expect(await saved() == Peers(names: ["b"]))
    }

    @Test("A value that JSON cannot represent does not affect the others")
    func valueThatJSONCannotRepresentDoesNotAffectOthers() async {
        let store = await open()
        #expect(await save(["a"], in: store))
        store.change("infinite") { [Double.infinity] }
        #expect(await !save(["b"], in: store))
        await store.close()
        #expect(await saved() == Peers(names: ["b"]))
    }

    private func save(_ names: [String], in store: KeyStore) async -> Bool {
        await withCheckedContinuation { continuation in
            store.save(["peers": { Peers(names: names) }]) { continuation.resume(returning: $0) }
        }
    }

    // MARK: Several hosts

    @Test("A file belongs to one host: the second gets the owner, the content, and saves nothing")
    func fileBelongsToOneHost() async throws {
        let first = await open()
        #expect(await save(["a"], in: first))
        let warnings = Warnings()
        let second = await open(warnings)
        #expect(
            warnings.all == [
                "\(file.path) is in use by process \(getpid()): changes are not saved"
            ]
        )
        #expect(second.section("peers", as: Peers.self) == Peers(names: ["a"]))
        #expect(await !save(["b"], in: second))
        await second.close()
        #expect(throws: StateFileError.inUse(file.path, process: getpid())) {
            try KeyStore.edit(file) { Issue.record("\($0)") }
        }
        #expect(await save(["c"], in: first))
        await first.close()
        #expect(await saved() == Peers(names: ["c"]))
    }

    @Test("Inspecting needs no lock and changes nothing", arguments: ["{", #"{"format":1,"peers":7}"#])
    func inspectingNeedsNoLockAndChangesNothing(contents: String) async throws {
        let first = await open()
        #expect(await save(["a"], in: first))
        let store = try KeyStore.inspect(file) { Issue.record("\($0)") }
        #expect(store.section("peers", as: Peers.self) == Peers(names: ["a"]))
        #expect(await !save(["b"], in: store))
        await first.close()
        try file.replace(with: Data(contents.utf8))
        _ = (try? KeyStore.inspect(file) { _ in })?.section("peers", as: Peers.self)
        #expect(try file.read()?.data == Data(contents.utf8))
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory).count == 2)
    }

    // MARK: Files that are not as they should be

    @Test(
        "A directory is created with its parents, and a failure is reported",
        arguments: [true, false]
    )
    func directoryIsCreatedWithItsParents(isPossible: Bool) async {
        let path = (isPossible ? directory : "/proc") + "/several/levels"
        let warnings = Warnings()
        let store = await KeyStore.open(adapter: "00:11:22", in: path) { warnings.add($0) }
        #expect(await save(["a"], in: store) == isPossible)
        await store.close()
        #expect(warnings.all.count == (isPossible ? 0 : 1))
        #expect(warnings.all.allSatisfy { $0.hasPrefix("cannot make /proc/several: ") })
    }

    @Test("A directory in which others can replace files is not used", arguments: [0o770, 0o707, 0o1777])
    func directoryInWhichOthersCanReplaceFilesIsNotUsed(mode: mode_t) async throws {
        try file.replace(with: Data(#"{"format":1,"peers":{"names":["planted"]}}"#.utf8))
        #expect(chmod(directory, mode) == 0)
        let warnings = Warnings()
        let store = await open(warnings)
        #expect(store.section("peers", as: Peers.self) == nil)
        #expect(await !save(["a"], in: store))
        await store.close()
        #expect(warnings.all.count == 1)
        #expect(warnings.all.first?.contains("chmod go-w \(directory)") == true)
        #expect(store.problem == warnings.all.first)
        let error = StateFileError.laxDirectory(directory, mode: mode)
        #expect(throws: error) { try KeyStore.inspect(file) { Issue.record("\($0)") } }
        #expect(throws: error) { try KeyStore.edit(file) { Issue.record("\($0)") } }
        // Others may list the directory, because only the owner can read the files.
        #expect(chmod(directory, 0o755) == 0)
        #expect(await saved(warnings) == Peers(names: ["planted"]))
        #expect(warnings.all.count == 1)
    }

    @Test("Another user's directory is not used", .enabled(if: geteuid() == 0, "only root can give directories away"))
    func directoryOfAnotherUserIsNotUsed() async throws {
        try file.replace(with: Data(#"{"format":1,"peers":{"names":["planted"]}}"#.utf8))
        #expect(chown(directory, 12345, 12345) == 0)
        let warnings = Warnings()
        let store = await open(warnings)
        #expect(warnings.all.first?.contains("\(directory) belongs to user 12345, not to user 0") == true)
        #expect(store.section("peers", as: Peers.self) == nil)
        await store.close()
    }

    @Test("A file that others could read is restricted to its owner, with a warning about its mode")
    func readableFileIsRestricted() async throws {
        try file.replace(with: Data(#"{"format":1,"peers":{"names":["a"]}}"#.utf8))
        #expect(chmod(file.path, 0o644) == 0)
        let warnings = Warnings()
        #expect(await saved(warnings) == Peers(names: ["a"]))
        #expect(warnings.all.count == 1)
        #expect(warnings.all.first?.contains("mode 644") == true)
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
        #expect(await saved(warnings) == Peers(names: ["a"]))
        #expect(warnings.all.count == 1)
    }

    /// Objects that may be in the place of the file.
    enum Obstacle: CaseIterable, Sendable {
        case directory
        case pipe
        case socket
        case symbolicLink
        case danglingLink
        case tooLong

        func put(at path: String) throws {
            switch self {
            case .directory: try #require(mkdir(path, 0o700) == 0)
            case .pipe: try #require(mkfifo(path, 0o600) == 0)
            case .socket: try #require(mknod(path, S_IFSOCK | 0o600, 0) == 0)
            case .symbolicLink:
                try Data(#"{"format":1,"peers":{"names":["linked"]}}"#.utf8).write(
                    to: URL(fileURLWithPath: path + ".real")
                )
                try #require(symlink(path + ".real", path) == 0)
            case .danglingLink: try #require(symlink("/nonexistent", path) == 0)
            case .tooLong:
                try Data().write(to: URL(fileURLWithPath: path))
                try #require(chmod(path, 0o600) == 0 && truncate(path, 17 << 20) == 0)
            }
        }

        var words: String {
            switch self {
            case .directory, .pipe, .socket: "is not a regular file"
            case .symbolicLink, .danglingLink: "is a symbolic link"
            case .tooLong: "File too large"
            }
        }
    }

    @Test("Another kind of file is not changed, with one warning, and the host continues", arguments: Obstacle.allCases)
    func anotherKindOfFileIsNotChangedAndTheHostContinues(_ obstacle: Obstacle) async throws {
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        try obstacle.put(at: file.path)
        var before = stat()
        #expect(lstat(file.path, &before) == 0)
        let warnings = Warnings()
        let store = await open(warnings)
        #expect(warnings.all.count == 1)
        #expect(warnings.all.first?.contains(obstacle.words) == true)
        #expect(warnings.all.first?.hasSuffix("nothing is saved") == true)
        #expect(store.section("peers", as: Peers.self) == nil)
        #expect(await !save(["a"], in: store))
        await store.close()
        var after = stat()
        #expect(lstat(file.path, &after) == 0)
        #expect(after.st_ino == before.st_ino && after.st_size == before.st_size)
    }

    @Test("Another user's file is not changed", .enabled(if: geteuid() == 0, "files can be given away by root only"))
    func fileOfAnotherUserIsNotChanged() async throws {
        let contents = Data(#"{"format":1,"peers":{"names":["planted"]}}"#.utf8)
        try file.replace(with: contents)
        #expect(chown(file.path, 12345, 12345) == 0)
        let warnings = Warnings()
        let store = await open(warnings)
        #expect(warnings.all.first?.contains("belongs to user 12345, not to user 0") == true)
        #expect(store.section("peers", as: Peers.self) == nil)
        #expect(await !save(["a"], in: store))
        await store.close()
        #expect(try Data(contentsOf: URL(fileURLWithPath: file.path)) == contents)
    }

    @Test(.enabled(if: geteuid() != 0, "root can read everything"))
    func unreadableFileIsReportedAndNothingIsSaved() async throws {
        try file.replace(with: Data(#"{"format":1}"#.utf8))
        #expect(chmod(file.path, 0) == 0)
        let warnings = Warnings()
        let store = await open(warnings)
        #expect(warnings.all == ["cannot read \(file.path): Permission denied: nothing is saved"])
        #expect(await !save(["a"], in: store))
        await store.close()
    }

    @Test(
        "A crash at any step leaves either the old or the new content",
        arguments: StateFile.Step.allCases
    )
    func crashAtAnyStepLeavesTheOldOrTheNewContent(before step: StateFile.Step) throws {
        let (old, new) = (Data("old".utf8), Data("new".utf8))
        try file.replace(with: old)
        try file.replace(with: new, stoppingBefore: step)
        #expect(try file.read()?.data == (step == .synchronizeDirectory ? new : old))
        try file.replace(with: new)
        #expect(try file.read()?.data == new)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == [file.name])
    }

    @Test("Only unfinished files of programs that have ended are removed")
    func onlyUnfinishedFilesOfEndedProgramsAreRemoved() throws {
        try file.replace(with: Data())
        let names = ["00-11-22.json.2147483646.new", "00-11-22.json.\(getppid()).new", "00-11-22.json.x.new"]
        for name in names { try Data().write(to: URL(fileURLWithPath: "\(directory)/\(name)")) }
        try file.replace(with: Data())
        let left = Set(try FileManager.default.contentsOfDirectory(atPath: directory))
        #expect(left == Set(names.dropFirst() + [file.name]))
    }

    @Test(
        "Unfinished caches of ended programs are removed, even if no cache is written again",
        arguments: [true, false]
    )
    func unfinishedCachesOfEndedProgramsAreRemoved(hasCaches: Bool) async throws {
        let store = await open()
        let caches = try #require(store.cacheDirectory)
        if hasCaches {
            let cache = StateFile(directory: caches, name: KeyStore.fileName(of: "peer"))
            try cache.replace(with: Data("[1]".utf8), isDurable: false)
        } else {
            try FileManager.default.createDirectory(atPath: caches, withIntermediateDirectories: true)
        }
        let ended = ["other.json.2147483646.new", "other.json.\(getpid()).new"]
        let names = ended + ["other.json.\(getppid()).new", "other.json.x.new"]
        for name in names { try Data().write(to: URL(fileURLWithPath: "\(caches)/\(name)")) }
        // A process that may not change the files leaves them all.
        let reader = try KeyStore.inspect(file) { Issue.record("\($0)") }
        #expect(await reader.caches([], as: [Int].self).isEmpty)
        let others = Set(try FileManager.default.contentsOfDirectory(atPath: caches))
        #expect(others.isSuperset(of: names))
        let values: [String: [Int]] = hasCaches ? ["peer": [1]] : [:]
        #expect(await store.caches(["peer"], as: [Int].self) == values)
        await store.close()
        let left = Set(try FileManager.default.contentsOfDirectory(atPath: caches))
        let cacheNames = hasCaches ? ["peer.json"] : []
        #expect(left == Set(names.dropFirst(ended.count) + cacheNames))
    }

    @Test func stateThatCannotBeWrittenCausesOneWarning() async throws {
        try Data().write(to: URL(fileURLWithPath: directory))
        let warnings = Warnings()
        let store = await open(warnings)
        store.change("peers") { Peers(names: ["a"]) }
        await store.flush()
        store.change("peers") { Peers(names: ["b"]) }
        await store.close()
        #expect(warnings.all.count == 1)
    }
}

private final class Warnings: Sendable {
    private let texts = Mutex<[String]>([])

    var all: [String] { texts.withLock { $0 } }

    func add(_ text: String) {
        texts.withLock { $0.append(text) }
    }
}
