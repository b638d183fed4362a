import BLEGATT
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("Multiple Handle Value Notifications of a router")
struct MultipleNotificationTests {
    /// A router whose client takes these notifications, with an ATT_MTU of 23 bytes. Its outbound queue is full.
    private func fixture(takesThem: Bool = true) throws -> ATTRouterFixture {
        let fixture = try ATTRouterFixture(features: takesThem ? 0x04 : 0x01)
        fixture.room = 0
        return fixture
    }

    @Test func waitingNotificationsAreSentTogetherUpToTheMTU() throws {
        let fixture = try fixture()
        for number in 1...6 as ClosedRange<UInt8> { fixture.notify(number) }
        fixture.room = 10
        fixture.pump()
        let entries = { (numbers: ClosedRange<UInt8>) in numbers.flatMap { [3, 0, 1, 0, $0] as [UInt8] } }
        #expect(fixture.takeSent() == [[0x23] + entries(1...4), [0x23] + entries(5...6)])
        #expect(fixture.takeEnded() == (1...6).map { "notification \($0)" })
    }

    @Test func singleNotificationIsSentAsSuch() throws {
        let fixture = try fixture()
        fixture.notify(1)
        fixture.room = 10
        fixture.pump()
        fixture.notify(2)
        #expect(fixture.takeSent() == [[0x1B, 3, 0, 1], [0x1B, 3, 0, 2]])
    }

    @Test func clientWithoutTheFeatureGetsSingleNotifications() throws {
        let fixture = try fixture(takesThem: false)
        fixture.notify(1)
        fixture.notify(2)
        fixture.room = 10
        fixture.pump()
        #expect(fixture.takeSent() == [[0x1B, 3, 0, 1], [0x1B, 3, 0, 2]])
    }

    @Test func indicationAndOlderWriteEndTheList() throws {
        let fixture = try fixture()
        fixture.notify(1)
        fixture.notify(2)
        fixture.indicate(3)
        fixture.notify(4)
        fixture.write(5)
        fixture.notify(6)
        fixture.room = 10
        fixture.pump()
        let pair: [UInt8] = [0x23, 3, 0, 1, 0, 1, 3, 0, 1, 0, 2]
        #expect(fixture.takeSent() == [pair, [0x1D, 3, 0, 3], [0x1B, 3, 0, 4], [0x52, 9, 0, 5], [0x1B, 3, 0, 6]])
    }

    @Test func notificationsOfAClientThatHasUnsubscribedAreNotSent() throws {
        let fixture = try fixture()
        fixture.notify(1)
        fixture.notify(2)
        fixture.receive([0x12, 4, 0, 0, 0])
        _ = fixture.takeSent()
        fixture.room = 10
        fixture.pump()
        #expect(fixture.takeSent().isEmpty)
        #expect(fixture.takeEnded() == ["notification 1", "notification 2"])
    }
}
