import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The engine of connected isochronous streams")
struct IsochronousEngineTests {
    typealias Effects = [IsochronousEffect]

    private static let link = LinkIdentifier(handle: 0x0040, serial: 1)
    private static let other = LinkIdentifier(handle: 0x0041, serial: 2)
    private static let now = Instant(nanoseconds: 0)
    private static let lostLink = DisconnectionReason.controller(.connectionTimeout)

    /// The opcodes of the commands among effects.
    private static func commands(_ effects: Effects) -> [HCIOpcode] {
        effects.compactMap { if case .send(let request) = $0 { request.opcode } else { nil } }
    }

    private static func answer(
        _ engine: inout IsochronousEngine,
        _ step: IsochronousStep,
        _ reply: [UInt8] = [0],
        of opcode: HCIOpcode
    ) -> Effects {
        engine.answered(step, reply.rawSpan, of: opcode)
    }

    /// An engine whose controller has accepted the parameters of two streams, and the command that creates them.
    private static func creating() throws -> IsochronousEngine {
        var engine = IsochronousEngine()
        engine.sender.configure(packetLength: 100, packetCount: 4)
        let begun = try engine.open(5, to: [link, other], ConnectedGroupParameters())
        #expect(commands(begun) == [LESetCIGParameters.opcode])
        let created = answer(
            &engine,
            .setParameters(cigID: 0),
            [0, 0, 2, 0x60, 0, 0x61, 0],
            of: LESetCIGParameters.opcode
        )
        guard case .send(let request)? = created.first, created.count == 1 else {
            Issue.record("\(created)")
            return engine
        }
        #expect(request.packet.hexadecimal == "01642009026000400061004100")
        return engine
    }

    /// An engine with two open streams.
    private static func opened() throws -> IsochronousEngine {
        var engine = try creating()
        for handle in [0x0060, 0x0061] as [ConnectionHandle] {
            #expect(
                commands(engine.established(.sample(handle))) == [0x206E, 0x206E].map(HCIOpcode.init(rawValue:))
            )
        }
        for _ in 0..<3 {
            let handle: ConnectionHandle = engine.streams[0x0060]?.phase == .open ? 0x0061 : 0x0060
            #expect(answer(&engine, .setUpPath(handle), [0, 0x60, 0], of: LESetupISODataPath.opcode) == [])
        }
        let effects = answer(&engine, .setUpPath(0x0061), [0, 0x61, 0], of: LESetupISODataPath.opcode)
        guard case .opened(5, let streams)? = effects.first else {
            Issue.record("\(effects)")
            return engine
        }
        #expect(effects.count == 1 && streams.map(\.link) == [link, other])
        #expect(streams.allSatisfy { $0.canSend && $0.canReceive && $0.interval == .milliseconds(10) })
        return engine
    }

    private static func identifier(_ engine: IsochronousEngine, _ handle: ConnectionHandle) throws
        -> IsochronousStreamIdentifier
    {
        try #require(engine.streams[handle]?.information?.identifier)
    }

    @Test func groupOpensWhenAllDataPathsExist() throws {
        let engine = try Self.opened()
        #expect(engine.groupCount == 1)
    }

    @Test func groupIsRemovedWithItsLastStream() throws {
        var engine = try Self.opened()
        let first = try Self.identifier(engine, 0x0060)
        #expect(Self.commands(engine.close(first)) == [Disconnect.opcode])
        #expect(engine.close(first) == [])
        let reason = DisconnectionReason.controller(.connectionTerminatedByLocalHost)
        #expect(engine.disconnected(0x0060, reason) == [.ended(first, reason)])
        let second = try Self.identifier(engine, 0x0061)
        let effects = engine.disconnected(0x0061, Self.lostLink)
        #expect(effects.first == .ended(second, Self.lostLink))
        #expect(Self.commands(effects) == [LERemoveCIG.opcode])
        _ = Self.answer(&engine, .removeGroup(cigID: 0), [0, 0], of: LERemoveCIG.opcode)
        #expect(engine.groupCount == 0 && engine.streams.isEmpty)
        #expect(!engine.knows(0x0060, at: Self.now))
    }

    @Test func endOfALinkEndsItsStreamsOnce() throws {
        var engine = try Self.opened()
        let first = try Self.identifier(engine, 0x0060)
        #expect(engine.linkEnded(Self.link, Self.lostLink, at: Self.now) == [.ended(first, Self.lostLink)])
        #expect(engine.knows(0x0060, at: Self.now))
        #expect(engine.disconnected(0x0060, Self.lostLink) == [])
    }

    @Test func handleOfAStreamThatEndedWithItsLinkExpires() throws {
        var engine = IsochronousEngine()
        engine.acceptsRequests = true
        let event = LECISRequest(aclConnectionHandle: 0x0040, cisConnectionHandle: 0x0060, cigID: 1, cisID: 2)
        let later = Self.now + IsochronousEngine.endedLifetime
        for isReported in [false, true] {
            _ = engine.requested(event, on: Self.link, number: 9)
            _ = try engine.accept(9)
            _ = engine.established(.sample(0x0060))
            _ = engine.linkEnded(Self.link, Self.lostLink, at: Self.now)
            #expect(engine.knows(0x0060, at: Self.now))
            if isReported {
                #expect(engine.disconnected(0x0060, Self.lostLink) == [])
                #expect(!engine.knows(0x0060, at: Self.now))
            } else {
                #expect(!engine.knows(0x0060, at: later))
            }
        }
    }

    @Test(arguments: [HCIErrorCode.commandDisallowed, .hardwareFailure])
    func groupThatTheControllerDoesNotRemoveStays(_ status: HCIErrorCode) throws {
        var engine = try Self.opened()
        for handle in [0x0060, 0x0061] as [ConnectionHandle] { _ = engine.disconnected(handle, Self.lostLink) }
        #expect(Self.answer(&engine, .removeGroup(cigID: 0), [status.rawValue], of: LERemoveCIG.opcode) == [])
        #expect(engine.groupCount == 1)
        let effects = try engine.open(9, to: [Self.link], ConnectedGroupParameters())
        // The controller is asked again, and the new group has another identifier.
        #expect(Self.commands(effects) == [LERemoveCIG.opcode, LESetCIGParameters.opcode])
        guard case .send(let request)? = effects.last else {
            Issue.record("\(effects)")
            return
        }
        #expect(request.tag == .isochronous(.setParameters(cigID: 1)))
        _ = Self.answer(&engine, .removeGroup(cigID: 0), [0, 0], of: LERemoveCIG.opcode)
        #expect(engine.groupCount == 1 && engine.streams.isEmpty)
    }

    @Test func groupThatTheControllerDoesNotHaveIsForgotten() throws {
        var engine = try Self.opened()
        for handle in [0x0060, 0x0061] as [ConnectionHandle] { _ = engine.disconnected(handle, Self.lostLink) }
        _ = Self.answer(&engine, .removeGroup(cigID: 0), [0x02], of: LERemoveCIG.opcode)
        #expect(engine.groupCount == 0)
    }

    @Test func sduBeyondTheMaximumOfTheStreamIsRefused() throws {
        var engine = try Self.opened()
        let first = try Self.identifier(engine, 0x0060)
        let longest = [UInt8](repeating: 0, count: ConnectedGroupParameters().maximumSDUToPeripheral)
        #expect(engine.send(longest + [0], timeStamp: nil, on: first, at: Self.now) == .tooLong(maximum: longest.count))
        #expect(engine.send(longest, timeStamp: nil, on: first, at: Self.now) == .taken)
        // The controller may free the buffers of an SDU only when it has all of it.
        engine.sender.configure(packetLength: 50, packetCount: 2)
        #expect(engine.send(longest, timeStamp: nil, on: first, at: Self.now) == .tooLong(maximum: 92))
    }

    /// The event of version 1, which describes no SDUs.
    private static func olderEvent(burst: UInt8, maximumPDU: UInt16) -> LECISEstablished {
        LECISEstablished(
            connectionHandle: 0x0060,
            cigSyncDelay: 1000,
            cisSyncDelay: 1000,
            transportLatencyCToP: 1000,
            transportLatencyPToC: 1000,
            phyCToP: .le2M,
            phyPToC: .le2M,
            nse: 1,
            bnCToP: 1,
            bnPToC: burst,
            ftCToP: 1,
            ftPToC: 1,
            maxPDUCToP: 100,
            maxPDUPToC: maximumPDU,
            isoInterval: 8
        )
    }

    @Test(
        "The SDU interval of the peripheral follows from the burst if the event does not describe SDUs",
        arguments: [(1, 100, 10_000), (2, 100, 5000), (4, 251, 10_000), (255, 0xFFFF, 10_000), (0, 0, 10_000)]
            as [(UInt8, UInt16, UInt32)]
    )
    func sduIntervalOfThePeripheralFollowsFromTheBurst(_ burst: UInt8, _ maximumPDU: UInt16, _ interval: UInt32) {
        let event = LECISEstablishedV2(Self.olderEvent(burst: burst, maximumPDU: maximumPDU))
        #expect(event.sduIntervalPToC == interval && event.maxSDUPToC == (burst == 0 ? 0 : 4095))
    }

    @Test(
        "PDUs are unframed only if the SDUs of an ISO interval fit the burst and the latency",
        arguments: [
            (10_000, 3765, 40_000, 15, .unframed), (10_000, 3766, 40_000, 15, .framed),
            (7500, 120, 5000, 15, .unframed), (1000, 753, 40_000, 15, .unframed), (1000, 754, 40_000, 15, .framed),
            (1000, 20, 4000, 15, .framed),
            (10_884, 120, 40_000, 15, .framed), (255, 20, 40_000, 15, .framed), (10_000, 1757, 40_000, 7, .unframed),
            (10_000, 1758, 40_000, 7, .framed), (1_048_575, 20, 4_000_000, 15, .framed),
            (1_048_750, 20, 5000, 15, .unframed), (5000, 0, 5000, 15, .unframed), (11_000, 20, 44_000, 15, .framed),
            (11_000, 20, 44_001, 15, .unframed),
        ] as [(Int, Int, Int, Int, ISOFraming)]
    )
    func framingFollowsFromTheSDUs(
        _ interval: Int,
        _ longest: Int,
        _ latency: Int,
        _ limit: Int,
        _ framing: ISOFraming
    ) {
        #expect(
            ISOFraming.of(sduInterval: interval, maximumSDU: longest, latency: latency, burstLimit: limit) == framing
        )
    }

    @Test("Groups whose SDU interval fits no ISO interval are created with framed PDUs")
    func groupsAreFramedIfNecessary() throws {
        let connected = ConnectedGroupParameters(sduInterval: .microseconds(10_884))
        #expect(try connected.command(cigID: 1, streamCount: 1).framing == .framed)
        #expect(try ConnectedGroupParameters().command(cigID: 1, streamCount: 1).framing == .unframed)
        let broadcast = BroadcastGroupParameters(sduInterval: .microseconds(10_884))
        #expect(try broadcast.command(bigHandle: 1, advertisingHandle: 1).framing == .framed)
        #expect(try BroadcastGroupParameters().command(bigHandle: 1, advertisingHandle: 1).framing == .unframed)
    }

    @Test("The peripheral of a stream sends no longer SDUs than the central has agreed to")
    func longestSDUOfThePeripheralIsTheAgreedOne() throws {
        var engine = IsochronousEngine()
        engine.acceptsRequests = true
        engine.sender.configure(packetLength: 100, packetCount: 4)
        let event = LECISRequest(aclConnectionHandle: 0x0040, cisConnectionHandle: 0x0060, cigID: 1, cisID: 2)
        _ = engine.requested(event, on: Self.link, number: 9)
        _ = try engine.accept(9)
        _ = engine.established(.sample(0x0060, bursts: (0, 2), sdu: (160, 7500)))
        let information = try #require(engine.information(of: 0x0060))
        #expect(information.maximumSDU == 160 && information.sduInterval == .microseconds(7500))
        // A side without SDUs has no interval either.
        #expect(LECISEstablishedV2.sample(0x0060, sdu: (0, 0)).sduIntervalOfPeripheral == .milliseconds(10))
        _ = Self.answer(&engine, .setUpPath(0x0060), [0, 0x60, 0], of: LESetupISODataPath.opcode)
        let longer = [UInt8](repeating: 1, count: 161)
        #expect(
            engine.send(longer, timeStamp: nil, on: information.identifier, at: Self.now) == .tooLong(maximum: 160)
        )
    }

    @Test func failureOfOneStreamEndsTheOthersAndFailsTheOpening() throws {
        var engine = try Self.creating()
        _ = engine.established(.sample(0x0060))
        let effects = engine.established(.sample(0x0061, .unsupportedRemoteFeature))
        #expect(Self.commands(effects) == [Disconnect.opcode])
        let ended = engine.disconnected(0x0060, .controller(.connectionTerminatedByLocalHost))
        #expect(Self.commands(ended) == [LERemoveCIG.opcode])
        #expect(ended.last == .failed(5, .command(.status(.unsupportedRemoteFeature, LECreateCIS.opcode))))
    }

    @Test func refusedParametersFailTheOpeningAndLetTheNextBegin() throws {
        var engine = IsochronousEngine()
        _ = try engine.open(1, to: [Self.link], ConnectedGroupParameters())
        #expect(try engine.open(2, to: [Self.link], ConnectedGroupParameters()) == [])
        let effects = Self.answer(&engine, .setParameters(cigID: 0), [0x12], of: LESetCIGParameters.opcode)
        #expect(
            effects.first
                == .failed(1, .command(.status(.invalidHCICommandParameters, LESetCIGParameters.opcode)))
        )
        #expect(Self.commands(effects) == [LESetCIGParameters.opcode])
    }

    @Test func eachOpeningFailsIfTheControllerKeepsAllGroups() throws {
        var engine = IsochronousEngine()
        _ = try engine.open(1, to: [Self.link], ConnectedGroupParameters())
        for cigID in 1...0xEF as ClosedRange<UInt8> {
            engine.groups[cigID] = IsochronousEngine.Group(removal: .refused)
        }
        for number in [2, 3] as [UInt64] {
            #expect(try engine.open(number, to: [Self.other], ConnectedGroupParameters()) == [])
        }
        _ = engine.cancelOpening(1)
        let effects = Self.answer(
            &engine,
            .setParameters(cigID: 0),
            [0, 0, 1, 0x60, 0],
            of: LESetCIGParameters.opcode
        )
        // The controller is asked to remove each group once.
        #expect(Self.commands(effects) == Array(repeating: LERemoveCIG.opcode, count: 0xF0))
        let error = HostError.limitReached(
            "the controller keeps 240 groups of streams, the maximum; try again after one has ended"
        )
        #expect(Array(effects.suffix(2)) == [.failed(2, error), .failed(3, error)])
    }

    @Test func handlesOfAnotherNumberThanRequestedFailTheOpening() throws {
        var engine = IsochronousEngine()
        _ = try engine.open(1, to: [Self.link, Self.other], ConnectedGroupParameters())
        let effects = Self.answer(
            &engine,
            .setParameters(cigID: 0),
            [0, 0, 1, 0x60, 0],
            of: LESetCIGParameters.opcode
        )
        #expect(Self.commands(effects) == [LERemoveCIG.opcode])
        #expect(effects.contains { if case .failed(1, .controllerFailed) = $0 { true } else { false } })
    }

    @Test func cancelledOpeningEndsItsStreams() throws {
        var engine = try Self.creating()
        _ = engine.cancelOpening(5)
        #expect(Self.commands(engine.established(.sample(0x0060))) == [Disconnect.opcode])
        let effects = engine.established(.sample(0x0061, .connectionFailedToBeEstablished))
        #expect(Self.commands(effects) == [])
        let ended = engine.disconnected(0x0060, .controller(.connectionTerminatedByLocalHost))
        #expect(Self.commands(ended) == [LERemoveCIG.opcode] && ended.count == 1)
    }

    /// Whether another opening begins.
    private static func isFree(_ engine: inout IsochronousEngine) throws -> Bool {
        commands(try engine.open(9, to: [other], ConnectedGroupParameters())) == [LESetCIGParameters.opcode]
    }

    @Test func cancelledOpeningWhoseLinkEndsBeforeItsStreamLetsTheNextBegin() throws {
        var engine = IsochronousEngine()
        _ = try engine.open(1, to: [Self.link], ConnectedGroupParameters())
        _ = Self.answer(&engine, .setParameters(cigID: 0), [0, 0, 1, 0x60, 0], of: LESetCIGParameters.opcode)
        _ = engine.cancelOpening(1)
        #expect(Self.commands(engine.linkEnded(Self.link, Self.lostLink, at: Self.now)) == [LERemoveCIG.opcode])
        #expect(engine.established(.sample(0x0060, .connectionTimeout)) == [])
        #expect(try Self.isFree(&engine))
    }

    @Test func openingThatIsCancelledBeforeItsDataPathsLetsTheNextBegin() throws {
        var engine = IsochronousEngine()
        _ = try engine.open(1, to: [Self.link], ConnectedGroupParameters())
        _ = Self.answer(&engine, .setParameters(cigID: 0), [0, 0, 1, 0x60, 0], of: LESetCIGParameters.opcode)
        _ = engine.established(.sample(0x0060))
        #expect(Self.commands(engine.cancelOpening(1)) == [Disconnect.opcode])
        for _ in 0..<2 {
            #expect(Self.answer(&engine, .setUpPath(0x0060), [0, 0x60, 0], of: LESetupISODataPath.opcode) == [])
        }
        let ended = engine.disconnected(0x0060, .controller(.connectionTerminatedByLocalHost))
        #expect(Self.commands(ended) == [LERemoveCIG.opcode])
        #expect(try Self.isFree(&engine))
    }

    @Test func openingsEndWithTheirLinksBeforeTheirStreamsAreCreated() throws {
        var engine = IsochronousEngine()
        _ = try engine.open(1, to: [Self.link, Self.other], ConnectedGroupParameters())
        _ = try engine.open(2, to: [Self.link], ConnectedGroupParameters())
        _ = try engine.open(3, to: [Self.other], ConnectedGroupParameters())
        #expect(engine.linkEnded(Self.link, Self.lostLink, at: Self.now) == [.failed(2, .disconnected(Self.lostLink))])
        let effects = Self.answer(
            &engine,
            .setParameters(cigID: 0),
            [0, 0, 2, 0x60, 0, 0x61, 0],
            of: LESetCIGParameters.opcode
        )
        #expect(Self.commands(effects) == [LERemoveCIG.opcode, LESetCIGParameters.opcode])
        #expect(effects.contains(.failed(1, .disconnected(Self.lostLink))))
    }

    @Test func packetsOfAStreamOccupyTheirBuffersUntilItHasEnded() throws {
        var engine = try Self.opened()
        let first = try Self.identifier(engine, 0x0060)
        for _ in 0..<5 { #expect(engine.send([1], timeStamp: nil, on: first, at: Self.now) == .taken) }
        var buffer = PacketBuffer()
        while engine.sender.nextPacket(into: &buffer) != nil {}
        #expect(engine.sender.credits == 0)
        _ = engine.close(first)
        #expect(engine.sender.credits == 0 && engine.sender.unsentCount(0x0060) == 0)
        #expect(engine.sender.completed(1, on: 0x0060) && engine.sender.credits == 1)
        _ = engine.disconnected(0x0060, .controller(.connectionTerminatedByLocalHost))
        #expect(engine.sender.credits == 4)
    }

    @Test func requestThatHasExpiredMakesRoomForOthers() throws {
        var engine = IsochronousEngine()
        engine.acceptsRequests = true
        let event = LECISRequest(aclConnectionHandle: 0x0040, cisConnectionHandle: 0x0060, cigID: 1, cisID: 2)
        for number in 1...100 as ClosedRange<UInt64> {
            #expect(Self.commands(engine.requested(event, on: Self.link, number: number)) == [])
            #expect(engine.knows(0x0060, at: Self.now))
            _ = engine.established(.sample(0x0060, .connectionAcceptTimeoutExceeded))
            #expect(engine.requests.isEmpty)
            #expect(throws: HostError.cancelled) { try engine.accept(number) }
        }
        _ = engine.requested(event, on: Self.link, number: 101)
        // The central has requested it again, which the controller reports with the same handle.
        _ = engine.requested(event, on: Self.link, number: 102)
        #expect(throws: HostError.cancelled) { try engine.accept(101) }
        #expect(Self.commands(try engine.accept(102)) == [LEAcceptCISRequest.opcode])
    }

    @Test func requestIsRejectedWithoutAnApp() {
        var engine = IsochronousEngine()
        let request = LECISRequest(aclConnectionHandle: 0x0040, cisConnectionHandle: 0x0060, cigID: 1, cisID: 2)
        #expect(Self.commands(engine.requested(request, on: Self.link, number: 1)) == [LERejectCISRequest.opcode])
        engine.acceptsRequests = true
        #expect(Self.commands(engine.requested(request, on: nil, number: 1)) == [LERejectCISRequest.opcode])
    }

    @Test func acceptedRequestOpensWithTheDirectionsOfTheController() throws {
        var engine = IsochronousEngine()
        engine.acceptsRequests = true
        let event = LECISRequest(aclConnectionHandle: 0x0040, cisConnectionHandle: 0x0060, cigID: 1, cisID: 2)
        let request = IsochronousStreamRequest(number: 9, link: Self.link, cigID: 1, cisID: 2)
        #expect(engine.requested(event, on: Self.link, number: 9) == [.requested(request)])
        #expect(Self.commands(try engine.accept(9)) == [LEAcceptCISRequest.opcode])
        #expect(throws: HostError.cancelled) { try engine.accept(9) }
        let effects = engine.established(.sample(0x0060, bursts: (1, 0)))
        #expect(Self.commands(effects) == [LESetupISODataPath.opcode])
        let opened = Self.answer(&engine, .setUpPath(0x0060), [0, 0x60, 0], of: LESetupISODataPath.opcode)
        guard case .opened(9, let streams)? = opened.first else {
            Issue.record("\(opened)")
            return
        }
        #expect(streams.map(\.canSend) == [false] && streams.map(\.canReceive) == [true])
        #expect(engine.send([1], timeStamp: nil, on: streams[0].identifier, at: Self.now) == .notOpen)
        #expect(engine.disconnected(0x0060, Self.lostLink) == [.ended(streams[0].identifier, Self.lostLink)])
        #expect(engine.streams.isEmpty && !engine.knows(0x0060, at: Self.now))
    }

    @Test func unansweredRequestsAreBounded() {
        var engine = IsochronousEngine()
        engine.acceptsRequests = true
        for number in 0...IsochronousEngine.requestLimit {
            let handle = ConnectionHandle(UInt16(0x0060 + number))
            let event = LECISRequest(aclConnectionHandle: 0x0040, cisConnectionHandle: handle, cigID: 1, cisID: 2)
            let effects = engine.requested(event, on: Self.link, number: UInt64(number))
            #expect(Self.commands(effects).isEmpty == (number < IsochronousEngine.requestLimit))
        }
    }

    @Test func resetEndsEverythingOnce() throws {
        var engine = try Self.opened()
        _ = try engine.open(6, to: [Self.link], ConnectedGroupParameters())
        let effects = engine.reset(.notReady, .adapterClosed)
        #expect(effects.count == 3 && effects.last == .failed(6, .notReady))
        #expect(engine.reset(.notReady, .adapterClosed) == [])
    }
}
