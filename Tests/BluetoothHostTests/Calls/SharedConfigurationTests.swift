import BLEGATT
import BLEHCI
import BluetoothHost
import BluetoothTypes
import Testing

/// A Client Characteristic Configuration that subscriptions share with the subscribers of another API. That API writes
/// the configuration itself.
@Suite("A configuration that two APIs share")
struct SharedConfigurationTests {
    private func subscription(on link: LinkIdentifier) -> ValueSubscription {
        ValueSubscription(
            to: 3,
            on: link,
            configuration: 4,
            wanted: .notification,
            deliver: { _ in },
            ended: { _ in }
        )
    }

    @Test("If a subscribe call is cancelled while the other API has a subscriber, that subscriber's end clears it")
    func cancelledSubscriptionIsClearedWithTheLastSubscriber() throws {
        let calls = try CallFixture(role: .central)
        let (host, link) = (calls.host, calls.link)
        let other = try calls.fixture.run { try await host.addSubscriber(of: 3, on: link) { _ in } }
        let subscription = subscription(on: link)
        let (task, outcome) = calls.startTask { try await host.subscribe(subscription) }
        #expect(calls.drain() == [[0x12, 4, 0, 1, 0]])
        task.cancel()
        calls.fixture.loop.run(for: .milliseconds(1))
        #expect(outcome.all == [.cancelled])
        calls.receive([0x13])
        #expect(calls.drain().isEmpty, "the other API may want the values")
        try calls.fixture.run { await host.removeSubscriber(other, of: 3, on: link) }
        #expect(calls.drain() == [[0x12, 4, 0, 0, 0]])
    }

    @Test("If the other API clears it, the end of that API's subscriber does not clear it again")
    func configurationThatTheOtherAPIClearsIsClearedOnce() throws {
        let calls = try CallFixture(role: .central)
        let (host, link) = (calls.host, calls.link)
        let other = try calls.fixture.run { try await host.addSubscriber(of: 3, on: link) { _ in } }
        let subscription = subscription(on: link)
        let (_, start) = calls.startTask { try await host.subscribe(subscription) }
        _ = calls.drain()
        calls.receive([0x13])
        #expect(start.all == [nil])
        let (_, end) = calls.startTask { await host.unsubscribe(subscription) }
        #expect(calls.drain().isEmpty, "the other API may want the values")
        #expect(end.all == [nil])
        try calls.fixture.run {
            await host.isolated { host in
                host.configurationWillBeCleared(of: 3, on: link)
                host.begin(WriteValue(handle: 4, value: [0, 0]), on: link) { _ in }
            }
        }
        #expect(calls.drain() == [[0x12, 4, 0, 0, 0]])
        calls.receive([0x13])
        try calls.fixture.run { await host.removeSubscriber(other, of: 3, on: link) }
        #expect(calls.drain().isEmpty)
    }

    @Test("A subscriber of the other API that never shared it ends without a request")
    func subscriberAloneEndsWithoutARequest() throws {
        let calls = try CallFixture(role: .central)
        let (host, link) = (calls.host, calls.link)
        let other = try calls.fixture.run { try await host.addSubscriber(of: 3, on: link) { _ in } }
        try calls.fixture.run { await host.removeSubscriber(other, of: 3, on: link) }
        #expect(calls.drain().isEmpty)
    }

    @Test("After the last subscription has cleared it, nothing more is sent")
    func configurationIsClearedOnce() throws {
        let calls = try CallFixture(role: .central)
        let (host, link) = (calls.host, calls.link)
        let subscription = subscription(on: link)
        let (_, outcome) = calls.startTask { try await host.subscribe(subscription) }
        _ = calls.drain()
        calls.receive([0x13])
        #expect(outcome.all == [nil])
        let (_, end) = calls.startTask { await host.unsubscribe(subscription) }
        #expect(calls.drain() == [[0x12, 4, 0, 0, 0]])
        calls.receive([0x13])
        #expect(end.all == [nil])
        let other = try calls.fixture.run { try await host.addSubscriber(of: 3, on: link) { _ in } }
        try calls.fixture.run { await host.removeSubscriber(other, of: 3, on: link) }
        #expect(calls.drain().isEmpty)
    }
}

extension BluetoothHost {
    fileprivate func isolated(_ body: @Sendable (isolated BluetoothHost) -> Void) {
        body(self)
    }
}
