import BLEATT
import BLEGATT
import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// A Service Changed indication that a bonded server sends before the link is encrypted. The host confirms it, so the
/// server does not repeat it.
@Suite("Service Changed before the server is verified")
struct EarlyServiceChangedTests {
    private static let hashRequest: [UInt8] = [0x08, 1, 0, 0xFF, 0xFF, 0x2A, 0x2B]
    private static let noHash: [UInt8] = [0x01, 0x08, 1, 0, 0x0A]

    /// A host with a bond whose cache has Service Changed with the value handle 3.
    private func fixture(hash: UInt128?) throws -> SecurityFixture {
        let fixture = try SecurityFixture()
        let serviceChanged = DiscoveredCharacteristic(
            uuid: .serviceChanged,
            handle: 2,
            valueHandle: 3,
            endHandle: 4,
            properties: .indicate
        )
        let service = DiscoveredService(
            uuid: .genericAttributeService,
            isPrimary: true,
            handle: 1,
            endHandle: 4,
            characteristics: [serviceChanged]
        )
        var record = BondRecord(bond: SecurityFixture.bond())
        record.clientCache = DatabaseCache(hash: hash, services: [service])
        try fixture.run { [record] in try $0.importBond(record) }
        return fixture
    }

    private func cache(in fixture: SecurityFixture) throws -> DatabaseCache? {
        try fixture.run { $0.bondRecords().first?.clientCache }
    }

    @Test("A cache without a hash is dropped, and the database is discovered again")
    func cacheWithoutAHashIsDropped() throws {
        let fixture = try fixture(hash: nil)
        try fixture.connect(.central)
        #expect(fixture.exchange([0x1D, 3, 0, 1, 0, 0xFF, 0xFF]) == [[0x1E]])
        #expect(try cache(in: fixture) != nil, "any device may have sent it")
        fixture.encryptionChanged()
        #expect(fixture.sent(on: 4).last == Self.hashRequest)
        #expect(try cache(in: fixture) == nil)
        #expect(fixture.exchange(Self.noHash).first?.first == 0x10)
    }

    @Test("Another indication leaves a cache without a hash valid")
    func otherIndicationLeavesTheCacheValid() throws {
        let fixture = try fixture(hash: nil)
        try fixture.connect(.central)
        #expect(fixture.exchange([0x1D, 9, 0, 1]) == [[0x1E]])
        fixture.encryptionChanged()
        #expect(fixture.exchange(Self.noHash).isEmpty)
        #expect(try cache(in: fixture) != nil)
    }

    @Test("A cache without a hash is dropped if more indications came than are remembered")
    func manyIndicationsDropTheCache() throws {
        let fixture = try fixture(hash: nil)
        try fixture.connect(.central)
        for handle: UInt8 in 10..<30 { #expect(fixture.exchange([0x1D, handle, 0, 1]) == [[0x1E]]) }
        fixture.encryptionChanged()
        #expect(fixture.exchange(Self.noHash).first?.first == 0x10)
    }

    @Test("After encryption has ended, an indication drops the cache only once the server is verified again")
    func indicationAfterTheEndOfEncryptionDropsTheCacheLater() throws {
        let fixture = try fixture(hash: nil)
        try fixture.connect(.central)
        fixture.encryptionChanged()
        #expect(fixture.exchange(Self.noHash).isEmpty)
        fixture.encryptionChanged(isOn: false)
        #expect(fixture.exchange([0x1D, 3, 0, 1, 0, 0xFF, 0xFF]) == [[0x1E]])
        #expect(try cache(in: fixture) != nil, "any device may have sent it")
        fixture.controller.forgetData()
        fixture.encryptionChanged()
        #expect(try cache(in: fixture) == nil)
        #expect(fixture.sent(on: 4) == [Self.hashRequest])
    }

    @Test("A cache with a hash stays, because the hash shows whether it is valid")
    func cacheWithAHashStays() throws {
        let fixture = try fixture(hash: 1)
        try fixture.connect(.central)
        #expect(fixture.exchange([0x1D, 3, 0, 1, 0, 0xFF, 0xFF]) == [[0x1E]])
        fixture.encryptionChanged()
        #expect(fixture.sent(on: 4).last == Self.hashRequest)
        let hash = [UInt8](repeating: 0, count: 15)
        #expect(fixture.exchange([0x09, 18, 5, 0, 1] + hash).isEmpty)
        #expect(try cache(in: fixture)?.hash == 1)
    }
}
