import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("A session of Channel Sounding")
struct ChannelSoundingEngineTests {
    private typealias Fixture = ChannelSoundingFixture

    /// Two steps of mode 0, as the reflector measures them.
    private static let steps: [UInt8] = [0, 5, 3, 0, 0xCE, 1, 0, 6, 3, 0, 0xCF, 1]

    @Test func initiatorTakesOneStepAfterTheOther() throws {
        var link = Fixture()
        #expect(try link.start() == Fixture.sends(Fixture.readCapabilities))
        #expect(link.engine.deadline == link.now + ChannelSoundingEngine.stepTimeout)
        #expect(link.succeeded(Fixture.readCapabilities) == [])
        #expect(link.capabilities() == Fixture.sends(Fixture.defaults()))
        #expect(link.succeeded(Fixture.defaults()) == Fixture.sends(Fixture.create))
        #expect(link.config() == Fixture.sends(Fixture.secure))
        #expect(link.security() == Fixture.sends(Fixture.parameters()))
        #expect(link.succeeded(Fixture.parameters()) == Fixture.sends(Fixture.enable))
        let procedures = ChannelSoundingProcedures(
            configuration: Fixture.configuration,
            peerCapabilities: ChannelSoundingCapabilities(),
            transmitPower: 4,
            procedureInterval: 10,
            procedureCount: 1,
            subeventLength: 1250
        )
        #expect(link.procedures() == [.started(procedures, session: 1)])
        // 41 s for the procedure, ten intervals of at most 4 s, and the time of a step.
        #expect(link.engine.deadline == link.now + .seconds(121))
        let effects = link.result([], count: 0, .complete, .complete)
        #expect(effects.count == 3 && effects[1] == .ended(nil, session: 1))
        #expect(effects[2] == .command(Fixture.remove, session: 1))
        #expect(link.config(isCreated: false) == Fixture.sends(Fixture.disableRole))
        #expect(!link.engine.isActive && link.engine.deadline == nil)
        // The peer's capabilities are known now.
        #expect(try link.start(as: 2) == Fixture.sends(Fixture.defaults(), session: 2))
    }

    @Test func peripheralLeavesTheSecurityToTheCentral() throws {
        var link = Fixture(isCentral: false)
        _ = try link.start()
        _ = link.capabilities()
        _ = link.succeeded(Fixture.defaults())
        #expect(link.config() == [])
        #expect(link.engine.deadline == link.now + ChannelSoundingEngine.stepTimeout)
        #expect(link.security() == Fixture.sends(Fixture.parameters()))
    }

    @Test func reflectorWaitsForThePeer() throws {
        var link = Fixture()
        #expect(try link.start(.init(role: .reflector)) == Fixture.sends(Fixture.defaults(.reflector)))
        #expect(link.succeeded(Fixture.defaults(.reflector)) == [])
        #expect(link.engine.deadline == nil)
        #expect(link.config(id: 2, role: .initiator) == [])
        #expect(link.procedures(id: 2) == [], "the configuration is for another role")
        #expect(link.config(id: 2, role: .reflector) == Fixture.sends(Fixture.secure))
        #expect(link.security() == [])
        guard case .started(let procedures, session: 1) = link.procedures(count: 0, id: 2).first else {
            Issue.record("not started")
            return
        }
        #expect(procedures.configuration.role == .reflector && procedures.peerCapabilities == nil)
        #expect(
            link.procedures(isOn: false, id: 2)
                == [.ended(nil, session: 1), .command(Fixture.disableRole, session: 1)]
        )
        #expect(!link.engine.isActive)
    }

    @Test func refusedStepEndsTheSessionAndRemovesWhatItHasCreated() throws {
        let refused = CommandFailure.status(.commandDisallowed, LECSSetProcedureParameters.opcode)
        var link = Fixture()
        _ = try link.start()
        _ = link.capabilities()
        _ = link.succeeded(Fixture.defaults())
        _ = link.config()
        _ = link.security()
        #expect(link.engine.commandFailed(Fixture.enable, refused, session: 1, at: link.now) == [], "not its step")
        #expect(link.engine.commandFailed(Fixture.parameters(), refused, session: 2, at: link.now) == [])
        #expect(
            link.engine.commandFailed(Fixture.parameters(), refused, session: 1, at: link.now)
                == [.ended(.command(refused), session: 1), .command(Fixture.remove, session: 1)]
        )
        #expect(link.config(isCreated: false) == Fixture.sends(Fixture.disableRole))
        #expect(!link.engine.isActive)
    }

    @Test(arguments: 0..<4) func failedEventEndsTheSession(step: Int) throws {
        let status = HCIErrorCode.unsupportedRemoteFeature
        var link = Fixture()
        _ = try link.start()
        let ended: [ChannelSoundingEffect]
        switch step {
        case 0:
            let event = LECSReadRemoteSupportedCapabilitiesComplete(
                status: status,
                connectionHandle: Fixture.handle,
                capabilities: .init()
            )
            ended = link.engine.received(event, at: link.now)
        case 1:
            _ = link.capabilities()
            _ = link.succeeded(Fixture.defaults())
            ended = link.config(status)
        case 2:
            _ = link.capabilities()
            _ = link.succeeded(Fixture.defaults())
            _ = link.config()
            ended = link.security(status)
        default:
            _ = link.capabilities()
            _ = link.succeeded(Fixture.defaults())
            _ = link.config()
            _ = link.security()
            _ = link.succeeded(Fixture.parameters())
            ended = link.procedures(status)
        }
        guard case .ended(.command(.status(status, _)), session: 1) = ended.first else {
            Issue.record("\(ended)")
            return
        }
        let command: ChannelSoundingCommand? = step == 0 ? nil : step == 1 ? Fixture.disableRole : Fixture.remove
        #expect(ended.dropFirst().first == command.map { .command($0, session: 1) })
    }

    @Test func peerWithoutTheRoleIsNotSupported() throws {
        var link = Fixture()
        _ = try link.start()
        guard case .ended(.notSupported, session: 1) = link.capabilities(.initiator).first else {
            Issue.record("accepted")
            return
        }
        #expect(!link.engine.isActive)
    }

    @Test func stepThatTakesTooLongEndsTheSession() throws {
        var link = Fixture()
        _ = try link.start()
        _ = link.capabilities()
        _ = link.succeeded(Fixture.defaults())
        _ = link.config()
        let limit = ChannelSoundingEngine.stepTimeout
        #expect(link.engine.advance(to: link.now + (limit - .milliseconds(1))) == [])
        link.now = link.now + limit
        #expect(
            link.engine.advance(to: link.now)
                == [.ended(.timedOut, session: 1), .command(Fixture.remove, session: 1)]
        )
        // The removal is not answered either.
        link.now = link.now + limit
        #expect(link.engine.advance(to: link.now) == Fixture.sends(Fixture.disableRole))
        #expect(!link.engine.isActive && link.engine.deadline == nil)
    }

    @Test func stoppedSessionDisablesTheProceduresAndIsNotReported() throws {
        var link = try Fixture.running(count: 0)
        #expect(link.engine.stop(2, at: link.now) == [])
        #expect(link.engine.stop(1, at: link.now) == Fixture.sends(Fixture.disable))
        #expect(link.engine.stop(1, at: link.now) == [])
        #expect(link.procedures(isOn: false, count: 0) == Fixture.sends(Fixture.remove))
        #expect(link.config(isCreated: false) == Fixture.sends(Fixture.disableRole))
        #expect(!link.engine.isActive)
    }

    @Test func peerMayRemoveTheConfiguration() throws {
        var link = try Fixture.running(count: 0)
        #expect(
            link.config(isCreated: false) == [.ended(nil, session: 1), .command(Fixture.disableRole, session: 1)]
        )
        #expect(!link.engine.isActive)
    }

    @Test func endOfTheLinkEndsTheSession() throws {
        var link = try Fixture.running()
        let reason = DisconnectionReason.controller(.connectionTimeout)
        #expect(link.engine.linkEnded(reason) == [.ended(.disconnected(reason), session: 1)])
        #expect(!link.engine.isActive && link.engine.linkEnded(reason) == [])
    }

    @Test func subeventIsReportedWhenItIsComplete() throws {
        var link = try Fixture.running(count: 2)
        #expect(link.result(Self.steps, count: 2, .partial, .partial) == [])
        #expect(link.more(Self.steps, count: 2, .partial, .partial) == [])
        let effects = link.more([], count: 0, .complete, .complete)
        guard effects.count == 1, case .subevent(let subevent, session: 1) = effects[0] else {
            Issue.record("\(effects)")
            return
        }
        #expect(subevent.procedureCounter == 7 && subevent.stepCount == 4 && !subevent.isTruncated)
        #expect(subevent.progress == ChannelSoundingProgress())
        #expect(subevent.frequencyCompensation == nil && subevent.referencePower == nil)
        var channels: [UInt8] = []
        try subevent.forEachStep { channels.append($0.channel) }
        #expect(channels == [5, 6, 5, 6])
        // One procedure of two is done.
        let last = link.result([], count: 0, .aborted, .aborted)
        #expect(last.count == 3 && last[1] == .ended(nil, session: 1))
    }

    /// A subevent without steps.
    private func makeSubevent(compensation: UInt16 = 0xC000, power: Int8 = 127) -> ChannelSoundingSubevent {
        let steps: [UInt8] = []
        let event = LECSSubeventResult(
            connectionHandle: 0x0040,
            configID: 1,
            startACLConnEventCounter: 0x1234,
            procedureCounter: 7,
            frequencyCompensation: compensation,
            referencePowerLevel: power,
            numStepsReported: 0,
            stepBytes: steps.rawSpan
        )
        return ChannelSoundingSubevent(event)
    }

    @Test func subeventHasTheConnectionEventOfItsProcedure() {
        let subevent = makeSubevent()
        #expect(subevent.startConnectionEvent == 0x1234 && subevent.procedureCounter == 7)
    }

    /// From -100 ppm to 100 ppm (Vol 4, Part E, 7.7.65.44).
    @Test(
        arguments: [(0x58F0, -10_000), (0x7FFF, -1), (0, 0), (1, 1), (0x2710, 10_000), (0xC000, nil)]
            as [(UInt16, Int16?)]
    )
    func compensationOfTheFrequencyHasFifteenBits(_ raw: UInt16, _ compensation: Int16?) {
        #expect(makeSubevent(compensation: raw).frequencyCompensation == compensation)
    }

    @Test(arguments: [(-127, -127), (-1, -1), (20, 20), (127, nil)] as [(Int8, Int?)])
    func referencePowerMayNotApply(_ raw: Int8, _ power: Int?) {
        #expect(makeSubevent(power: raw).referencePower == power)
    }

    @Test func antennaPathsOfFurtherResultsAreUsed() throws {
        var link = try Fixture.running(count: 0)
        #expect(link.result(Self.steps, count: 2, .partial, .partial, paths: 0) == [])
        // A step of mode 3: 6 bytes of its packet, the permutation, and two tones.
        let further: [UInt8] = [3, 10, 15] + [UInt8](repeating: 0, count: 15)
        guard case .subevent(let subevent, session: 1) = link.more(further, count: 1, .partial, .complete).first else {
            Issue.record("not reported")
            return
        }
        #expect(subevent.antennaPaths == 1 && subevent.stepCount == 3)
        var counts: [Int] = []
        try subevent.forEachStep { step in
            let tones = try step.tones(antennaPaths: subevent.antennaPaths)
            counts.append(tones.count)
        }
        #expect(counts == [0, 0, 2])
    }

    @Test func furtherResultsWithoutTheFirstAreIgnored() throws {
        var link = try Fixture.running(count: 0)
        #expect(link.more(Self.steps, count: 2, .partial, .complete) == [])
    }

    @Test func incompleteSubeventIsReportedBeforeTheNext() throws {
        var link = try Fixture.running(count: 0)
        #expect(link.result(Self.steps, count: 2, .partial, .partial) == [])
        let effects = link.result([], count: 0, .partial, .complete)
        #expect(effects.count == 2)
        guard case .subevent(let first, _)? = effects.first else {
            Issue.record("\(effects)")
            return
        }
        #expect(first.stepCount == 2 && first.progress.subeventDoneStatus == .partial)
    }

    @Test(arguments: [1, 3] as [UInt8]) func stepsThatCannotBeDecodedAreMissing(count: UInt8) throws {
        var link = try Fixture.running(count: 1)
        let effects = link.result(Self.steps, count: count, .complete, .complete)
        guard effects.count == 4, case .malformed = effects[0], case .subevent(let subevent, _) = effects[1] else {
            Issue.record("\(effects)")
            return
        }
        #expect(subevent.isTruncated && subevent.stepCount == 0)
        #expect(effects[2] == .ended(nil, session: 1), "the procedure has ended nevertheless")
    }

    @Test func stepsOfASubeventAreBounded() throws {
        var link = try Fixture.running(count: 0)
        let steps = [UInt8](repeating: 0, count: 3 * 80)
        _ = link.result(steps, count: 80, .partial, .partial)
        for _ in 0..<10 { _ = link.more(steps, count: 80, .partial, .partial) }
        guard case .subevent(let subevent, _) = link.more(steps, count: 80, .partial, .complete).first else {
            Issue.record("not reported")
            return
        }
        #expect(subevent.stepCount == 160 && subevent.isTruncated)
    }

    @Test(arguments: [
        ChannelSoundingParameters(role: .init(rawValue: 2)),
        ChannelSoundingParameters(procedureInterval: 0...1),
        ChannelSoundingParameters(maximumProcedureLength: .microseconds(624)),
        ChannelSoundingParameters(maximumProcedureLength: .seconds(41)),
        ChannelSoundingParameters(antennaConfiguration: 8),
        ChannelSoundingParameters(maximumTransmitPower: 21),
    ])
    func parametersOutOfTheirRangesAreRefused(_ parameters: ChannelSoundingParameters) {
        var link = Fixture()
        #expect(throws: HostError.self) { try link.start(parameters) }
        #expect(!link.engine.isActive)
    }
}
