import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The commands of a session")
struct ControllerSessionCommandTests {
    private let rssi: [UInt8] = [0x00, 0x40, 0x00, 0xC4]

    private func sent(_ request: CommandRequest) -> [SessionEffect] { [.send(request.packet)] }

    @Test func oneCommandIsSentAtATime() {
        var fixture = SessionFixture.on()
        let requests = (1...3).map { SessionFixture.request(by: $0) }
        #expect(fixture.session.submit(requests[0], at: fixture.now) == sent(requests[0]))
        for request in requests.dropFirst() { #expect(fixture.session.submit(request, at: fixture.now) == []) }
        #expect(fixture.session.commands.count == 3 && fixture.session.commands.callerCount == 3)
        for index in 0..<3 {
            // More credits do not put more commands in flight.
            let (tag, effects) = fixture.answer(ReadRSSI.opcode, rssi, credits: 5)
            #expect(tag == requests[index].tag)
            #expect(effects == (index < 2 ? sent(requests[index + 1]) : []))
        }
        #expect(fixture.session.commands.count == 0 && fixture.session.deadline == nil)
    }

    @Test func commandsWaitForACredit() {
        var fixture = SessionFixture.on()
        _ = fixture.session.submit(SessionFixture.request(by: 1), at: fixture.now)
        #expect(fixture.answer(ReadRSSI.opcode, rssi, credits: 0).tag == SessionFixture.tag(1))
        let request = SessionFixture.request(by: 2)
        #expect(fixture.session.submit(request, at: fixture.now) == [])
        #expect(fixture.session.deadline == fixture.now + .seconds(4))
        #expect(fixture.advance(by: .milliseconds(3999)) == [])
        // Command Complete with opcode 0 only returns credits.
        #expect(fixture.answer(.none, [], credits: 0).effects == [])
        #expect(fixture.session.deadline == fixture.now + .milliseconds(1))
        let (tag, effects) = fixture.answer(.none, [], credits: 1)
        #expect(tag == nil && effects == sent(request))
        #expect(fixture.session.deadline == fixture.now + .seconds(4))
    }

    @Test func commandsThatWaitForAnEarlierLinkFailWhenItsHandleIsUsedAgain() {
        var fixture = SessionFixture.on()
        let handle = ConnectionHandle(0x0040)
        let commands = [
            SessionFixture.request(Disconnect(connectionHandle: handle), by: 1),
            SessionFixture.request(ReadRSSI(connectionHandle: ConnectionHandle(0x0041)), by: 2),
            SessionFixture.request(Disconnect(connectionHandle: handle), by: 3),
            SessionFixture.request(Reset(), by: 4),
        ]
        for command in commands { _ = fixture.session.submit(command, at: fixture.now) }
        // The first one is in flight. The controller answers it for the earlier link.
        let failure = CommandFailure.status(.unknownConnectionIdentifier, Disconnect.opcode)
        #expect(fixture.session.linkBegan(handle).effects == [.commandFailed(SessionFixture.tag(3), failure)])
        #expect(fixture.session.commands.count == 3)
        #expect(fixture.answer(Disconnect.opcode, [0x00]).effects == sent(commands[1]))
        #expect(fixture.answer(ReadRSSI.opcode, [0x00, 0x41, 0x00, 0xC4]).effects == sent(commands[3]))
    }

    @Test func controllerThatAcceptsNoCommandIsReset() {
        var fixture = SessionFixture.on()
        #expect(fixture.answer(.none, [], credits: 0).effects == [])
        #expect(fixture.session.deadline == nil)
        fixture.now = fixture.now + .seconds(2)
        #expect(fixture.session.submit(SessionFixture.request(by: 1), at: fixture.now) == [])
        let effects = fixture.advance(by: .seconds(4))
        #expect(
            effects == [
                .report(.acceptsNoCommands), .commandFailed(SessionFixture.tag(1), .aborted),
                .lost(reason: "it accepts no commands"), .send(SessionFixture.packet(Reset())),
            ]
        )
    }

    @Test func commandOfABringUpIsSentWithoutACreditInTheEnd() {
        var fixture = SessionFixture.bringingUp(at: .readVersion)
        #expect(fixture.answer(credits: 0) == [])
        #expect(fixture.advance(by: .milliseconds(3999)) == [])
        let command = SessionFixture.packet(ReadLocalSupportedCommands())
        #expect(fixture.advance(by: .milliseconds(1)) == [.report(.acceptsNoCommands), .send(command)])
        #expect(fixture.bringUp().last == .finish(SessionFixture.call, nil))
    }

    @Test func duplicateAndUnexpectedAnswersAnswerNothing() {
        var fixture = SessionFixture.on()
        let (tag, effects) = fixture.answer(ReadRSSI.opcode, rssi)
        #expect(tag == nil && effects == [])
        _ = fixture.session.submit(SessionFixture.request(by: 1), at: fixture.now)
        #expect(fixture.answer(LEReadSupportedStates.opcode, [0]).tag == nil)
        #expect(fixture.answer(ReadRSSI.opcode, rssi).tag == SessionFixture.tag(1))
        #expect(fixture.answer(ReadRSSI.opcode, rssi).tag == nil)
        #expect(fixture.session.commands.count == 0)
    }

    @Test func commandStatusWithSuccessAnswersOnlyCommandsWithoutCommandComplete() {
        var fixture = SessionFixture.on()
        _ = fixture.session.submit(SessionFixture.request(by: 1), at: fixture.now)
        #expect(fixture.answer(ReadRSSI.opcode, [0], isStatus: true).tag == nil)
        #expect(fixture.answer(ReadRSSI.opcode, [0x02], isStatus: true).tag == SessionFixture.tag(1))
        let disconnect = Disconnect(connectionHandle: 0x0040, reason: .remoteUserTerminatedConnection)
        _ = fixture.session.submit(SessionFixture.request(disconnect, by: 2), at: fixture.now)
        #expect(fixture.answer(Disconnect.opcode, [0], isStatus: true).tag == SessionFixture.tag(2))
    }

    @Test func unansweredCommandResetsAControllerThatIsOn() {
        var fixture = SessionFixture.on()
        fixture.now = fixture.now + .seconds(60)
        _ = fixture.session.submit(CommandRequest(Reset(), .unawaited), at: fixture.now)
        _ = fixture.session.submit(SessionFixture.request(by: 1), at: fixture.now)
        let effects = fixture.advance(by: .seconds(4))
        #expect(
            effects == [
                .report(.unanswered(Reset.opcode)), .commandFailed(.unawaited, .timedOut(Reset.opcode)),
                .commandFailed(SessionFixture.tag(1), .aborted),
                .lost(reason: "it did not answer \(Reset.opcode)"), .send(SessionFixture.packet(Reset())),
            ]
        )
        #expect(fixture.session.power == .recovering && fixture.step == .reset)
    }

    @Test func unansweredCommandOfACallerDoesNotEndABringUp() {
        var fixture = SessionFixture.bringingUp(at: .prepareAddresses)
        _ = fixture.session.submit(SessionFixture.request(by: 1), at: fixture.now)
        let other = SessionFixture.request(by: 2)
        _ = fixture.session.submit(other, at: fixture.now)
        let effects = fixture.advance(by: .seconds(4))
        let failed = SessionEffect.commandFailed(SessionFixture.tag(1), .timedOut(ReadRSSI.opcode))
        #expect(effects == [.report(.unanswered(ReadRSSI.opcode)), failed, .send(other.packet)])
        #expect(fixture.step == .prepareAddresses)
    }

    @Test func commandWithoutATransportFailsAtOnce() {
        let failed = SessionEffect.commandFailed(SessionFixture.tag(1), .aborted)
        let request = SessionFixture.request(by: 1)
        var fixture = SessionFixture()
        #expect(fixture.session.submit(request, at: fixture.now) == [failed])
        fixture = SessionFixture.on()
        _ = fixture.session.transportEnded("test", at: fixture.now)
        #expect(fixture.session.submit(request, at: fixture.now) == [failed])
        _ = fixture.session.end()
        #expect(fixture.session.submit(request, at: fixture.now) == [failed])
        #expect(fixture.session.commands.count == 0)
    }

    @Test func controllerWhoseEventsCauseTooManyCommandsIsReset() {
        var fixture = SessionFixture.on()
        fixture.now = fixture.now + .seconds(60)
        let request = CommandRequest(LELongTermKeyRequestNegativeReply(connectionHandle: 0x0040), .unawaited)
        #expect(fixture.session.submit(request, at: fixture.now) == sent(request))
        for _ in 1...CommandQueue.eventLimit { _ = fixture.session.submit(request, at: fixture.now) }
        #expect(fixture.session.deadline == fixture.now + .seconds(4))
        let dropped = SessionEffect.commandFailed(.unawaited, .aborted)
        for _ in 1...3 { #expect(fixture.session.submit(request, at: fixture.now) == [dropped]) }
        #expect(fixture.session.commands.count == CommandQueue.eventLimit + 1)
        #expect(fixture.session.deadline == fixture.now)
        let effects = fixture.advance(by: .zero)
        #expect(effects.prefix(while: { $0 == dropped }).count == CommandQueue.eventLimit + 1)
        let reason = "it has caused more than \(CommandQueue.eventLimit) commands that wait"
        #expect(effects.suffix(2) == [.lost(reason: reason), .send(SessionFixture.packet(Reset()))])
        #expect(fixture.session.power == .recovering)
    }

    @Test func commandsOfThePauseBeforeARecoveryDoNotDelayIt() {
        var fixture = SessionFixture.on()
        _ = fixture.session.failed("test", at: fixture.now)
        let requests = (1...2).map { SessionFixture.request(by: $0) }
        #expect(fixture.session.submit(requests[0], at: fixture.now) == sent(requests[0]))
        #expect(fixture.session.submit(requests[1], at: fixture.now) == [])
        let failed = requests.map { SessionEffect.commandFailed($0.tag, .aborted) }
        #expect(fixture.advance(by: .seconds(1)) == failed + sent(CommandRequest(Reset(), .unawaited)))
    }

    @Test func commandsOfCallersAreNotLimited() {
        var fixture = SessionFixture.on()
        let count = UInt32(2 * CommandQueue.eventLimit)
        for caller in 1...count { _ = fixture.session.submit(SessionFixture.request(by: caller), at: fixture.now) }
        let answer = CommandRequest(LELongTermKeyRequestNegativeReply(connectionHandle: 0x0040), .unawaited)
        #expect(fixture.session.submit(answer, at: fixture.now) == [])
        #expect(fixture.session.commands.count == Int(count) + 1)
        #expect(fixture.session.deadline == fixture.now + .seconds(4))
    }

    @Test func earlyTimerDoesNothing() {
        var fixture = SessionFixture.on()
        _ = fixture.session.submit(SessionFixture.request(by: 1), at: fixture.now)
        for _ in 0..<3 { #expect(fixture.advance(by: .seconds(1)) == []) }
        #expect(fixture.session.deadline == fixture.now + .seconds(1))
    }

    @Test func refusedEventsAreInNoLaterMask() throws {
        let refusal = CommandFailure.status(.invalidHCICommandParameters, LESetEventMask.opcode)
        var fixture = SessionFixture.on()
        let initial = try #require(fixture.session.information?.leEvents)
        #expect(fixture.session.enable([.connectionComplete, .subrateChange]) == .subrateChange)
        let step = GAPStep(plan: .synchronization, number: 1)
        fixture.session.enable([.subrateChange, .periodicAdvertisingReport], by: step)
        #expect(
            fixture.session.information?.leEvents == initial.union([.subrateChange, .periodicAdvertisingReport])
        )
        fixture.session.planCommandEnded(step, refusal)
        #expect(fixture.session.information?.leEvents == initial.union(.subrateChange), "an earlier mask has it")
        fixture.session.enablingFailed(.subrateChange, refusal)
        #expect(fixture.session.information?.leEvents == initial)
        // The command of the plan has ended before.
        _ = fixture.session.enable(.periodicAdvertisingReport)
        fixture.session.planCommandEnded(step, refusal)
        #expect(fixture.session.information?.leEvents == initial.union(.periodicAdvertisingReport))
    }

    @Test(arguments: [nil, .aborted, .timedOut(LESetEventMask.opcode)] as [CommandFailure?])
    func eventsStayEnabledUnlessTheControllerRefusesThem(failure: CommandFailure?) {
        var fixture = SessionFixture.on()
        let step = GAPStep(plan: .advertising, number: 1)
        fixture.session.enable(.subrateChange, by: step)
        fixture.session.planCommandEnded(step, failure)
        #expect(fixture.session.information?.leEvents.contains(.subrateChange) == true)
        let refusal = CommandFailure.status(.invalidHCICommandParameters, LESetEventMask.opcode)
        fixture.session.planCommandEnded(step, refusal)
        #expect(fixture.session.information?.leEvents.contains(.subrateChange) == true, "the command has ended")
    }

    @Test func refusedOrMalformedReplyThrowsItsFailure() throws {
        #expect(try ReadRSSI.decodeReply(rssi.rawSpan).rssi == -60)
        #expect(throws: CommandFailure.status(.unknownConnectionIdentifier, ReadRSSI.opcode)) {
            try ReadRSSI.decodeReply([0x02].rawSpan)
        }
        let malformed = CommandFailure.malformedReply(ReadRSSI.opcode, .truncated(needed: 2, available: 1))
        #expect(throws: malformed) { try ReadRSSI.decodeReply([0x00, 0x40].rawSpan) }
    }
}
