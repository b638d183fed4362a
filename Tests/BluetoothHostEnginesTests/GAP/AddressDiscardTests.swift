import BluetoothTypes
import Testing

@testable import BluetoothHost

private typealias Fixture = AddressPlanFixture

/// Vol 3, Part C, 10.6: private addresses are replaced when the encryption of a link has failed.
@Suite("Private addresses that are discarded")
struct AddressDiscardTests {
    private let peer1 = Fixture.peer(1)
    private let peer2 = Fixture.peer(2)

    @Test("Discarded addresses are replaced in the host, and in the controller for the entries of the link")
    func discardedAddressesAreReplaced() {
        var fixture = Fixture(isPrivate: true, GAPSample.information(listSize: 4))
        fixture.setPeers([2, 1])
        fixture.bringUp()
        let first = fixture.plan.privateAddress
        let isNew = fixture.discard([GAPSample.identity, peer1])
        #expect(isNew)
        let second = fixture.plan.privateAddress
        #expect(second != first)
        #expect(
            fixture.run() == [
                Fixture.random(second), Fixture.remove(GAPSample.identity), Fixture.remove(peer1),
                Fixture.add(GAPSample.identity, 0, Fixture.ownKey), Fixture.mode(GAPSample.identity),
                Fixture.add(peer1, 1, Fixture.ownKey), Fixture.mode(peer1),
            ]
        )
        #expect(fixture.run() == [])
    }

    @Test("Addresses that are discarded within 10 s of a replacement are replaced once, after these 10 s")
    func repeatedDiscardsArePostponed() {
        var fixture = Fixture(isPrivate: true, GAPSample.information(listSize: 4))
        fixture.setPeers([2, 1])
        fixture.bringUp()
        let isNew = fixture.discard([GAPSample.identity, peer1])
        #expect(isNew)
        fixture.run()
        let first = fixture.plan.privateAddress
        let early = fixture.advance(by: .seconds(4))
        #expect(!early)
        for peer in [peer1, Fixture.peer(3), peer2] {
            let isNew = fixture.discard([GAPSample.identity, peer])
            #expect(!isNew)
        }
        #expect(fixture.plan.deadline == fixture.now + .seconds(6))
        #expect(fixture.run() == [])
        let isDue = fixture.advance(by: .seconds(6))
        #expect(isDue && fixture.plan.privateAddress != first)
        #expect(fixture.plan.deadline == fixture.now + .seconds(900))
        let commands = fixture.run()
        #expect(commands.first == Fixture.random(fixture.plan.privateAddress))
        for identity in [GAPSample.identity, peer1, peer2] {
            #expect(commands.count { $0 == Fixture.remove(identity) } == 1)
        }
        // The postponed replacement counts as well.
        let again = fixture.discard([peer1])
        #expect(!again && fixture.plan.deadline == fixture.now + .seconds(10))
    }

    @Test("A reset of the controller replaces the addresses, so a postponed replacement is forgotten")
    func resetForgetsAPostponedReplacement() {
        var fixture = Fixture(isPrivate: true)
        fixture.bringUp()
        _ = fixture.discard([])
        _ = fixture.discard([])
        fixture.bringUp()
        #expect(fixture.plan.deadline == fixture.now + .seconds(900))
    }

    @Test("A host without private addresses discards none")
    func hostWithoutPrivateAddressesDiscardsNone() {
        var fixture = Fixture(GAPSample.information(listSize: 4))
        fixture.setPeers([1])
        fixture.bringUp()
        let isNew = fixture.discard([peer1])
        #expect(!isNew)
        #expect(fixture.run() == [])
    }
}
