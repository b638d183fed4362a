import BLEATT
import BLEByteCoding
import BLEGATT
import BluetoothTypes
import Synchronization
import Testing

@testable import BluetoothHost

@Suite("How a router handles received PDUs")
struct ATTRouterTests {
    private struct Received {
        let inbound: ATTRouter.Inbound
        let written: [UInt8]
    }

    private func receive(
        _ pdu: [UInt8],
        _ fixture: ATTRouterFixture,
        isReplyUnsent: Bool = false,
        isConfirmationUnsent: Bool = false
    ) -> Received {
        var buffer = PacketBuffer()
        let inbound = fixture.router.receive(
            pdu.rawSpan,
            isReplyUnsent: isReplyUnsent,
            isConfirmationUnsent: isConfirmationUnsent,
            into: &buffer
        )
        return Received(inbound: inbound, written: [UInt8](copying: buffer.bytes))
    }

    @Test func requestWhileReplyIsUnsentIsDropped() throws {
        let fixture = try ATTRouterFixture()
        let first = receive([0x0A, 6, 0], fixture)
        guard case .server(.respond) = first.inbound else {
            Issue.record("\(first.inbound)")
            return
        }
        #expect(first.written == [0x0B, 0x2A])
        for pdu in [[0x0A, 6, 0], [0x3F], [0x0A] + [UInt8](repeating: 0, count: 40)] as [[UInt8]] {
            let second = receive(pdu, fixture, isReplyUnsent: true)
            guard case .dropped(let violation) = second.inbound else {
                Issue.record("\(second.inbound)")
                return
            }
            #expect(violation == .requestWhileBusy(opcode: pdu[0]) && violation.isFlooding)
            #expect(second.written.isEmpty)
        }
        #expect(receive([0x0A, 6, 0], fixture).written == [0x0B, 0x2A])
    }

    @Test func requestWhileAppIsAskedIsDropped() throws {
        let fixture = try ATTRouterFixture()
        fixture.receive([0x0A, 3, 0])
        #expect(fixture.accesses.count == 1)
        guard case .dropped(.requestWhileBusy(opcode: 0x0A)) = receive([0x0A, 6, 0], fixture).inbound else {
            Issue.record("the request is taken")
            return
        }
        fixture.answer(7)
        fixture.receive([0x0A, 6, 0])
        #expect(fixture.takeSent() == [[0x0B, 7], [0x0B, 0x2A]])
    }

    @Test func malformedIndicationIsDroppedAndTheNextIsTaken() throws {
        let fixture = try ATTRouterFixture()
        let malformed = receive([0x1D, 3], fixture)
        guard case .malformed(.handleValueIndication, _) = malformed.inbound else {
            Issue.record("\(malformed.inbound)")
            return
        }
        #expect(malformed.written.isEmpty)
        let next = receive([0x1D, 3, 0, 9], fixture)
        guard case .indication(3, offset: 3) = next.inbound else {
            Issue.record("\(next.inbound)")
            return
        }
        var buffer = PacketBuffer()
        fixture.router.confirm(3, into: &buffer)
        #expect([UInt8](copying: buffer.bytes) == [0x1E])
    }

    @Test func indicationWhileConfirmationIsUnsentIsDropped() throws {
        let fixture = try ATTRouterFixture()
        let inbound = receive([0x1D, 3, 0, 9], fixture, isConfirmationUnsent: true).inbound
        guard case .dropped(.indicationWhileBusy) = inbound else {
            Issue.record("\(inbound)")
            return
        }
        #expect(BearerViolation.indicationWhileBusy.isFlooding)
    }

    @Test func notificationsNameTheirValues() throws {
        let fixture = try ATTRouterFixture()
        guard case .notification(0x0102, offset: 3) = receive([0x1B, 2, 1, 9, 9], fixture).inbound,
            case .notification(0x0102, offset: 3) = receive([0x1B, 2, 1], fixture).inbound,
            case .notifications = receive([0x23, 2, 1, 0, 0], fixture).inbound,
            case .malformed(.handleValueNotification, _) = receive([0x1B, 2], fixture).inbound
        else {
            Issue.record("a notification is taken for another")
            return
        }
    }

    @Test func requestsThatTheServerCannotServeAreRefused() throws {
        let fixture = try ATTRouterFixture()
        let unknown = receive([0x3F], fixture)
        guard case .reply = unknown.inbound else {
            Issue.record("\(unknown.inbound)")
            return
        }
        #expect(unknown.written == [0x01, 0x3F, 0, 0, 0x06])
        let long = receive([0x12] + [UInt8](repeating: 0, count: 30), fixture)
        guard case .oversized(length: 31) = long.inbound else {
            Issue.record("\(long.inbound)")
            return
        }
        #expect(long.written == [0x01, 0x12, 0, 0, 0x04])
        guard case .done = receive([0x7F], fixture).inbound else {
            Issue.record("an unknown command is not ignored")
            return
        }
    }

    @Test func exchangeOfMTUHoldsForTheSession() throws {
        let fixture = try ATTRouterFixture()
        let malformed = receive([0x02], fixture)
        guard case .reply = malformed.inbound else {
            Issue.record("\(malformed.inbound)")
            return
        }
        #expect(malformed.written == [0x01, 0x02, 0, 0, 0x04])
        let exchange = receive([0x02, 50, 0], fixture)
        guard case .mtuChanged = exchange.inbound else {
            Issue.record("\(exchange.inbound)")
            return
        }
        #expect(exchange.written == [0x03, 100, 0])
        #expect(fixture.router.mtu == 50 && fixture.router.session.mtu == 50)
    }

    @Test func responseOfUnverifiedServerIsDropped() throws {
        let fixture = try ATTRouterFixture()
        let run = fixture.read(5)
        fixture.isGateOpen = false
        guard case .unverifiedResponse(nil) = receive([0x0B, 7], fixture).inbound else {
            Issue.record("the response is taken")
            return
        }
        fixture.takeClientEffects()
        #expect(fixture.effects == ["require security for 15"])
        #expect(!run.hasEnded)
        // The identity is verified, so the request is sent again.
        fixture.isGateOpen = true
        var buffer = PacketBuffer()
        #expect(fixture.router.securityElevated(nil, after: .insufficientEncryption, into: &buffer) == .readRequest)
        #expect([UInt8](copying: buffer.bytes) == [0x0A, 5, 0])
    }

    @Test func deadBearerEndsProceduresAndTakesNothing() throws {
        let fixture = try ATTRouterFixture()
        fixture.read(5)
        fixture.read(6)
        #expect(fixture.router.deadline == fixture.now + .seconds(30))
        #expect(fixture.router.advance(to: fixture.now + .seconds(29)) == false)
        #expect(fixture.router.advance(to: fixture.now + .seconds(30)) == true)
        #expect(fixture.router.advance(to: fixture.now + .seconds(31)) == false)
        fixture.takeClientEffects()
        #expect(fixture.takeEnded() == ["failed read 5", "failed read 6"])
        guard case .done = receive([0x0A, 6, 0], fixture).inbound else {
            Issue.record("a dead bearer takes a request")
            return
        }
        fixture.read(7)
        #expect(fixture.takeEnded() == ["failed read 7"])
    }

    @Test func secondExchangeOfMTUEndsTheProcedures() throws {
        let fixture = try ATTRouterFixture()
        fixture.submit(ExchangeMTU(offered: 100), "exchange 1")
        fixture.receive([0x03, 100, 0])
        fixture.submit(ExchangeMTU(offered: 100), "exchange 2")
        #expect(fixture.takeEnded() == ["exchange 1", "failed exchange 2"])
        #expect(fixture.takeSent().count == 1)
    }

    @Test func serverStateIsStoredOfVerifiedPeersOnly() throws {
        let fixture = try ATTRouterFixture()
        fixture.receive([0x12, 4, 0, 0, 0])
        #expect(fixture.effects.isEmpty)
        #expect(fixture.router.useBondedState(nil) == true)
        #expect(fixture.router.useBondedState(nil) == false)
        fixture.receive([0x12, 4, 0, 3, 0])
        #expect(fixture.effects == ["keep server state"])
    }

    @Test func stateOfAForgottenPeerIsNeitherUsedNorKept() throws {
        let fixture = try ATTRouterFixture()
        #expect(fixture.router.useBondedState(nil) == true)
        fixture.receive([0x12, 4, 0, 3, 0])
        fixture.router.forgetPeer()
        #expect(fixture.router.usesBondedState == false)
        #expect(fixture.router.session.persistentState.configurations == [])
        #expect(fixture.router.useBondedState(nil) == true)
    }

    @Test func subscriberThatIsRemovedDuringADeliveryTakesItsLastValue() {
        var subscribers = Subscribers()
        let value = HandleValue(handle: 3, value: [1], isIndication: false, time: Instant(nanoseconds: 0))
        let delivered = Mutex<[Int]>([])
        subscribers.add(1, of: 3) { _ in delivered.withLock { $0.append(1) } }
        subscribers.add(2, of: 3) { _ in delivered.withLock { $0.append(2) } }
        subscribers.setConfigured(3, by: 4)
        #expect(subscribers.count == 2 && subscribers[4].isEmpty)
        for subscriber in subscribers[3] {
            subscriber.deliver(value)
            _ = subscribers.remove(2, of: 3)
        }
        for subscriber in subscribers[3] { subscriber.deliver(value) }
        #expect(delivered.withLock { $0 } == [1, 2, 1])
        #expect(subscribers.removeConfiguration(of: 3) == nil, "there is a subscriber")
        _ = subscribers.remove(1, of: 3)
        #expect(subscribers[3].isEmpty)
        #expect(subscribers.removeConfiguration(of: 3) == 4)
        #expect(subscribers.removeConfiguration(of: 3) == nil, "it is cleared once")
        subscribers.setConfigured(3, by: 4)
        subscribers.forgetConfiguration(of: 3)
        #expect(subscribers.removeConfiguration(of: 3) == nil, "another API clears it")
    }
}
