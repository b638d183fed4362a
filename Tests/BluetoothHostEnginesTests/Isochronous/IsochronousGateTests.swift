import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("Isochronous streams behind the gates of links")
struct IsochronousGateTests {
    private typealias Effects = [IsochronousEffect]

    private static let link = LinkIdentifier(handle: 0x0040, serial: 1)
    private static let other = LinkIdentifier(handle: 0x0041, serial: 2)
    private static let reason = DisconnectionReason.controller(.authenticationFailure)
    private static let request = LECISRequest(
        aclConnectionHandle: 0x0040,
        cisConnectionHandle: 0x0060,
        cigID: 1,
        cisID: 2
    )

    /// The opcodes of the commands among effects.
    private static func commands(_ effects: Effects) -> [HCIOpcode] {
        effects.compactMap { if case .send(let request) = $0 { request.opcode } else { nil } }
    }

    private static func answer(
        _ engine: inout IsochronousEngine,
        _ step: IsochronousStep,
        _ reply: [UInt8],
        of opcode: HCIOpcode
    ) -> Effects {
        engine.answered(step, reply.rawSpan, of: opcode)
    }

    /// An engine whose controller creates a stream on each of two links, with the handles 0x0060 and 0x0061.
    private static func creating() throws -> IsochronousEngine {
        var engine = IsochronousEngine()
        engine.sender.configure(packetLength: 100, packetCount: 4)
        _ = try engine.open(5, to: [link, other], ConnectedGroupParameters())
        let reply: [UInt8] = [0, 0, 2, 0x60, 0, 0x61, 0]
        let effects = answer(&engine, .setParameters(cigID: 0), reply, of: LESetCIGParameters.opcode)
        #expect(commands(effects) == [LECreateCIS.opcode])
        return engine
    }

    @Test func openingWaitsForTheGatesOfItsLinksAndForNoOther() throws {
        var engine = IsochronousEngine()
        let gated: Set = [Self.link, Self.other]
        #expect(try engine.open(1, to: [Self.link, Self.other], ConnectedGroupParameters(), gatedLinks: gated) == [])
        #expect(engine.gateOpened(on: Self.link) == [])
        #expect(!engine.awaitsGate(of: Self.link) && engine.awaitsGate(of: Self.other))
        // It closes again before the other one opens.
        engine.gateClosed(on: Self.link)
        #expect(engine.gateOpened(on: Self.other) == [])
        let free = LinkIdentifier(handle: 0x0042, serial: 3)
        let begun = try engine.open(2, to: [free], ConnectedGroupParameters())
        #expect(Self.commands(begun) == [LESetCIGParameters.opcode])
        _ = Self.answer(&engine, .setParameters(cigID: 0), [0x12], of: LESetCIGParameters.opcode)
        #expect(Self.commands(engine.gateOpened(on: Self.link)) == [LESetCIGParameters.opcode])
    }

    @Test func openingsThatWaitAreBounded() throws {
        var engine = IsochronousEngine()
        for number in 0..<UInt64(IsochronousEngine.openingLimit) {
            _ = try engine.open(number, to: [Self.link], ConnectedGroupParameters(), gatedLinks: [Self.link])
        }
        #expect(throws: HostError.limitReached("16 openings of streams wait, the maximum; await an earlier one")) {
            try engine.open(99, to: [Self.link], ConnectedGroupParameters())
        }
    }

    @Test func openingFailsIfAPeerIsNotVerified() throws {
        var engine = IsochronousEngine()
        _ = try engine.open(1, to: [Self.link], ConnectedGroupParameters(), gatedLinks: [Self.link])
        _ = try engine.open(2, to: [Self.other], ConnectedGroupParameters(), gatedLinks: [Self.other])
        let error = HostError.security(.keyMissing)
        #expect(engine.verificationFailed(error, on: Self.link) == [.failed(1, error)])
        #expect(engine.verificationFailed(error, on: Self.link) == [])
        let ended = engine.linkEnded(Self.other, Self.reason, at: Instant(nanoseconds: 0))
        #expect(ended == [.failed(2, .disconnected(Self.reason))])
        #expect(!engine.awaitsGate(of: Self.other))
    }

    @Test func openStreamOfAnUnverifiedPeerEndsAtOnceAndTheOthersStay() throws {
        var engine = try Self.creating()
        for handle in [0x0060, 0x0061] as [ConnectionHandle] {
            _ = engine.established(.sample(handle, bursts: (1, 0)))
            _ = Self.answer(&engine, .setUpPath(handle), [0, 0x60, 0], of: LESetupISODataPath.opcode)
        }
        let stream = try #require(engine.information(of: 0x0060)?.identifier)
        let effects = engine.peerIsUnverified(on: Self.link)
        #expect(Self.commands(effects) == [Disconnect.opcode])
        #expect(effects.last == .ended(stream, Self.reason) && effects.count == 2)
        #expect(engine.endReason(of: stream) == Self.reason)
        #expect(engine.peerIsUnverified(on: Self.link) == [])
        #expect(engine.disconnected(0x0060, Self.reason) == [], "the end was reported")
        #expect(engine.streams[0x0061]?.phase == .open)
    }

    @Test func openingInProgressFailsAtOnceAndItsStreamsEnd() throws {
        var engine = try Self.creating()
        _ = engine.established(.sample(0x0060, bursts: (1, 0)))
        let effects = engine.peerIsUnverified(on: Self.link)
        #expect(effects.first == .failed(5, .disconnected(Self.reason)))
        #expect(Self.commands(effects) == [Disconnect.opcode])
        #expect(Self.commands(engine.established(.sample(0x0061, bursts: (1, 0)))) == [Disconnect.opcode])
        #expect(engine.disconnected(0x0060, Self.reason) == [])
        #expect(Self.commands(engine.disconnected(0x0061, Self.reason)) == [LERemoveCIG.opcode])
    }

    @Test func openingWhoseGroupTheControllerHasNotCreatedYetCreatesNoStream() throws {
        var engine = IsochronousEngine()
        _ = try engine.open(1, to: [Self.link], ConnectedGroupParameters())
        #expect(engine.peerIsUnverified(on: Self.link) == [.failed(1, .disconnected(Self.reason))])
        let reply: [UInt8] = [0, 0, 1, 0x60, 0]
        let effects = Self.answer(&engine, .setParameters(cigID: 0), reply, of: LESetCIGParameters.opcode)
        #expect(Self.commands(effects) == [LERemoveCIG.opcode])
    }

    @Test func requestOfAnUnverifiedCentralIsRejected() throws {
        var engine = IsochronousEngine()
        engine.acceptsRequests = true
        let effects = engine.requested(Self.request, on: Self.link, isUnverified: true, number: 1)
        let rejection = LERejectCISRequest(connectionHandle: 0x0060, reason: .connectionRejectedDueToSecurityReasons)
        #expect(effects == [.send(CommandRequest(rejection, .unawaited))])
        // The app has not answered when the central is no longer verified.
        _ = engine.requested(Self.request, on: Self.link, number: 2)
        #expect(engine.peerIsUnverified(on: Self.link) == [.send(CommandRequest(rejection, .unawaited))])
        #expect(throws: HostError.cancelled) { try engine.accept(2) }
    }

    @Test(arguments: [false, true])
    func acceptedStreamOfAnUnverifiedCentralEnds(isEstablished: Bool) throws {
        var engine = IsochronousEngine()
        engine.acceptsRequests = true
        _ = engine.requested(Self.request, on: Self.link, number: 9)
        _ = try engine.accept(9)
        var effects: Effects = []
        if isEstablished { _ = engine.established(.sample(0x0060, bursts: (1, 0))) }
        effects += engine.peerIsUnverified(on: Self.link)
        if !isEstablished {
            #expect(effects == [], "the controller does not report the stream yet")
            effects += engine.established(.sample(0x0060, bursts: (1, 0)))
        }
        #expect(Self.commands(effects) == [Disconnect.opcode])
        #expect(effects.last == .failed(9, .disconnected(Self.reason)))
        #expect(engine.disconnected(0x0060, Self.reason) == [] && engine.streams.isEmpty)
    }
}
