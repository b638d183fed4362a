import BLE
import BLEGATT
import BLESMP
import BluetoothHost
import BluetoothTypes
import Foundation
import Glibc
import Synchronization
import Testing

@testable import BLE
@testable import BLEKeyStore

@Suite("Size limits of a state file")
struct StateLimitTests {
    private let state = StateFixture()
    private let peer = DeviceAddress(0xF000_0000_0002, isRandom: true)

    private func openStore(_ warnings: Warnings = Warnings(), writeDelay: Int = 3600) async -> KeyStore {
        await KeyStore.open(adapter: "00:1A:7D:DA:71:13", in: state.directory, writeDelay: .seconds(writeDelay)) {
            warnings.add($0)
        }
    }

    /// A bond with a database of `count` characteristics, each with a descriptor.
    private func security(characteristics count: Int, hash: UInt128? = 7) -> HostSecurityState {
        var record = BondRecord(bond: Bond(identity: peer))
        record.clientCache = DatabaseCache(
            hash: hash,
            services: [
                DiscoveredService(
                    uuid: "180F",
                    isPrimary: true,
                    handle: 1,
                    endHandle: 0xFFFF,
                    characteristics: (0..<count).map { index in
                        let handle = UInt16(truncatingIfNeeded: 2 + 3 * index)
                        return DiscoveredCharacteristic(
                            uuid: "12345678-1234-5678-1234-56789ABCDEF0",
                            handle: AttributeHandle(rawValue: handle),
                            valueHandle: AttributeHandle(rawValue: handle &+ 1),
                            endHandle: AttributeHandle(rawValue: handle &+ 2),
                            properties: [.read, .notify],
                            descriptors: [
                                DiscoveredDescriptor(
                                    uuid: "12345678-1234-5678-1234-56789ABCDEF1",
                                    handle: AttributeHandle(rawValue: handle &+ 2)
                                )
                            ]
                        )
                    }
                )
            ]
        )
        return HostSecurityState(
            identity: HostIdentity(staticAddress: DeviceAddress(0xC012_3456_789A, isRandom: true), resolvingKey: 3),
            bonds: [record]
        )
    }

    // MARK: Caches

    @Test("The largest database that a client discovers is written and read again")
    func largestDatabaseIsReadAgain() async throws {
        let security = security(characteristics: (DiscoveryLimits.attributes - 1) / 2)
        let store = await openStore()
        let bonds = BondFileStore(store) { Issue.record("\($0)") }
        _ = await bonds.load(for: state.controller)
        #expect(await bonds.saveAndWait(security))
        await bonds.close()
        let again = BondFileStore(await openStore()) { Issue.record("\($0)") }
        #expect(await again.load(for: state.controller) == security)
        await again.close()
        #expect(try #require(try state.file.read()).data.count < 1000, "the bonds' file holds no database")
    }

    @Test("A database cache that is too large, damaged or missing affects neither bonds nor identity", arguments: 0..<4)
    func cachesCanBeDropped(damage: Int) async throws {
        let security = security(characteristics: damage == 0 ? 65_534 : 3)
        let warnings = Warnings()
        let bonds = BondFileStore(await openStore(warnings)) { warnings.add($0) }
        _ = await bonds.load(for: state.controller)
        #expect(await bonds.saveAndWait(security))
        await bonds.close()
        let names = (try? FileManager.default.contentsOfDirectory(atPath: state.caches)) ?? []
        #expect(names.count == (damage == 0 ? 0 : 1))
        for name in names {
            let cache = StateFile(directory: state.caches, name: name)
            switch damage {
            case 1: try cache.replace(with: Data("{".utf8))
            case 2: try cache.replace(with: Data(repeating: 0x5B, count: 1 << 20))
            default: unlink(cache.path)
            }
        }
        let again = BondFileStore(await openStore(warnings)) { warnings.add($0) }
        #expect(await again.load(for: state.controller) == security.withoutCaches)
        #expect(again.problem == nil)
        #expect(await again.saveAndWait(security), "it is written again once it was discovered again")
        await again.close()
        #expect(warnings.all == [])
    }

    @Test("A cache is removed with its bond, and one without a bond is removed")
    func cachesGoWithTheirBonds() async throws {
        let bonds = BondFileStore(await openStore()) { Issue.record("\($0)") }
        _ = await bonds.load(for: state.controller)
        let security = security(characteristics: 3)
        #expect(await bonds.saveAndWait(security))
        // The peer has paired again, so its old database may be outdated.
        #expect(await bonds.saveAndWait(security.withoutCaches))
        #expect(try FileManager.default.contentsOfDirectory(atPath: state.caches) == [])
        #expect(await bonds.saveAndWait(security))
        await bonds.close()
        try await HostStateStore("\(state.controller)", in: state.directory).change(warn: recordIssue) { $0.bonds = [] }
        #expect(try FileManager.default.contentsOfDirectory(atPath: state.caches) == [])
        try StateFile(directory: state.caches, name: "stranger.json").replace(with: Data("{}".utf8))
        let again = BondFileStore(await openStore()) { Issue.record("\($0)") }
        _ = await again.load(for: state.controller)
        #expect(try FileManager.default.contentsOfDirectory(atPath: state.caches) == [])
        await again.close()
    }

    @Test("A database that an older version stored in the bond is used and moved")
    func databaseOfOlderVersionsMoves() async throws {
        let key = String(repeating: "1", count: 32)
        let text = """
            {"format":1,"identity":{"staticAddress":"C0:00:00:00:00:01","resolvingKey":"\(key)"},
            "bonds":[{"address":"F0:00:00:00:00:02","addressType":"random","client":{"hash":
            "0123456789abcdef0123456789abcdef","services":[{"uuid":"180F","isPrimary":true,"handle":1,"endHandle":3,"includedServices":[],"characteristics":[]}]}}]}
            """
        try state.file.replace(with: Data(text.utf8))
        let bonds = BondFileStore(await openStore()) { Issue.record("\($0)") }
        let security = await bonds.load(for: state.controller)
        #expect(security.bonds.first?.clientCache?.services.map(\.uuid) == ["180F"])
        #expect(await bonds.saveAndWait(security))
        await bonds.close()
        #expect(!String(decoding: try #require(try state.file.read()).data, as: UTF8.self).contains("180F"))
        let again = BondFileStore(await openStore()) { Issue.record("\($0)") }
        #expect(await again.load(for: state.controller) == security)
        await again.close()
    }

    @Test(
        "Bonds without the host's identity are reported as damage: they are kept, and it gets another identity"
    )
    func bondsWithoutTheIdentityOfTheHostAreReportedAsDamage() async throws {
        let bond = #"{"address":"F0:00:00:00:00:01","addressType":"random"}"#
        let text = #"{"format":1,"bonds":[\#(bond)]}"#
        try state.file.replace(with: Data(text.utf8))
        let warnings = Warnings()
        let bonds = BondFileStore(await openStore(warnings)) { warnings.add($0) }
        let security = await bonds.load(for: state.controller)
        #expect(security.identity == nil)
        #expect(security.bonds.map { "\($0.bond.identity)" } == ["F0:00:00:00:00:01"])
        #expect(bonds.problem?.contains("identity: this is missing, and there are bonds") == true)
        #expect(warnings.all.count == 1)
        let copy = state.file.path + ".damaged-1"
        #expect(try Data(contentsOf: URL(fileURLWithPath: copy)) == Data(text.utf8))
        await bonds.close()
    }

    @Test("A file without bonds needs no identity", arguments: [#"{"format":1}"#, #"{"format":1,"bonds":[]}"#])
    func fileWithoutBondsNeedsNoIdentity(text: String) async throws {
        try state.file.replace(with: Data(text.utf8))
        let warnings = Warnings()
        let bonds = BondFileStore(await openStore(warnings)) { warnings.add($0) }
        #expect(await bonds.load(for: state.controller) == HostSecurityState())
        await bonds.close()
        #expect(warnings.all == [])
    }

    // MARK: Writing

    @Test("State that could not be read again is not written, and the old state stays")
    func nothingIsWrittenThatCannotBeRead() async throws {
        let warnings = Warnings()
        let store = await openStore(warnings)
        let bonds = BondFileStore(store) { warnings.add($0) }
        _ = await bonds.load(for: state.controller)
        #expect(await bonds.saveAndWait(.sample))
        let before = try state.file.read()
        let long = String(repeating: "x", count: KeyStore.sectionSizeLimit)
        for name in ["a", "b"] {
            let isSaved = await withCheckedContinuation { continuation in
                store.save([name: { long }]) { continuation.resume(returning: $0) }
            }
            #expect(!isSaved)
        }
        #expect(warnings.all.count == 2)
        #expect(warnings.all.allSatisfy { $0.contains("is larger than 4 MB") })
        #expect(try state.file.read() == before)
        #expect(throws: StateFileError.tooLarge(state.file.path, limit: state.file.sizeLimit)) {
            try state.file.replace(with: Data(count: state.file.sizeLimit + 1))
        }
        #expect(try state.file.read() == before)
        await bonds.close()
    }

    @Test("A client that toggles its configuration causes two writes, and the last value is saved")
    func toggledConfigurationsAreGathered() async throws {
        let store = await openStore()
        let bonds = BondFileStore(store) { Issue.record("\($0)") }
        _ = await bonds.load(for: state.controller)
        var security = security(characteristics: 0)
        #expect(await bonds.saveAndWait(security))
        #expect(store.writeCount == 1)
        for toggle in 1...10_001 {
            security.bonds[0].serverState = ServerSession.PersistentState(
                configurations: toggle.isMultiple(of: 2) ? [] : [.init(handle: 3, configuration: .notification)]
            )
            bonds.saveSoon(security)
            // The first is written at once.
            if toggle == 1 { while store.writeCount < 2 { await Task.yield() } }
        }
        #expect(store.writeCount == 2)
        await bonds.close()
        #expect(store.writeCount == 2, "the last value is the one that was written first")
        security.bonds[0].serverState = ServerSession.PersistentState(clientFeatures: 1)
        let again = BondFileStore(await openStore()) { Issue.record("\($0)") }
        #expect(await again.load(for: state.controller).bonds[0].serverState?.configurations.count == 1)
        again.saveSoon(security)
        await again.close()
        let last = BondFileStore(await openStore()) { Issue.record("\($0)") }
        #expect(await last.load(for: state.controller).bonds[0].serverState?.clientFeatures == 1)
        await last.close()
    }

    // MARK: Problems

    @Test(
        "Unusable state is an event for each observer, and an error if state is required",
        arguments: [
            ("{", "is damaged"), (#"{"format":2}"#, "is of a later version"),
            (#"{"format":1,"identity":{"staticAddress":"40:00:00:00:00:01"}}"#, "damaged parts are ignored"),
            (#"{"format":1,"bonds":7}"#, "is not understood"),
            (
                #"{"format":1,"bonds":[{"address":"F0:00:00:00:00:01","addressType":"random"}]}"#,
                "identity: this is missing, and there are bonds"
            ),
        ]
    )
    func unusableStateIsReported(contents: String, problem: String) async throws {
        let name = "state-\(UUID().uuidString)"
        var configuration = Adapter.Configuration()
        configuration.stateLocation = .directory(state.directory)
        configuration.warn = { _ in }
        let first = try await Adapter.open(.virtual(name: name), configuration: configuration)
        let path = try #require(first.store.path)
        var events = await first.events().makeAsyncIterator()
        await first.close()
        guard case .closed = await events.next() else {
            Issue.record("there was no problem with the first")
            return
        }
        let file = StateFile(directory: state.directory, name: String(path.split(separator: "/").last ?? ""))
        try file.replace(with: Data(contents.utf8))

        var strict = configuration
        strict.requiresState = true
        let refusal = await #expect(throws: BLEError.self) {
            _ = try await Adapter.open(.virtual(name: name), configuration: strict)
        }
        guard case .stateUnavailable(let reason) = refusal else {
            Issue.record("\(String(describing: refusal))")
            return
        }
        #expect(reason.contains(problem))
        #expect(try file.read()?.data == Data(contents.utf8), "a refusal leaves the file as it is")

        let second = try await Adapter.open(.virtual(name: name), configuration: configuration)
        for _ in 1...2 {
            var events = await second.events().makeAsyncIterator()
            guard case .stateUnavailable(let reason)? = await events.next() else {
                Issue.record("there was no event")
                break
            }
            #expect(reason.contains(problem))
        }
        await second.close()
    }
}
