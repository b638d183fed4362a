import Foundation
import Synchronization
import Testing

@testable import KeyStore

@Suite("What hosts keep over restarts")
struct KeyStoreTests {
    private struct Peers: Codable, Equatable {
        var names: [String]
    }

    private let directory = FileManager.default.temporaryDirectory.path + "/key-store-\(UUID().uuidString)"

    private func open(_ warnings: Warnings = Warnings()) async -> KeyStore {
        await KeyStore.open(adapter: "00:11:22", in: directory, writeDelay: .seconds(3600)) { warnings.add($0) }
    }

    private var file: StateFile { StateFile(directory: directory, name: "00-11-22.json") }

    @Test(
        "The directory is what the environment says, by the first of its variables",
        arguments: [
            (["BLE_STATE_DIR": "/a", "STATE_DIRECTORY": "/b", "XDG_STATE_HOME": "/c", "HOME": "/d"], "/a"),
            (["STATE_DIRECTORY": "/b:/e", "XDG_STATE_HOME": "/c", "HOME": "/d"], "/b"),
            (["XDG_STATE_HOME": "/c", "HOME": "/d"], "/c/swift-ble"),
            (["XDG_STATE_HOME": "c", "HOME": "/d"], "/d/.local/state/swift-ble"),
            (["HOME": "/d", "BLE_STATE_DIR": ""], "/d/.local/state/swift-ble"),
            ([:], nil),
        ] as [([String: String], String?)]
    )
    func stateDirectory(environment: [String: String], path: String?) {
        #expect(StateDirectory.resolve(environment: environment) == path)
    }

    @Test("What was changed is there when the store is opened again, and only its owner can read it")
    func roundTrip() async throws {
        let store = await open()
        #expect(store.section("peers", as: Peers.self) == nil)
        store.change("peers") { Peers(names: ["lamp"]) }
        await store.flush()
        #expect(await open().section("peers", as: Peers.self) == Peers(names: ["lamp"]))
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == ["00-11-22.json"])
    }

    @Test("Sections that nobody changes stay as they are")
    func unknownSections() async throws {
        try file.replace(with: Data(#"{"format":1,"bonds":{"a":[1,2.5,null,true]},"peers":{"names":["old"]}}"#.utf8))
        let store = await open()
        store.change("peers") { Peers(names: ["new"]) }
        await store.flush()
        let contents = try #require(try file.read())
        let document = try JSONDecoder().decode([String: JSONValue].self, from: contents.data)
        #expect(document["bonds"] == .object(["a": .array([.integer(1), .number(2.5), .null, .boolean(true)])]))
        #expect(document["peers"] == .object(["names": .array([.string("new")])]))
    }

    @Test(
        "A damaged file is set aside with a warning, never overwritten",
        arguments: ["", "{", "[]", #"{"peers":{}}"#, #"{"format":"x"}"#, "\u{0}\u{0}\u{0}"]
    )
    func damagedFile(contents: String) async throws {
        for round in 1...2 {
            try file.replace(with: Data(contents.utf8))
            let warnings = Warnings()
            let store = await open(warnings)
            #expect(warnings.all.count == 1)
            #expect(warnings.all.first?.contains("damaged") == true)
            store.change("peers") { Peers(names: ["a"]) }
            await store.flush()
            #expect(await open().section("peers", as: Peers.self) == Peers(names: ["a"]))
            let aside = StateFile(directory: directory, name: "00-11-22.json.damaged-\(round)")
            #expect(try aside.read()?.data == Data(contents.utf8))
        }
    }

    @Test("A file of a later format is left alone")
    func laterFormat() async throws {
        let contents = Data(#"{"format":2,"peers":7}"#.utf8)
        try file.replace(with: contents)
        let warnings = Warnings()
        let store = await open(warnings)
        #expect(warnings.all.count == 1)
        store.change("peers") { Peers(names: ["a"]) }
        await store.flush()
        #expect(try file.read()?.data == contents)
    }

    @Test("A section of another form starts anew, with a warning")
    func foreignSection() async throws {
        try file.replace(with: Data(#"{"format":1,"peers":7}"#.utf8))
        let warnings = Warnings()
        #expect(await open(warnings).section("peers", as: Peers.self) == nil)
        #expect(warnings.all.count == 1)
    }

    @Test(
        "A crash at any step leaves what was there before or what was written",
        arguments: StateFile.Step.allCases
    )
    func crash(before step: StateFile.Step) throws {
        let (old, new) = (Data("old".utf8), Data("new".utf8))
        try file.replace(with: old)
        try file.replace(with: new, stoppingBefore: step)
        #expect(try file.read()?.data == (step == .synchronizeDirectory ? new : old))
        try file.replace(with: new)
        #expect(try file.read()?.data == new)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == [file.name])
    }

    @Test("What a program that is no more had begun to write is removed, and nothing else")
    func leftovers() throws {
        try file.replace(with: Data())
        let names = ["00-11-22.json.2147483646.new", "00-11-22.json.\(getppid()).new", "00-11-22.json.x.new"]
        for name in names { try Data().write(to: URL(fileURLWithPath: "\(directory)/\(name)")) }
        try file.replace(with: Data())
        let left = Set(try FileManager.default.contentsOfDirectory(atPath: directory))
        #expect(left == Set(names.dropFirst() + [file.name]))
    }

    @Test("Where nothing can be written, there is one warning and everything stays in memory")
    func unwritable() async throws {
        try Data().write(to: URL(fileURLWithPath: directory))
        let warnings = Warnings()
        let store = await open(warnings)
        store.change("peers") { Peers(names: ["a"]) }
        await store.flush()
        store.change("peers") { Peers(names: ["b"]) }
        await store.flush()
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
