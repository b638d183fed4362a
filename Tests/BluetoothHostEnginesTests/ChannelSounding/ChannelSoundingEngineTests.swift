import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// An engine, and the commands of its session in their order.
private struct Fixture {
    static let handle: ConnectionHandle = 0x0040
    static let configuration = ChannelSoundingConfiguration(role: .initiator)

    var engine: ChannelSoundingEngine
    var now = Instant(nanoseconds: 0)

    init(isCentral: Bool = true) {
        engine = ChannelSoundingEngine(handle: Self.handle, isCentral: isCentral)
    }

    mutating func start(
        _ parameters: ChannelSoundingParameters = .init(),
        as session: UInt64 = 1
    ) throws -> [ChannelSoundingEffect] {
        try engine.start(parameters, as: session, at: now)
    }

    mutating func succeeded(_ command: ChannelSoundingCommand, session: UInt64 = 1) -> [ChannelSoundingEffect] {
        engine.commandSucceeded(command, session: session, at: now)
    }

    mutating func capabilities(_ roles: ChannelSoundingRoles = [.initiator, .reflector]) -> [ChannelSoundingEffect] {
        let event = LECSReadRemoteSupportedCapabilitiesComplete(
            connectionHandle: Self.handle,
            capabilities: ChannelSoundingCapabilities(rolesSupported: roles)
        )
        return engine.received(event, at: now)
    }

    mutating func config(
        _ status: HCIErrorCode = .success,
        isCreated: Bool = true,
        id: UInt8 = 0,
        role: ChannelSoundingRole = .initiator
    ) -> [ChannelSoundingEffect] {
        let event = LECSConfigComplete(
            status: status,
            connectionHandle: Self.handle,
            configID: id,
            isCreated: isCreated,
            configuration: ChannelSoundingConfiguration(role: role)
        )
        return engine.received(event, at: now)
    }

    mutating func security(_ status: HCIErrorCode = .success) -> [ChannelSoundingEffect] {
        engine.received(LECSSecurityEnableComplete(status: status, connectionHandle: Self.handle), at: now)
    }

    mutating func procedures(
        _ status: HCIErrorCode = .success,
        isOn: Bool = true,
        count: UInt16 = 1,
        id: UInt8 = 0
    ) -> [ChannelSoundingEffect] {
        let event = LECSProcedureEnableComplete(
            status: status,
            connectionHandle: Self.handle,
            configID: id,
            state: isOn,
            selectedTXPower: 4,
            subeventLen: 1250,
            procedureInterval: 10,
            procedureCount: count
        )
        return engine.received(event, at: now)
    }

    mutating func result(
        _ steps: [UInt8],
        count: UInt8,
        _ procedure: ChannelSoundingDoneStatus,
        _ subevent: ChannelSoundingDoneStatus
    ) throws -> [ChannelSoundingEffect] {
        let event = LECSSubeventResult(
            connectionHandle: Self.handle.rawValue,
            configID: 0,
            procedureCounter: 7,
            progress: .init(procedureDoneStatus: procedure, subeventDoneStatus: subevent),
            numStepsReported: count,
            stepBytes: steps.rawSpan
        )
        return try engine.received(event, at: now)
    }

    mutating func more(
        _ steps: [UInt8],
        count: UInt8,
        _ procedure: ChannelSoundingDoneStatus,
        _ subevent: ChannelSoundingDoneStatus
    ) throws -> [ChannelSoundingEffect] {
        let event = LECSSubeventResultContinue(
            connectionHandle: Self.handle.rawValue,
            configID: 0,
            progress: .init(procedureDoneStatus: procedure, subeventDoneStatus: subevent),
            numStepsReported: count,
            stepBytes: steps.rawSpan
        )
        return try engine.received(event, at: now)
    }

    // The commands of a session.

    static let readCapabilities = ChannelSoundingCommand.readCapabilities(.init(connectionHandle: handle))
    static func defaults(_ roles: ChannelSoundingRoles = .initiator) -> ChannelSoundingCommand {
        .setDefaults(.init(connectionHandle: handle, roleEnable: roles))
    }
    static let create = ChannelSoundingCommand.createConfig(
        .init(connectionHandle: handle, configID: 0, configuration: configuration)
    )
    static let secure = ChannelSoundingCommand.enableSecurity(.init(connectionHandle: handle))
    static func parameters(count: UInt16 = 1) -> ChannelSoundingCommand {
        .setParameters(
            .init(
                connectionHandle: handle,
                configID: 0,
                maxProcedureLen: 1000,
                minProcedureInterval: 1,
                maxProcedureInterval: 100,
                maxProcedureCount: count,
                minSubeventLen: 0x0004E2,
                maxSubeventLen: ChannelSoundingEngine.longestSubevent,
                toneAntennaConfigSelection: 0,
                phy: .le1M
            )
        )
    }
    static let enable = ChannelSoundingCommand.enable(.init(connectionHandle: handle, configID: 0, enable: true))
    static let disable = ChannelSoundingCommand.disable(.init(connectionHandle: handle, configID: 0, enable: false))
    static let remove = ChannelSoundingCommand.removeConfig(.init(connectionHandle: handle, configID: 0))

    static func sends(_ command: ChannelSoundingCommand, session: UInt64 = 1) -> [ChannelSoundingEffect] {
        [.command(command, session: session)]
    }

    /// A session whose procedures run.
    static func running(count: UInt16 = 1) throws -> Fixture {
        var link = Fixture()
        _ = try link.start(ChannelSoundingParameters(procedureCount: count))
        _ = link.capabilities()
        _ = link.succeeded(defaults())
        _ = link.config()
        _ = link.security()
        _ = link.succeeded(parameters(count: count))
        _ = link.procedures(count: count)
        return link
    }
}

@Suite("A session of Channel Sounding")
struct ChannelSoundingEngineTests {
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
        #expect(link.engine.deadline == nil)
        let effects = try link.result([], count: 0, .complete, .complete)
        #expect(effects.count == 3 && effects[1] == .ended(nil, session: 1))
        #expect(effects[2] == .command(Fixture.remove, session: 1))
        #expect(link.config(isCreated: false) == [])
        #expect(!link.engine.isActive && link.engine.deadline == nil)
        // The peer's capabilities are known now.
        #expect(try link.start(as: 2) == Fixture.sends(Fixture.defaults(), session: 2))
    }

    @Test func peripheralLeavesTheSecurityToTheCentral() throws {
        var link = Fixture(isCentral: false)
        _ = try link.start()
        _ = link.capabilities()
        _ = link.succeeded(Fixture.defaults())
        #expect(link.config() == Fixture.sends(Fixture.parameters()))
    }

    @Test func reflectorWaitsForThePeer() throws {
        var link = Fixture()
        #expect(try link.start(.init(role: .reflector)) == Fixture.sends(Fixture.defaults(.reflector)))
        #expect(link.succeeded(Fixture.defaults(.reflector)) == [])
        #expect(link.engine.deadline == nil)
        #expect(link.config(id: 2, role: .initiator) == [])
        #expect(link.procedures(id: 2) == [], "the configuration is for another role")
        #expect(link.config(id: 2, role: .reflector) == [])
        #expect(link.security() == [])
        guard case .started(let procedures, session: 1) = link.procedures(count: 0, id: 2).first else {
            Issue.record("not started")
            return
        }
        #expect(procedures.configuration.role == .reflector && procedures.peerCapabilities == nil)
        #expect(link.procedures(isOn: false, id: 2) == [.ended(nil, session: 1)])
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
        #expect(throws: HostError.self, "the configuration is being removed") { try link.start(as: 2) }
        #expect(link.config(isCreated: false) == [])
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
        let command: ChannelSoundingCommand? = step < 2 ? nil : step == 2 ? Fixture.remove : Fixture.disable
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
        #expect(link.engine.advance(to: link.now) == [])
        #expect(!link.engine.isActive && link.engine.deadline == nil)
    }

    @Test func stoppedSessionDisablesTheProceduresAndIsNotReported() throws {
        var link = try Fixture.running(count: 0)
        #expect(link.engine.stop(2, at: link.now) == [])
        #expect(link.engine.stop(1, at: link.now) == Fixture.sends(Fixture.disable))
        #expect(link.engine.stop(1, at: link.now) == [])
        #expect(link.procedures(isOn: false, count: 0) == Fixture.sends(Fixture.remove))
        #expect(link.config(isCreated: false) == [])
        #expect(!link.engine.isActive)
    }

    @Test func peerMayRemoveTheConfiguration() throws {
        var link = try Fixture.running(count: 0)
        #expect(link.config(isCreated: false) == [.ended(nil, session: 1)])
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
        #expect(try link.result(Self.steps, count: 2, .partial, .partial) == [])
        #expect(try link.more(Self.steps, count: 2, .partial, .partial) == [])
        let effects = try link.more([], count: 0, .complete, .complete)
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
        let last = try link.result([], count: 0, .aborted, .aborted)
        #expect(last.count == 3 && last[1] == .ended(nil, session: 1))
    }

    @Test func furtherResultsWithoutTheFirstAreIgnored() throws {
        var link = try Fixture.running(count: 0)
        #expect(try link.more(Self.steps, count: 2, .partial, .complete) == [])
    }

    @Test func incompleteSubeventIsReportedBeforeTheNext() throws {
        var link = try Fixture.running(count: 0)
        #expect(try link.result(Self.steps, count: 2, .partial, .partial) == [])
        let effects = try link.result([], count: 0, .partial, .complete)
        #expect(effects.count == 2)
        guard case .subevent(let first, _) = effects[0] else { return }
        #expect(first.stepCount == 2 && first.progress.subeventDoneStatus == .partial)
    }

    @Test func stepsThatCannotBeDecodedAreAnError() throws {
        var link = try Fixture.running(count: 0)
        #expect(throws: PacketDecodingError.self) { try link.result(Self.steps, count: 3, .partial, .complete) }
        #expect(throws: PacketDecodingError.self) { try link.result(Self.steps, count: 1, .partial, .complete) }
    }

    @Test func stepsOfASubeventAreBounded() throws {
        var link = try Fixture.running(count: 0)
        let steps = [UInt8](repeating: 0, count: 3 * 80)
        _ = try link.result(steps, count: 80, .partial, .partial)
        for _ in 0..<10 { _ = try link.more(steps, count: 80, .partial, .partial) }
        guard case .subevent(let subevent, _) = try link.more(steps, count: 80, .partial, .complete).first else {
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
