import BLEGATT
import BLEKeyStore
import BLESMP
import BluetoothHost
import BluetoothTypes
import Foundation
import Testing

@testable import BLE

@Suite("Caches and counters in the state directory")
final class KeptCacheAndCounterTests {
    private let directory = FileManager.default.temporaryDirectory.path + "/bonds-\(UUID().uuidString)"

    deinit { try? FileManager.default.removeItem(atPath: directory) }
    private let controller = DeviceAddress(0x001A_7DDA_7113, isRandom: false)

    private var file: StateFile { StateFile(directory: directory, name: "00-1A-7D-DA-71-13.json") }

    private let recordIssue: @Sendable (String) -> Void = { Issue.record("\($0)") }

    private func bonds(_ warnings: Warnings = Warnings()) -> KeptBonds {
        KeptBonds { [directory] address in
            await .open(adapter: address.map { "\($0)" } ?? "hci0", in: directory) { warnings.add($0) }
        } warn: {
            warnings.add($0)
        }
    }

    /// Loads the state as the next host does.
    private func load(_ warnings: Warnings = Warnings()) async -> KeptSecurity {
        let bonds = bonds(warnings)
        let security = await bonds.load(for: controller)
        await bonds.close()
        return security
    }

    private func keep(_ security: KeptSecurity, in bonds: KeptBonds) async -> Bool {
        await withCheckedContinuation { continuation in
            bonds.keep(security) { continuation.resume(returning: $0) }
        }
    }

    // MARK: Caches

    /// The names of the files with caches.
    private var cacheNames: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: cacheDirectory)) ?? []
    }

    private var cacheDirectory: String { directory + "/00-1A-7D-DA-71-13.caches" }

    @Test("A cache without a hash is not saved, because the process may end before the cache is removed")
    func cacheWithoutAHashIsNotSaved() async {
        let bonds = bonds()
        _ = await bonds.load(for: controller)
        #expect(await keep(.sample, in: bonds))
        await bonds.close()
        #expect(cacheNames.count == 1)
        let next = self.bonds()
        var changed = await next.load(for: controller)
        #expect(changed == .sample)
        changed.bonds[1].clientCache?.hash = nil
        #expect(await keep(changed, in: next))
        await next.close()
        #expect(cacheNames.isEmpty)
        #expect(await load() == KeptSecurity.sample.withoutCaches)
    }

    @Test("A cache without a hash that an older version saved is not used, and is removed")
    func savedCacheWithoutAHashIsNotUsed() async throws {
        let first = bonds()
        _ = await first.load(for: controller)
        #expect(await keep(.sample, in: first))
        await first.close()
        let name = try #require(cacheNames.first)
        try StateFile(directory: cacheDirectory, name: name).replace(with: Data(#"{"services":[]}"#.utf8))
        let second = bonds()
        let security = await second.load(for: controller)
        #expect(security == KeptSecurity.sample.withoutCaches)
        #expect(await keep(security, in: second))
        await second.close()
        #expect(cacheNames.isEmpty)
    }

    // MARK: Retired signing keys

    private func signingKey(_ value: UInt128, _ nextCounter: UInt32) -> SigningKey {
        SigningKey(value: value, isAuthenticated: false, nextCounter: nextCounter)
    }

    @Test("The counters of signing keys that no bond has any more are saved")
    func retiredSigningKeysAreSaved() async throws {
        var security = KeptSecurity.sample
        security.retiredSigningKeys.add(signingKey(7, 30))
        let bonds = bonds()
        _ = await bonds.load(for: controller)
        #expect(await keep(security, in: bonds))
        await bonds.close()
        let text = String(decoding: try #require(try file.read()).data, as: UTF8.self)
        #expect(text.contains(#""retiredSigningKeys""#))
        let warnings = Warnings()
        #expect(await load(warnings) == security)
        #expect(warnings.all == [])
    }

    @Test("A damaged signing key that was retired is reported once, and the others are used")
    func damagedRetiredSigningKeyIsReportedOnce() async throws {
        let good = #"{"value":"00000000000000000000000000000007","authenticated":false,"nextCounter":30}"#
        try file.replace(with: Data(#"{"format":1,"retiredSigningKeys":[{},\#(good)]}"#.utf8))
        let warnings = Warnings()
        let security = await load(warnings)
        #expect(security.retiredSigningKeys.keys == [signingKey(7, 30)])
        #expect(warnings.all.count == 1)
        #expect(warnings.all.first?.contains("retiredSigningKeys[0]") == true, "\(warnings.all)")
        #expect(await load(warnings) == security)
        #expect(warnings.all.count == 1)
    }

    @Test("A change outside a host keeps the counters of signing keys")
    func changeOutsideAHostKeepsCountersOfSigningKeys() async throws {
        func record(_ address: UInt64, _ key: SigningKey) -> BondRecord {
            var bond = Bond(identity: DeviceAddress(0xF000_0000_0000 + address, isRandom: true))
            bond.peerSigningKey = key
            return BondRecord(bond: bond)
        }
        let host = KeptHost("\(controller)", in: directory)
        let bonded = record(1, signingKey(7, 30))
        try await host.change(warn: recordIssue) { $0.bonds = [bonded] }
        try await host.change(warn: recordIssue) { $0.bonds = [] }
        let removed = try host.read(warn: recordIssue)
        #expect(removed.bonds.isEmpty && removed.retiredSigningKeys.keys == [signingKey(7, 30)])
        let export = BondExport(host: "hci0", security: KeptSecurity(bonds: [record(2, signingKey(7, 3))]))
        try await host.change(warn: recordIssue) { try export.add(to: &$0, takesIdentity: false) }
        #expect(try host.read(warn: recordIssue).bonds.map(\.bond.peerSigningKey) == [signingKey(7, 30)])
    }
}
