import BLEGATT
import BLEKeyStore
import BLESMP
import BluetoothHost
import BluetoothTypes
import Foundation
import Testing

@testable import BLE

@Suite("Caches and counters in the state directory")
struct BondCacheAndCounterTests {
    private let state = StateFixture()

    // MARK: Caches

    /// The names of the files with caches.
    private var cacheNames: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: state.caches)) ?? []
    }

    @Test("A cache without a hash is not saved, because the process may end before the cache is removed")
    func cacheWithoutAHashIsNotSaved() async {
        let bonds = state.bonds()
        _ = await bonds.load(for: state.controller)
        #expect(await bonds.saveAndWait(.sample))
        await bonds.close()
        #expect(cacheNames.count == 1)
        let next = state.bonds()
        var changed = await next.load(for: state.controller)
        #expect(changed == .sample)
        changed.bonds[1].clientCache?.hash = nil
        #expect(await next.saveAndWait(changed))
        await next.close()
        #expect(cacheNames.isEmpty)
        #expect(await state.load() == HostSecurityState.sample.withoutCaches)
    }

    @Test("A cache without a hash that an older version saved is not used, and is removed")
    func savedCacheWithoutAHashIsNotUsed() async throws {
        let first = state.bonds()
        _ = await first.load(for: state.controller)
        #expect(await first.saveAndWait(.sample))
        await first.close()
        let name = try #require(cacheNames.first)
        try StateFile(directory: state.caches, name: name).replace(with: Data(#"{"services":[]}"#.utf8))
        let second = state.bonds()
        let security = await second.load(for: state.controller)
        #expect(security == HostSecurityState.sample.withoutCaches)
        #expect(await second.saveAndWait(security))
        await second.close()
        #expect(cacheNames.isEmpty)
    }

    // MARK: Retired signing keys

    private func signingKey(_ value: UInt128, _ nextCounter: UInt32) -> SigningKey {
        SigningKey(value: value, isAuthenticated: false, nextCounter: nextCounter)
    }

    @Test("The counters of signing keys that no bond has any more are saved")
    func retiredSigningKeysAreSaved() async throws {
        var security = HostSecurityState.sample
        security.retiredSigningKeys.add(signingKey(7, 30))
        let bonds = state.bonds()
        _ = await bonds.load(for: state.controller)
        #expect(await bonds.saveAndWait(security))
        await bonds.close()
        let text = String(decoding: try #require(try state.file.read()).data, as: UTF8.self)
        #expect(text.contains(#""retiredSigningKeys""#))
        let warnings = Warnings()
        #expect(await state.load(warnings) == security)
        #expect(warnings.all == [])
    }

    @Test("A damaged signing key that was retired is reported once, and the others are used")
    func damagedRetiredSigningKeyIsReportedOnce() async throws {
        let good = #"{"value":"00000000000000000000000000000007","authenticated":false,"nextCounter":30}"#
        try state.file.replace(with: Data(#"{"format":1,"retiredSigningKeys":[{},\#(good)]}"#.utf8))
        let warnings = Warnings()
        let security = await state.load(warnings)
        #expect(security.retiredSigningKeys.keys == [signingKey(7, 30)])
        #expect(warnings.all.count == 1)
        #expect(warnings.all.first?.contains("retiredSigningKeys[0]") == true, "\(warnings.all)")
        #expect(await state.load(warnings) == security)
        #expect(warnings.all.count == 1)
    }

    @Test("A change outside a host keeps the counters of signing keys")
    func changeOutsideAHostKeepsCountersOfSigningKeys() async throws {
        func record(_ address: UInt64, _ key: SigningKey) -> BondRecord {
            var bond = Bond(identity: DeviceAddress(0xF000_0000_0000 + address, isRandom: true))
            bond.peerSigningKey = key
            return BondRecord(bond: bond)
        }
        let host = HostStateStore("\(state.controller)", in: state.directory)
        let bonded = record(1, signingKey(7, 30))
        try await host.change(warn: recordIssue) { $0.bonds = [bonded] }
        try await host.change(warn: recordIssue) { $0.bonds = [] }
        let removed = try host.read(warn: recordIssue)
        #expect(removed.bonds.isEmpty && removed.retiredSigningKeys.keys == [signingKey(7, 30)])
        let export = BondExport(host: "hci0", security: HostSecurityState(bonds: [record(2, signingKey(7, 3))]))
        try await host.change(warn: recordIssue) { try export.add(to: &$0, takesIdentity: false) }
        #expect(try host.read(warn: recordIssue).bonds.map(\.bond.peerSigningKey) == [signingKey(7, 30)])
    }
}
