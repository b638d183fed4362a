import BLEATT
import BluetoothTypes
import Foundation
import Testing

@testable import BLEGATT
@testable import CoreBluetooth

@Suite("A peripheral manager and the links of its centrals")
struct CentralLinkTests {
    private let fixture = PeripheralFixture()
    private let handle = PeripheralFixture.valueHandle
    /// The same central on a second link.
    private let second: RemoteCentral

    init() throws {
        second = RemoteCentral(link: .placeholder(2), identifier: fixture.remote.identifier, mtu: 100)
        try fixture.publish()
        _ = fixture.takeCalls()
    }

    private func update(_ value: UInt8) -> [ScriptedPeripheralBackend.Call] {
        fixture.manager.updateValue(Data([value]), for: fixture.characteristic, onSubscribedCentrals: nil)
        return fixture.takeCalls()
    }

    @Test("Equal request numbers on two links are answered separately")
    func requestsAreAnsweredOnTheirLinks() {
        var requests: [CBATTRequest] = []
        for (remote, offset) in [(fixture.remote, 1), (second, 2)] {
            let read = AccessRequest(identifier: 7, kind: .read(handle, offset: offset))
            fixture.deliver(.access(remote, read))
            requests += fixture.recorder.requests
        }
        for request in requests.reversed() {
            request.value = Data([UInt8(request.offset)])
            fixture.manager.respond(to: request, withResult: .success)
        }
        #expect(
            fixture.takeCalls() == [
                .answer(7, second.link, .success([2])), .answer(7, fixture.remote.link, .success([1])),
            ]
        )
        #expect(requests[0].central == requests[1].central)
    }

    @Test("The end of a central's earlier link does not end its current subscription")
    func formerLinkEndKeepsSubscription() {
        fixture.subscribe()
        #expect(update(1) == [.update([1], handle, [fixture.remote.link])])
        fixture.subscribe(second)
        #expect(fixture.takeTold() == ["subscribed 1", "unsubscribed 0", "subscribed 1"])
        #expect(update(2) == [.update([2], handle, [fixture.remote.link, second.link])])
        fixture.deliver(.disconnected(fixture.remote))
        #expect(fixture.takeTold().isEmpty)
        #expect(update(3) == [.update([3], handle, [second.link])])
        fixture.deliver(.disconnected(second))
        #expect(fixture.takeTold() == ["unsubscribed 0"])
        #expect(update(4).isEmpty)
    }

    @Test("Values that wait for one central refuse none to another one, and space for the first is reported")
    func valuesForOneCentralRefuseNoneToAnotherOne() {
        let other = RemoteCentral(link: .placeholder(3), identifier: UUID(), mtu: 185)
        fixture.subscribe()
        fixture.subscribe(other)
        let centrals = fixture.recorder.centrals
        _ = fixture.takeTold()
        let send = { (centrals: [CBCentral]?) in
            fixture.manager.updateValue(Data([1]), for: fixture.characteristic, onSubscribedCentrals: centrals)
        }
        for _ in 0..<CBPeripheralManager.updateLimit { #expect(send([centrals[0]])) }
        #expect(!send([centrals[0]]))
        #expect(send([centrals[1]]))
        #expect(send(nil))
        let done = Result<Void, BackendError>.success(())
        fixture.answer(.update([1], handle, [fixture.remote.link, other.link]), done)
        fixture.answer(.update([1], handle, [other.link]), done)
        #expect(fixture.takeTold().isEmpty)
        fixture.answer(.update([1], handle, [fixture.remote.link]), done)
        fixture.answer(.update([1], handle, [fixture.remote.link]), done)
        #expect(fixture.takeTold() == ["ready"])
    }

    @Test("A central on two links has the smaller maximum length, and is gone with the last link")
    func centralIsGoneWithItsLastLink() async {
        var changes = fixture.manager.linux.centralChanges.makeAsyncIterator()
        fixture.deliver(.connected(fixture.remote))
        let arrival = await changes.next()
        #expect(arrival?.isConnected == true && arrival?.central.maximumUpdateValueLength == 182)
        fixture.deliver(.connected(second))
        #expect(arrival?.central.maximumUpdateValueLength == 97)
        fixture.deliver(.disconnected(second))
        #expect(arrival?.central.maximumUpdateValueLength == 182)
        fixture.deliver(.disconnected(fixture.remote))
        let departure = await changes.next()
        #expect(departure?.isConnected == false && departure?.central == arrival?.central)
    }

    @Test("Subscriptions move to the central that a link is verified to have")
    func verifiedCentralTakesSubscriptionsOver() async {
        var changes = fixture.manager.linux.centralChanges.makeAsyncIterator()
        fixture.deliver(.connected(fixture.remote))
        fixture.subscribe()
        let verified = RemoteCentral(link: fixture.remote.link, identifier: UUID(), mtu: 185)
        fixture.deliver(.identified(verified, before: fixture.remote.identifier))
        #expect(fixture.takeTold() == ["subscribed 1", "unsubscribed 0", "subscribed 1"])
        #expect(fixture.recorder.centrals.map(\.identifier) == [fixture.remote.identifier, verified.identifier])
        #expect(fixture.characteristic.subscribedCentrals?.map(\.identifier) == [verified.identifier])
        #expect(update(1) == [.update([1], handle, [verified.link])])
        var told: [String] = []
        for _ in 1...3 {
            guard let change = await changes.next() else { break }
            told.append("\(change.isConnected) \(change.central.identifier == verified.identifier)")
        }
        #expect(told == ["true false", "false false", "true true"])
    }
}
