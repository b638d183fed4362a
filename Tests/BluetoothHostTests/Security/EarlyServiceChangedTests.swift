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

    @Test("A cache without a hash is dropped, and the database is discovered again")
    func cacheWithoutAHashIsDropped() throws {
        let fixture = try SecurityFixture(cacheHash: nil)
        try fixture.connect(.central)
        #expect(fixture.exchange([0x1D, 3, 0, 1, 0, 0xFF, 0xFF]) == [[0x1E]])
        #expect(try fixture.storedCache != nil, "any device may have sent it")
        fixture.encryptionChanged()
        #expect(fixture.sent(on: 4).last == Self.hashRequest)
        #expect(try fixture.storedCache == nil)
        #expect(fixture.exchange(Self.noHash).first?.first == 0x10)
    }

    @Test("Another indication leaves a cache without a hash valid")
    func otherIndicationLeavesTheCacheValid() throws {
        let fixture = try SecurityFixture(cacheHash: nil)
        try fixture.connect(.central)
        #expect(fixture.exchange([0x1D, 9, 0, 1]) == [[0x1E]])
        fixture.encryptionChanged()
        #expect(fixture.exchange(Self.noHash).isEmpty)
        #expect(try fixture.storedCache != nil)
    }

    @Test("A cache without a hash is dropped if more indications came than are remembered")
    func manyIndicationsDropTheCache() throws {
        let fixture = try SecurityFixture(cacheHash: nil)
        try fixture.connect(.central)
        for handle: UInt8 in 10..<30 { #expect(fixture.exchange([0x1D, handle, 0, 1]) == [[0x1E]]) }
        fixture.encryptionChanged()
        #expect(fixture.exchange(Self.noHash).first?.first == 0x10)
    }

    @Test("After encryption has ended, an indication drops the cache only once the server is verified again")
    func indicationAfterTheEndOfEncryptionDropsTheCacheLater() throws {
        let fixture = try SecurityFixture(cacheHash: nil)
        try fixture.connect(.central)
        fixture.encryptionChanged()
        #expect(fixture.exchange(Self.noHash).isEmpty)
        fixture.encryptionChanged(isOn: false)
        #expect(fixture.exchange([0x1D, 3, 0, 1, 0, 0xFF, 0xFF]) == [[0x1E]])
        #expect(try fixture.storedCache != nil, "any device may have sent it")
        fixture.controller.forgetData()
        fixture.encryptionChanged()
        #expect(try fixture.storedCache == nil)
        #expect(fixture.sent(on: 4) == [Self.hashRequest])
    }

    @Test("After encryption has ended, an indication drops the cache when the link ends")
    func indicationAfterTheEndOfEncryptionDropsTheCacheWithTheLink() throws {
        let fixture = try SecurityFixture(cacheHash: nil)
        try fixture.connect(.central)
        fixture.encryptionChanged()
        #expect(fixture.exchange(Self.noHash).isEmpty)
        fixture.encryptionChanged(isOn: false)
        #expect(fixture.exchange([0x1D, 3, 0, 1, 0, 0xFF, 0xFF]) == [[0x1E]])
        fixture.disconnected()
        #expect(try fixture.storedCache == nil, "the server does not repeat the indication")
        try fixture.connect(.central)
        fixture.encryptionChanged()
        #expect(fixture.sent(on: 4).last == Self.hashRequest)
        #expect(fixture.exchange(Self.noHash).first?.first == 0x10)
    }

    @Test(
        "The end of a link on which the server was never verified drops a cache without a hash",
        arguments: [nil, 1] as [UInt128?]
    )
    func endOfTheLinkDropsTheCache(hash: UInt128?) throws {
        let fixture = try SecurityFixture(cacheHash: hash)
        try fixture.connect(.central)
        #expect(fixture.exchange([0x1D, 3, 0, 1, 0, 0xFF, 0xFF]) == [[0x1E]])
        #expect(try fixture.storedCache != nil)
        fixture.disconnected()
        #expect(try (fixture.storedCache == nil) == (hash == nil), "a hash shows whether the cache is valid")
    }

    @Test("The end of a link without an indication of Service Changed keeps the cache")
    func endOfTheLinkKeepsTheCache() throws {
        let fixture = try SecurityFixture(cacheHash: nil)
        try fixture.connect(.central)
        #expect(fixture.exchange([0x1D, 9, 0, 1]) == [[0x1E]])
        fixture.disconnected()
        #expect(try fixture.storedCache != nil)
    }

    @Test("A cache with a hash stays, because the hash shows whether it is valid")
    func cacheWithAHashStays() throws {
        let fixture = try SecurityFixture(cacheHash: 1)
        try fixture.connect(.central)
        #expect(fixture.exchange([0x1D, 3, 0, 1, 0, 0xFF, 0xFF]) == [[0x1E]])
        fixture.encryptionChanged()
        #expect(fixture.sent(on: 4).last == Self.hashRequest)
        let hash = [UInt8](repeating: 0, count: 15)
        #expect(fixture.exchange([0x09, 18, 5, 0, 1] + hash).isEmpty)
        #expect(try fixture.storedCache?.hash == 1)
    }
}
