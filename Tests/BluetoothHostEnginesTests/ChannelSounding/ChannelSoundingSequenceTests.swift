import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("Sessions of Channel Sounding one after the other")
struct ChannelSoundingSequenceTests {
    private typealias Fixture = ChannelSoundingFixture

    @Test func sessionWaitsUntilTheOneBeforeIsTidiedUp() throws {
        var link = try Fixture.running()
        #expect(throws: HostError.self) { try link.start(as: 2) }
        #expect(link.result([], count: 0, .complete, .complete).last == .command(Fixture.remove, session: 1))
        #expect(try link.start(as: 2) == [] && link.engine.has(2))
        #expect(throws: HostError.self, "one session waits") { try link.start(as: 3) }
        #expect(link.config(isCreated: false) == Fixture.sends(Fixture.defaults(), session: 2))
    }

    @Test func waitingSessionCanBeStopped() throws {
        var link = try Fixture.running(count: 0)
        _ = link.engine.stop(1, at: link.now)
        _ = try link.start(as: 2)
        #expect(link.engine.stop(2, at: link.now) == [] && !link.engine.has(2))
        #expect(link.procedures(isOn: false, count: 0) == Fixture.sends(Fixture.remove))
        #expect(link.config(isCreated: false) == Fixture.sends(Fixture.disableRole) && !link.engine.isActive)
    }

    @Test func waitingSessionEndsWithTheLink() throws {
        var link = try Fixture.running(count: 0)
        _ = link.engine.stop(1, at: link.now)
        _ = try link.start(as: 2)
        let reason = DisconnectionReason.controller(.connectionTimeout)
        #expect(link.engine.linkEnded(reason) == [.ended(.disconnected(reason), session: 2)])
    }

    @Test(arguments: [.aborted, .timedOut(LECSReadRemoteSupportedCapabilities.opcode)] as [CommandFailure])
    func sessionOfALostControllerEndsWithTheLink(failure: CommandFailure) throws {
        var link = Fixture()
        _ = try link.start()
        #expect(link.engine.commandFailed(Fixture.readCapabilities, failure, session: 1, at: link.now) == [])
        let reason = DisconnectionReason.controllerReset("test")
        #expect(link.engine.linkEnded(reason) == [.ended(.disconnected(reason), session: 1)])
    }

    @Test func waitingSessionDoesNotBeginOnALostController() throws {
        var link = try Fixture.running()
        _ = link.result([], count: 0, .complete, .complete)
        _ = try link.start(as: 2)
        #expect(link.engine.commandFailed(Fixture.remove, .aborted, session: 1, at: link.now) == [])
        let reason = DisconnectionReason.controllerReset("test")
        #expect(link.engine.linkEnded(reason) == [.ended(.disconnected(reason), session: 2)])
    }

    /// A session whose procedures are being enabled.
    private func enabling() throws -> Fixture {
        var link = Fixture()
        _ = try link.start()
        _ = link.capabilities()
        _ = link.succeeded(Fixture.defaults())
        _ = link.config()
        _ = link.security()
        _ = link.succeeded(Fixture.parameters())
        return link
    }

    @Test func proceduresThatAreEnabledAfterAStopAreDisabled() throws {
        var link = try enabling()
        #expect(link.engine.stop(1, at: link.now) == [])
        #expect(link.procedures() == Fixture.sends(Fixture.disable))
        #expect(link.procedures() == [], "a report of enabled procedures is no answer")
        #expect(link.procedures(isOn: false) == Fixture.sends(Fixture.remove))
    }

    @Test func proceduresThatAreNotEnabledAfterAStopNeedNoEnd() throws {
        var link = try enabling()
        _ = link.engine.stop(1, at: link.now)
        #expect(link.procedures(.unsupportedRemoteFeature) == Fixture.sends(Fixture.remove))
    }

    @Test(arguments: [true, false]) func configurationThatIsCreatedAfterAStopIsRemoved(isCreated: Bool) throws {
        var link = Fixture()
        _ = try link.start()
        _ = link.capabilities()
        _ = link.succeeded(Fixture.defaults())
        #expect(link.engine.stop(1, at: link.now) == [] && link.engine.isActive)
        if isCreated {
            #expect(link.config() == Fixture.sends(Fixture.remove))
        } else {
            #expect(link.config(.unsupportedRemoteFeature) == Fixture.sends(Fixture.disableRole))
            #expect(!link.engine.isActive)
        }
    }

    @Test func roleThatIsBeingEnabledAtAStopIsDisabled() throws {
        var link = Fixture()
        _ = try link.start(.init(role: .reflector))
        #expect(link.engine.stop(1, at: link.now) == Fixture.sends(Fixture.disableRole))
        #expect(link.succeeded(Fixture.defaults(.reflector)) == [] && !link.engine.isActive)
        #expect(link.succeeded(Fixture.disableRole) == [] && !link.engine.isActive)
    }

    @Test func roleIsDisabledIfItCannotBeEnabled() throws {
        let refused = CommandFailure.status(.commandDisallowed, LECSSetDefaultSettings.opcode)
        var link = Fixture()
        _ = try link.start(.init(role: .reflector))
        #expect(
            link.engine.commandFailed(Fixture.defaults(.reflector), refused, session: 1, at: link.now)
                == [.ended(.command(refused), session: 1), .command(Fixture.disableRole, session: 1)]
        )
        #expect(link.engine.commandFailed(Fixture.disableRole, refused, session: 1, at: link.now) == [])
        #expect(!link.engine.isActive)
    }

    /// A link whose session as the reflector was stopped before the peer started procedures.
    private func stoppedReflector() throws -> Fixture {
        var link = Fixture()
        _ = try link.start(.init(role: .reflector))
        _ = link.succeeded(Fixture.defaults(.reflector))
        _ = link.config(id: 2, role: .reflector)
        _ = link.security()
        #expect(link.engine.stop(1, at: link.now) == Fixture.sends(Fixture.disableRole))
        return link
    }

    private static let disablePeerProcedures = ChannelSoundingCommand.disable(
        .init(connectionHandle: Fixture.handle, configID: 2, enable: false)
    )

    @Test(arguments: [true, false]) func proceduresThatCrossAStop(startsAgain: Bool) throws {
        var link = try stoppedReflector()
        guard startsAgain else {
            #expect(link.procedures(count: 0, id: 2) == Fixture.sends(Self.disablePeerProcedures))
            #expect(link.engine.isActive && link.engine.deadline != nil)
            #expect(link.procedures(isOn: false, id: 2) == [] && !link.engine.isActive)
            return
        }
        #expect(
            try link.start(.init(role: .reflector), as: 2)
                == Fixture.sends(Fixture.defaults(.reflector), session: 2)
        )
        guard case .started(let procedures, session: 2) = link.procedures(count: 0, id: 2).first else {
            Issue.record("not started")
            return
        }
        #expect(procedures.configuration.role == .reflector)
        #expect(link.succeeded(Fixture.defaults(.reflector), session: 2) == [])
        #expect(
            link.procedures(isOn: false, id: 2)
                == [.ended(nil, session: 2), .command(Fixture.disableRole, session: 2)]
        )
    }

    @Test func failedProceduresThatCrossAStopAreIgnored() throws {
        var link = try stoppedReflector()
        #expect(link.procedures(.unsupportedRemoteFeature, id: 2) == [] && !link.engine.isActive)
        _ = try link.start(.init(role: .reflector), as: 2)
        #expect(link.procedures(.unsupportedRemoteFeature, id: 2) == [] && link.engine.isActive)
    }

    @Test func roleThatTheControllerKeepsForProceduresIsDisabledAfterThem() throws {
        var link = try stoppedReflector()
        let refused = CommandFailure.status(.commandDisallowed, LECSSetDefaultSettings.opcode)
        #expect(link.engine.commandFailed(Fixture.disableRole, refused, session: 1, at: link.now) == [])
        #expect(link.procedures(count: 0, id: 2) == Fixture.sends(Self.disablePeerProcedures))
        #expect(link.procedures(isOn: false, id: 2) == Fixture.sends(Fixture.disableRole))
        #expect(!link.engine.isActive)
    }

    @Test func stoppedReflectorWaitsForTheEndOfThePeersConfiguration() throws {
        var link = Fixture()
        _ = try link.start(.init(role: .reflector))
        _ = link.succeeded(Fixture.defaults(.reflector))
        _ = link.config(id: 2, role: .reflector)
        _ = link.procedures(count: 0, id: 2)
        let disable = LECSProcedureEnable(connectionHandle: Fixture.handle, configID: 2, enable: false)
        #expect(link.engine.stop(1, at: link.now) == Fixture.sends(.disable(disable)))
        #expect(link.procedures(isOn: false) == [] && link.engine.isActive)
        #expect(link.procedures(isOn: false, id: 2) == Fixture.sends(Fixture.disableRole))
        #expect(!link.engine.isActive)
    }

    @Test func removalOfAConfigurationLetsTheReflectorWait() throws {
        var link = Fixture()
        _ = try link.start(.init(role: .reflector))
        _ = link.succeeded(Fixture.defaults(.reflector))
        _ = link.config(id: 2, role: .reflector)
        // The role of a removed configuration has no meaning.
        #expect(link.config(isCreated: false, id: 2, role: .initiator) == [] && link.engine.isActive)
        #expect(link.procedures(count: 0, id: 2) == [])
    }

    @Test func refusedSecurityEndsTheReflector() throws {
        var link = Fixture()
        _ = try link.start(.init(role: .reflector))
        _ = link.succeeded(Fixture.defaults(.reflector))
        #expect(link.config(id: 2, role: .reflector) == Fixture.sends(Fixture.secure))
        guard case .ended(.command, session: 1) = link.security(.unsupportedRemoteFeature).first else {
            Issue.record("it waits")
            return
        }
        #expect(!link.engine.isActive)
    }

    @Test func endOfAProcedureWithoutItsFirstResultsCounts() throws {
        var link = try Fixture.running()
        #expect(link.more([], count: 0, .complete, .complete).first == .ended(nil, session: 1))
    }

    @Test func peerMayUseAnyOfItsConfigurations() throws {
        var link = Fixture(isCentral: false)
        _ = try link.start(.init(role: .reflector))
        _ = link.succeeded(Fixture.defaults(.reflector))
        _ = link.config(id: 1, role: .reflector)
        _ = link.config(id: 2, role: .reflector)
        #expect(link.procedures(id: 3) == [], "a configuration that nobody has created")
        guard case .started(let procedures, session: 1) = link.procedures(id: 1).first else {
            Issue.record("not started")
            return
        }
        #expect(procedures.configuration.role == .reflector)
        #expect(link.result([], count: 0, .complete, .complete, id: 2) == [])
        #expect(link.result([], count: 0, .complete, .complete, id: 1).count == 3)
    }

    @Test func configurationsOfThePeerOutlastASession() throws {
        var link = Fixture(isCentral: false)
        _ = try link.start(.init(role: .reflector))
        _ = link.succeeded(Fixture.defaults(.reflector))
        _ = link.config(id: 0, role: .reflector)
        #expect(link.engine.stop(1, at: link.now) == Fixture.sends(Fixture.disableRole))
        _ = try link.start(.init(role: .reflector), as: 2)
        _ = link.succeeded(Fixture.defaults(.reflector), session: 2)
        #expect(link.procedures(id: 0).count == 1)
    }

    @Test func identifierOfThePeersConfigurationIsNotTaken() throws {
        var link = Fixture()
        _ = try link.start(.init(role: .reflector))
        _ = link.succeeded(Fixture.defaults(.reflector))
        #expect(link.config(id: 0, role: .reflector) == Fixture.sends(Fixture.secure))
        #expect(link.config(id: 2, role: .reflector) == [], "the security is starting")
        _ = link.security()
        _ = link.engine.stop(1, at: link.now)
        _ = try link.start(as: 2)
        _ = link.capabilities()
        guard
            case .command(.createConfig(let command), session: 2) = link.succeeded(Fixture.defaults(), session: 2).first
        else {
            Issue.record("nothing is created")
            return
        }
        #expect(command.configID == 1)
    }

    @Test func configurationThatTheControllerKeepsIsReplaced() throws {
        var link = try Fixture.running()
        _ = link.result([], count: 0, .complete, .complete)
        let refused = CommandFailure.status(.commandDisallowed, LECSRemoveConfig.opcode)
        _ = link.engine.commandFailed(Fixture.remove, refused, session: 1, at: link.now)
        _ = try link.start(as: 2)
        #expect(link.succeeded(Fixture.defaults(), session: 2) == Fixture.sends(Fixture.create, session: 2))
    }

    @Test func securityThatFailsAfterTheEndIsStartedAgain() throws {
        var link = Fixture()
        _ = try link.start(.init(role: .reflector))
        _ = link.succeeded(Fixture.defaults(.reflector))
        #expect(link.config(id: 2, role: .reflector) == Fixture.sends(Fixture.secure))
        _ = link.engine.stop(1, at: link.now)
        let refused = CommandFailure.status(.commandDisallowed, LECSSecurityEnable.opcode)
        #expect(link.engine.commandFailed(Fixture.secure, refused, session: 1, at: link.now) == [])
        _ = try link.start(.init(role: .reflector), as: 2)
        #expect(link.succeeded(Fixture.defaults(.reflector), session: 2) == Fixture.sends(Fixture.secure, session: 2))
    }

    @Test func sessionNeedsAFreeConfiguration() throws {
        var link = Fixture(isCentral: false)
        _ = try link.start(.init(role: .reflector))
        _ = link.succeeded(Fixture.defaults(.reflector))
        for id in UInt8(0)..<4 { _ = link.config(id: id, role: .reflector) }
        _ = link.engine.stop(1, at: link.now)
        _ = try link.start(as: 2)
        _ = link.capabilities()
        guard case .ended(.notSupported, session: 2) = link.succeeded(Fixture.defaults(), session: 2).first else {
            Issue.record("not ended")
            return
        }
    }

    @Test func sessionEndsIfTheControllerStopsReporting() throws {
        var link = try Fixture.running(count: 0)
        _ = link.result([], count: 0, .complete, .complete)
        let deadline = try #require(link.engine.deadline)
        // 41 s for the procedure, ten intervals of at most 4 s, and the time of a step.
        #expect(deadline - link.now == .seconds(121))
        #expect(link.engine.advance(to: deadline).first == .ended(.timedOut, session: 1))
    }
}
