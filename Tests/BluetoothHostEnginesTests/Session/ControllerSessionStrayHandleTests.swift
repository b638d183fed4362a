import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("Handles without a link in a session")
struct ControllerSessionStrayHandleTests {
    private let handle = ConnectionHandle(0x0050)

    private func disconnect(_ handle: ConnectionHandle) -> SessionEffect {
        let command = Disconnect(connectionHandle: handle, reason: .remoteUserTerminatedConnection)
        return .send(SessionFixture.packet(command))
    }

    /// A session that has told the controller to end the link of ``handle``.
    private func fixtureThatEndsALink() -> SessionFixture {
        var fixture = SessionFixture.on()
        #expect(fixture.strayData(handle, at: fixture.now) == true)
        #expect(fixture.strayData(handle, at: fixture.now) == false)
        #expect(fixture.session.deadline == fixture.now + .seconds(1))
        #expect(fixture.advance(by: .milliseconds(999)) == [])
        #expect(fixture.advance(by: .milliseconds(1)) == [disconnect(handle)])
        return fixture
    }

    @Test func handleThatTheControllerDoesNotKnowIsIgnored() {
        var fixture = fixtureThatEndsALink()
        let (tag, effects) = fixture.answer(Disconnect.opcode, [0x02], isStatus: true)
        #expect(tag == .strayLink(handle) && effects == [])
        #expect(fixture.session.deadline == nil && fixture.session.strays.count == 1)
        #expect(fixture.strayData(handle, at: fixture.now + .seconds(60)) == false)
    }

    @Test func linkThatEndsIsForgotten() {
        var fixture = fixtureThatEndsALink()
        let effects = fixture.answer(Disconnect.opcode, [0], isStatus: true).effects
        #expect(effects == [.report(.endingUnknownLink(handle))])
        #expect(fixture.session.unknownLinkEnded(handle, at: fixture.now) == [.report(.unknownLinkEnded(handle))])
        #expect(fixture.session.strays.count == 0)
        #expect(fixture.advance(by: .seconds(1)) == [.restartRoles])
        #expect(fixture.session.deadline == nil)
    }

    @Test func linkThatDoesNotEndResetsTheController() {
        var fixture = fixtureThatEndsALink()
        _ = fixture.answer(Disconnect.opcode, [0], isStatus: true)
        #expect(fixture.session.deadline == fixture.now + .seconds(38))
        #expect(fixture.advance(by: .milliseconds(37_999)) == [])
        let effects = fixture.advance(by: .milliseconds(1))
        let reset = SessionEffect.send(SessionFixture.packet(Reset()))
        #expect(effects == [.lost(reason: "it did not end the link \(handle)"), reset])
        #expect(fixture.session.strays.count == 0)
    }

    @Test func linkThatBeginsIsNotEnded() {
        var fixture = SessionFixture.on()
        _ = fixture.strayData(handle, at: fixture.now)
        #expect(fixture.session.linkBegan(handle).effects == [])
        #expect(fixture.session.deadline == nil)
        #expect(fixture.advance(by: .seconds(2)) == [])
    }

    @Test func firstPacketsOfALateLinkAreKept() {
        var fixture = SessionFixture.on()
        for value: UInt8 in 0..<6 { _ = fixture.strayData(handle, [value, 7], at: fixture.now) }
        _ = fixture.strayData(0x0051, [9], at: fixture.now)
        #expect(fixture.session.linkBegan(handle).earlyPackets == [[0, 7], [1, 7], [2, 7], [3, 7]])
        #expect(fixture.session.linkBegan(handle).earlyPackets == [])
    }

    @Test func packetsAfterOneThatDoesNotFitAreLost() {
        var fixture = SessionFixture.on()
        let lengths = [1000, 25, 1]
        for length in lengths { _ = fixture.strayData(handle, Array(repeating: 0, count: length), at: fixture.now) }
        #expect(fixture.session.linkBegan(handle).earlyPackets.map(\.count) == [1000])
    }

    @Test func packetsOfALinkThatTheHostEndsAreNotKept() {
        var fixture = fixtureThatEndsALink()
        #expect(fixture.session.linkBegan(handle).earlyPackets == [])
    }

    @Test func answerForAHandleThatALinkHasByNowIsIgnored() {
        var fixture = fixtureThatEndsALink()
        #expect(fixture.session.linkBegan(handle).effects == [])
        #expect(fixture.answer(Disconnect.opcode, [0], isStatus: true).effects == [])
        #expect(fixture.session.deadline == nil && fixture.session.strays.count == 0)
    }

    @Test func dataOfALinkThatHasJustEndedIsExpected() {
        var fixture = SessionFixture.on()
        fixture.session.linkEnded(handle, at: fixture.now)
        #expect(fixture.strayData(handle, at: fixture.now + .milliseconds(1999)) == false)
        #expect(fixture.session.unknownLinkEnded(handle, at: fixture.now) == [])
        #expect(fixture.strayData(handle, at: fixture.now + .seconds(2)) == true)
    }

    @Test(arguments: [0x0F00, 0x0FFF] as [UInt16])
    func reservedHandleIsIgnored(value: UInt16) {
        var fixture = SessionFixture.on()
        #expect(fixture.strayData(ConnectionHandle(value), at: fixture.now) == false)
        #expect(fixture.session.unknownLinkEnded(ConnectionHandle(value), at: fixture.now) == [])
    }

    @Test func numberOfHandlesIsBounded() {
        var fixture = SessionFixture.on()
        for value in 0x0100..<0x0200 as Range<UInt16> {
            let isObserved = fixture.strayData(ConnectionHandle(value), at: fixture.now)
            #expect(isObserved == (value < 0x0110))
        }
        #expect(fixture.advance(by: .seconds(1)) == [disconnect(0x0100)])
        for value in 0x0101..<0x0110 as Range<UInt16> {
            let (tag, effects) = fixture.answer(Disconnect.opcode, [0x02], isStatus: true)
            #expect(tag == .strayLink(ConnectionHandle(value - 1)))
            #expect(effects == [disconnect(ConnectionHandle(value))])
        }
    }

    @Test func severalEndsCauseOneRestart() {
        var fixture = SessionFixture.on()
        for value in 0x0042...0x0045 as ClosedRange<UInt16> {
            _ = fixture.session.unknownLinkEnded(ConnectionHandle(value), at: fixture.now)
        }
        #expect(fixture.advance(by: .seconds(1)) == [.restartRoles])
        #expect(fixture.advance(by: .seconds(1)) == [])
    }

    @Test func aResetForgetsAllHandles() {
        var fixture = fixtureThatEndsALink()
        _ = fixture.strayData(0x0051, at: fixture.now)
        _ = fixture.session.unknownLinkEnded(0x0052, at: fixture.now)
        fixture.session.linkEnded(0x0053, at: fixture.now)
        fixture.now = fixture.now + .milliseconds(500)
        let effects = fixture.session.failed("test", at: fixture.now)
        #expect(effects == [.lost(reason: "test"), .send(SessionFixture.packet(Reset()))])
        #expect(fixture.session.strays.count == 0)
        // Neither data nor ends of links matter until the controller is up again.
        #expect(fixture.strayData(0x0051, at: fixture.now) == false)
        #expect(fixture.session.unknownLinkEnded(0x0052, at: fixture.now) == [])
        fixture.session.linkEnded(0x0053, at: fixture.now)
        _ = fixture.bringUp()
        #expect(fixture.session.deadline == nil)
        #expect(fixture.strayData(0x0053, at: fixture.now) == true)
    }
}
