import BLEATT
import BLEGATT
import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// The database of a bonded server whose encryption has ended, if the policy does not require that the server verifies
/// its identity again. The client continues, although any device may answer.
@Suite("The database of a server that is not verified any more")
struct UnverifiedServerTests {
    private static let hashRequest: [UInt8] = [0x08, 1, 0, 0xFF, 0xFF, 0x2A, 0x2B]
    private static let noHash: [UInt8] = [0x01, 0x08, 1, 0, 0x0A]
    private static let serviceChanged: [UInt8] = [0x1D, 3, 0, 1, 0, 0xFF, 0xFF]
    private static let primaryServices: [UInt8] = [0x10, 1, 0, 0xFF, 0xFF, 0x00, 0x28]
    private static let secondaryServices: [UInt8] = [0x10, 1, 0, 0xFF, 0xFF, 0x01, 0x28]
    private static let noServices: [UInt8] = [0x01, 0x10, 1, 0, 0x0A]

    /// A central's link on which the server has verified its identity. The request for the Database Hash is in flight.
    private func verified() throws -> (SecurityFixture, LinkIdentifier) {
        let fixture = try SecurityFixture(cacheHash: nil) { $0.security.encryptsBondedLinks = false }
        let link = try fixture.connect(.central)
        verify(fixture, link)
        #expect(fixture.sent(on: 4) == [Self.hashRequest])
        return (fixture, link)
    }

    private func verify(_ fixture: SecurityFixture, _ link: LinkIdentifier) {
        _ = fixture.start { _ = try await $0.secure(link) }
        fixture.controller.forgetData()
        fixture.encryptionChanged()
    }

    @Test("A cache that the app discards is learned again, and a write without response does not wait")
    func discardedCacheDoesNotStopTheClient() throws {
        let (fixture, link) = try verified()
        #expect(fixture.exchange(Self.noHash).isEmpty, "the cache is valid")
        fixture.encryptionChanged(isOn: false)
        fixture.controller.forgetData()
        try fixture.run { $0.discardDatabaseCache(of: SecurityFixture.peer) }
        #expect(fixture.sent(on: 4) == [Self.hashRequest])
        let write = fixture.start { try await $0.writeWithoutResponse([1], to: 9, on: link) }
        #expect(write.all.count == 1)
        #expect(fixture.sent(on: 4).last == [0x52, 9, 0, 1])
    }

    @Test("A procedure that waits for the last request of the discovery is started")
    func endOfTheDiscoveryStartsTheNextProcedure() throws {
        let (fixture, link) = try verified()
        fixture.encryptionChanged(isOn: false)
        #expect(fixture.exchange(Self.serviceChanged) == [[0x1E]])
        #expect(fixture.exchange(Self.noHash) == [Self.hashRequest], "the cache is not valid any more")
        #expect(fixture.exchange(Self.noHash) == [Self.primaryServices])
        #expect(fixture.exchange(Self.noServices) == [Self.secondaryServices])
        let read = fixture.start { try await $0.perform(ReadValue(handle: 9), on: link) }
        #expect(fixture.exchange(Self.noServices) == [[0x0A, 9, 0]])
        _ = fixture.exchange([0x0B, 7])
        #expect(try read.all.first?.get() == [7])
    }

    @Test("A database that any device may have reported is learned again once the server is verified")
    func reportedDatabaseIsLearnedAgain() throws {
        let (fixture, link) = try verified()
        #expect(fixture.exchange(Self.noHash).isEmpty)
        fixture.encryptionChanged(isOn: false)
        #expect(fixture.exchange(Self.serviceChanged) == [[0x1E], Self.hashRequest])
        #expect(fixture.exchange(Self.noHash) == [Self.primaryServices])
        #expect(fixture.exchange(Self.noServices) == [Self.secondaryServices])
        #expect(fixture.exchange(Self.noServices).isEmpty)
        #expect(try fixture.storedCache?.services.isEmpty == false, "the report is not stored")
        verify(fixture, link)
        #expect(fixture.sent(on: 4) == [Self.hashRequest])
        #expect(try fixture.storedCache == nil)
    }

    @Test("A database of which any device may have reported a part is learned again once the server is verified")
    func partlyReportedDatabaseIsLearnedAgain() throws {
        let (fixture, link) = try verified()
        fixture.encryptionChanged(isOn: false)
        #expect(fixture.exchange(Self.noHash).isEmpty)
        verify(fixture, link)
        #expect(fixture.sent(on: 4) == [Self.hashRequest])
        #expect(fixture.exchange(Self.noHash) == [Self.primaryServices], "the cache is not used")
    }
}
