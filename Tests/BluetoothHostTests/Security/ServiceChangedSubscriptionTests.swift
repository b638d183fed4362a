import BLEGATT
import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// Ends of subscriptions when the database has changed since, and of subscriptions to Service Changed itself. The value
/// handle of Service Changed is 3.
@Suite("Subscriptions and Service Changed")
struct ServiceChangedSubscriptionTests {
    private static let hashRequest: [UInt8] = [0x08, 1, 0, 0xFF, 0xFF, 0x2A, 0x2B]
    private static let noHash: [UInt8] = [0x01, 0x08, 1, 0, 0x0A]

    private let fixture: SecurityFixture
    private let link: LinkIdentifier

    /// Connects to the bonded server, whose cached database is valid.
    init() throws {
        fixture = try SecurityFixture(cacheHash: nil)
        link = try fixture.connect(.central)
        fixture.encryptionChanged()
        #expect(fixture.exchange(Self.noHash).isEmpty)
    }

    /// Subscribes to an attribute whose configuration has the next handle.
    private func subscribe(
        to handle: UInt8,
        _ wanted: ClientConfiguration = .notification
    ) throws -> ValueSubscription {
        let subscription = ValueSubscription(
            to: AttributeHandle(UInt16(handle)),
            on: link,
            configuration: AttributeHandle(UInt16(handle) + 1),
            wanted: wanted,
            deliver: { _ in },
            ended: { _ in }
        )
        fixture.controller.forgetData()
        let outcome = fixture.start { try await $0.subscribe(subscription) }
        #expect(fixture.sent(on: 4) == [[0x12, handle + 1, 0, UInt8(wanted.rawValue), 0]])
        _ = fixture.exchange([0x13])
        try #require(outcome.all.first).get()
        fixture.controller.forgetData()
        return subscription
    }

    /// Ends a subscription, and makes the server answer the client's request for the hash.
    ///
    /// - Returns: the ATT PDUs that the host sent.
    private func unsubscribe(_ subscription: ValueSubscription) -> [[UInt8]] {
        fixture.controller.forgetData()
        _ = fixture.start { await $0.unsubscribe(subscription) }
        return fixture.sent(on: 4) + fixture.exchange(Self.noHash)
    }

    private func writes(to handle: UInt8, in sent: [[UInt8]]) -> Int {
        sent.count { $0.starts(with: [0x12, handle]) }
    }

    @Test("A configuration in the range of Service Changed is not written again")
    func configurationThatHasChangedIsNotCleared() throws {
        let changed = try subscribe(to: 0x10)
        #expect(fixture.exchange([0x1D, 3, 0, 0x10, 0, 0x12, 0]) == [[0x1E], Self.hashRequest])
        #expect(writes(to: 0x11, in: unsubscribe(changed)) == 0)
    }

    @Test(
        "Another configuration is cleared",
        arguments: [
            // Handles that were not affected, an invalid range, and another attribute.
            [0x1D, 3, 0, 0x12, 0, 0xFF, 0xFF], [0x1D, 3, 0, 0xFF, 0xFF, 1, 0], [0x1D, 9, 0, 0x10, 0, 0x12, 0],
        ] as [[UInt8]]
    )
    func otherConfigurationIsCleared(indication: [UInt8]) throws {
        let subscription = try subscribe(to: 0x10)
        #expect(fixture.exchange(indication).first == [0x1E])
        #expect(writes(to: 0x11, in: unsubscribe(subscription)) == 1)
    }

    @Test("After Database Out Of Sync, no earlier configuration is written")
    func outOfSyncForgetsConfigurations() throws {
        let (subscription, link) = (try subscribe(to: 0x10), link)
        let read = fixture.start { try await $0.perform(ReadValue(handle: 0x10), on: link) }
        #expect(fixture.exchange([0x01, 0x0A, 0x10, 0, 0x12]) == [Self.hashRequest])
        #expect(read.all.count == 1)
        #expect(writes(to: 0x11, in: unsubscribe(subscription)) == 0)
    }

    @Test("The end of the app's subscription to Service Changed leaves the indications on, which the cache needs")
    func indicationsOfServiceChangedStayOn() throws {
        let subscription = try subscribe(to: 3, .indication)
        let ended = fixture.start { await $0.unsubscribe(subscription) }
        #expect(fixture.sent(on: 4).isEmpty)
        #expect(ended.all.count == 1)
        #expect(fixture.exchange([0x1D, 3, 0, 1, 0, 0xFF, 0xFF]) == [[0x1E], Self.hashRequest])
    }
}
