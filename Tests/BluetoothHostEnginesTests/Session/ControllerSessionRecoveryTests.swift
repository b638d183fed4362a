import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("Recovery and end of a session")
struct ControllerSessionRecoveryTests {
    private let call = SessionFixture.call
    private let reset = SessionEffect.send(SessionFixture.packet(Reset()))

    // MARK: Recovery

    @Test func controllerThatFailsIsResetAtOnce() throws {
        var fixture = SessionFixture.on()
        let before = fixture.session.generation
        fixture.now = fixture.now + .seconds(5)
        #expect(fixture.session.failed("test", at: fixture.now) == [.lost(reason: "test"), reset])
        #expect(fixture.session.power == .recovering && fixture.session.generation == before + 1)
        // It remains known what the controller was.
        let properties = fixture.session.information
        let information = try #require(properties)
        #expect(fixture.bringUp().suffix(1) == [.ready(information)])
        #expect(fixture.session.power == .on)
    }

    @Test func commandsFailBeforeTheLossIsReported() {
        var fixture = SessionFixture.on()
        fixture.now = fixture.now + .seconds(5)
        for caller in 1...2 as ClosedRange<UInt32> {
            _ = fixture.session.submit(SessionFixture.request(by: caller), at: fixture.now)
        }
        let effects = fixture.session.failed("test", at: fixture.now)
        let failed = (1...2).map { SessionEffect.commandFailed(SessionFixture.tag($0), .aborted) }
        #expect(effects == failed + [.lost(reason: "test"), reset])
    }

    @Test func commandOfOthersDuringABringUpFails() {
        var fixture = SessionFixture.on()
        fixture.now = fixture.now + .seconds(5)
        _ = fixture.session.failed("test", at: fixture.now)
        let late = fixture.session.submit(SessionFixture.request(by: 1), at: fixture.now)
        #expect(late == [.commandFailed(SessionFixture.tag(1), .aborted)])
        #expect(fixture.session.commands.count == 1)
    }

    @Test func lostTransportIsOpenedAgain() {
        var fixture = SessionFixture.on()
        fixture.now = fixture.now + .seconds(5)
        let effects = fixture.session.transportEnded("lost", at: fixture.now)
        #expect(effects == [.lost(reason: "lost"), .openTransport(generation: fixture.session.generation)])
        #expect(fixture.session.transportEnded("lost", at: fixture.now) == [])
        #expect(fixture.session.transportOpened(at: fixture.now) == [reset])
        #expect(fixture.bringUp().count > 0 && fixture.session.power == .on)
    }

    @Test func controllerThatFailsRightAwayIsResetAfterAPause() {
        var fixture = SessionFixture.on()
        fixture.now = fixture.now + .milliseconds(999)
        #expect(fixture.session.failed("test", at: fixture.now) == [.lost(reason: "test")])
        #expect(fixture.session.power == .recovering)
        // Further errors do not matter.
        #expect(fixture.session.failed("test", at: fixture.now) == [])
        #expect(fixture.session.deadline == fixture.now + .milliseconds(200))
        #expect(fixture.advance(by: .milliseconds(199)) == [])
        #expect(fixture.advance(by: .milliseconds(1)) == [reset])
    }

    @Test func transportThatIsLostInAPauseIsOpenedAfterIt() {
        var fixture = SessionFixture.on()
        _ = fixture.session.failed("test", at: fixture.now)
        #expect(fixture.session.transportEnded("lost", at: fixture.now) == [])
        let effects = fixture.advance(by: .milliseconds(200))
        #expect(effects == [.openTransport(generation: fixture.session.generation)])
    }

    /// Expects that each attempt of a recovery fails, with these pauses between them.
    private func expectPauses(_ milliseconds: [Int], _ fixture: inout SessionFixture) {
        for pause in milliseconds {
            let delay = Duration.milliseconds(pause)
            let effects = fixture.session.transportNotOpened("test", at: fixture.now)
            #expect(effects == [.report(.willRetry(reason: "test", after: delay))])
            #expect(fixture.session.deadline == fixture.now + delay)
            let next = fixture.advance(by: delay)
            #expect(next == [.openTransport(generation: fixture.session.generation)])
        }
    }

    @Test func pauseGrowsToHalfAMinute() {
        var fixture = SessionFixture.on()
        fixture.now = fixture.now + .seconds(31)
        _ = fixture.session.transportEnded("lost", at: fixture.now)
        let pauses = [100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000]
        expectPauses(pauses, &fixture)
        _ = fixture.session.transportOpened(at: fixture.now)
        _ = fixture.bringUp()
        #expect(fixture.session.power == .on)
    }

    @Test func pauseIsShortAgainAfterHalfAMinuteOfWork() {
        var fixture = SessionFixture.on()
        // The first bring-up has doubled the pause.
        fixture.now = fixture.now + .seconds(30)
        _ = fixture.session.transportEnded("lost", at: fixture.now)
        expectPauses([200, 400], &fixture)
        _ = fixture.session.transportOpened(at: fixture.now)
        _ = fixture.bringUp()
        fixture.now = fixture.now + .milliseconds(30_001)
        _ = fixture.session.transportEnded("lost", at: fixture.now)
        expectPauses([100, 200], &fixture)
    }

    @Test func controllerThatIsThereAgainIsOpenedAtOnce() {
        var fixture = SessionFixture.on()
        fixture.now = fixture.now + .seconds(31)
        _ = fixture.session.transportEnded("lost", at: fixture.now)
        expectPauses([100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600], &fixture)
        _ = fixture.session.transportNotOpened("test", at: fixture.now)
        #expect(fixture.session.deadline == fixture.now + .seconds(30))
        fixture.now = fixture.now + .seconds(1)
        let opening = SessionEffect.openTransport(generation: fixture.session.generation + 1)
        #expect(fixture.session.retry(at: fixture.now) == [opening])
        // A return during an attempt does not start another one. The pause after this one is short again.
        #expect(fixture.session.retry(at: fixture.now) == [])
        expectPauses([100, 200], &fixture)
        _ = fixture.session.transportOpened(at: fixture.now)
        _ = fixture.bringUp()
        #expect(fixture.session.power == .on)
    }

    @Test func returnDoesNotMatterUnlessTheControllerWasLost() {
        var fixture = SessionFixture()
        #expect(fixture.session.retry(at: fixture.now) == [])
        _ = fixture.begin()
        #expect(fixture.session.retry(at: fixture.now) == [])
        _ = fixture.bringUp()
        #expect(fixture.session.retry(at: fixture.now) == [] && fixture.session.power == .on)
        _ = fixture.session.failed("test", at: fixture.now)
        _ = fixture.session.close()
        #expect(fixture.session.retry(at: fixture.now) == [])
        #expect(fixture.session.end() == [.closeTransport])
        expectClosed(&fixture)
    }

    @Test(arguments: SessionFixture.steps.map(\.step).filter { !$0.isOptional && $0 != .readClassicBuffers })
    private func unansweredStepOfARecoveryClosesTheTransport(step: BringUpStep) throws {
        var fixture = SessionFixture.on()
        fixture.now = fixture.now + .seconds(31)
        _ = fixture.session.failed("test", at: fixture.now)
        _ = fixture.bringUp(until: step)
        let opcode = try #require(fixture.session.commands.opcodeInFlight)
        let effects = fixture.advance(by: .seconds(4))
        let retry = SessionReport.willRetry(reason: "\(CommandFailure.timedOut(opcode))", after: .milliseconds(100))
        #expect(effects == [.report(.unanswered(opcode)), .report(retry), .closeTransport])
        #expect(fixture.answer(opcode, fixture.reply(to: opcode)).effects == [])
        let next = fixture.advance(by: .milliseconds(100))
        #expect(next == [.openTransport(generation: fixture.session.generation)])
        #expect(fixture.session.transportOpened(at: fixture.now) == [reset])
    }

    @Test func errorDuringARecoveryClosesTheTransport() {
        var fixture = SessionFixture.on()
        fixture.now = fixture.now + .seconds(31)
        _ = fixture.session.failed("test", at: fixture.now)
        _ = fixture.bringUp(until: .setEventMask)
        let effects = fixture.session.failed("again", at: fixture.now)
        let retry = SessionReport.willRetry(
            reason: "\(HostError.controllerFailed("again"))",
            after: .milliseconds(100)
        )
        #expect(effects == [.report(.failedDuringBringUp(reason: "again")), .report(retry), .closeTransport])
    }

    // MARK: End

    private func expectClosed(_ fixture: inout SessionFixture) {
        #expect(fixture.session.power == .closed && fixture.session.deadline == nil)
        #expect(!fixture.session.isTransportOpen && fixture.session.commands.count == 0)
        let generation = fixture.session.generation
        #expect(fixture.session.awaitsTransport(generation) == false)
        #expect(fixture.session.failed("test", at: fixture.now) == [])
        #expect(fixture.session.transportEnded("lost", at: fixture.now) == [])
        #expect(fixture.session.transportOpened(at: fixture.now) == [])
        #expect(fixture.session.addressesPrepared(nil, at: fixture.now) == [])
        #expect(fixture.advance(by: .seconds(100)) == [])
    }

    @Test func closeWhileOffHasNothingToEnd() {
        var fixture = SessionFixture()
        #expect(fixture.session.close() == false)
        #expect(fixture.session.end() == [])
        expectClosed(&fixture)
    }

    @Test func closeWhileTheTransportIsOpenedFailsTheStart() {
        var fixture = SessionFixture()
        _ = fixture.session.start(call)
        #expect(fixture.session.close() == false)
        #expect(fixture.session.power == .closed)
        #expect(fixture.session.end() == [.finish(call, .closed)])
        expectClosed(&fixture)
    }

    @Test(arguments: SessionFixture.steps.map(\.step).filter { $0 != .readClassicBuffers })
    private func closeDuringTheFirstBringUpFailsTheStart(step: BringUpStep) {
        var fixture = SessionFixture.bringingUp(at: step)
        #expect(fixture.session.close() == false)
        #expect(fixture.session.end() == [.closeTransport, .finish(call, .closed)])
        expectClosed(&fixture)
    }

    @Test(arguments: [BringUpStep.loadBonds, .prepareAddresses])
    private func closeDuringAStepOfTheCallerFailsCommandsAndTheStart(step: BringUpStep) {
        var fixture = SessionFixture.bringingUp(at: step)
        _ = fixture.session.submit(SessionFixture.request(by: 1), at: fixture.now)
        #expect(fixture.session.close() == false)
        let failed = SessionEffect.commandFailed(SessionFixture.tag(1), .aborted)
        #expect(fixture.session.end() == [failed, .closeTransport, .finish(call, .closed)])
        #expect(fixture.session.bondsLoaded(identity: SessionFixture.identity, obstacle: nil, at: fixture.now) == [])
        expectClosed(&fixture)
    }

    @Test func closeInAPauseClosesTheTransport() {
        var fixture = SessionFixture.on()
        _ = fixture.session.failed("test", at: fixture.now)
        #expect(fixture.session.close() == false)
        #expect(fixture.session.deadline == nil)
        #expect(fixture.session.end() == [.closeTransport])
        expectClosed(&fixture)
    }

    @Test func closeWhileOnLetsTheCallerResetTheController() {
        var fixture = SessionFixture.on()
        _ = fixture.strayData(0x0050, at: fixture.now)
        #expect(fixture.session.close() == true)
        #expect(fixture.session.power == .closed && fixture.session.deadline == nil)
        // The caller still ends links and resets the controller. Errors no longer matter.
        #expect(fixture.session.submit(SessionFixture.request(Reset(), by: 1), at: fixture.now) == [reset])
        #expect(fixture.session.failed("test", at: fixture.now) == [])
        #expect(fixture.strayData(0x0050, at: fixture.now) == false)
        #expect(fixture.answer(Reset.opcode, [0]).tag == SessionFixture.tag(1))
        #expect(fixture.session.end() == [.closeTransport])
        expectClosed(&fixture)
    }

    @Test func controllerThatDoesNotAnswerWhileClosingIsClosed() {
        var fixture = SessionFixture.on()
        _ = fixture.session.close()
        _ = fixture.session.submit(SessionFixture.request(Reset(), by: 1), at: fixture.now)
        let failed = SessionEffect.commandFailed(SessionFixture.tag(1), .timedOut(Reset.opcode))
        #expect(fixture.advance(by: .seconds(4)) == [.report(.unanswered(Reset.opcode)), failed])
        #expect(fixture.session.end() == [.closeTransport])
        expectClosed(&fixture)
    }

    @Test func transportThatIsLostWhileClosingFailsTheCommands() {
        var fixture = SessionFixture.on()
        _ = fixture.session.close()
        _ = fixture.session.submit(SessionFixture.request(Reset(), by: 1), at: fixture.now)
        let failed = SessionEffect.commandFailed(SessionFixture.tag(1), .aborted)
        #expect(fixture.session.transportEnded("lost", at: fixture.now) == [failed])
        #expect(fixture.session.end() == [])
        expectClosed(&fixture)
    }
}
