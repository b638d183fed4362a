import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEVirtualController

@Suite("Connected isochronous streams of controllers")
struct ConnectedStreamTests {
    private static let handle: ConnectionHandle = 0x0E60

    private static func parameters(
        toPeripheral: UInt16 = 100,
        toCentral: UInt16 = 0,
        rtn: UInt8 = 2,
        interval: UInt32 = 10_000,
        framing: ISOFraming = .unframed
    ) -> LESetCIGParameters {
        LESetCIGParameters(
            cigID: 1,
            sduIntervalCToP: interval,
            sduIntervalPToC: interval,
            framing: framing,
            maxTransportLatencyCToP: 40,
            maxTransportLatencyPToC: 40,
            streams: [.init(cisID: 2, maxSDUCToP: toPeripheral, maxSDUPToC: toCentral, rtnCToP: rtn)]
        )
    }

    private static let creation = LECreateCIS(
        streams: [.init(cisConnectionHandle: handle, aclConnectionHandle: LinkWorld.handle)]
    )
    private static let acceptance = LEAcceptCISRequest(connectionHandle: handle)
    private static let disconnection = Disconnect(connectionHandle: handle, reason: .remoteUserTerminatedConnection)

    /// The statuses of the events about the establishment of the stream.
    private static func statuses(_ world: LinkWorld, _ index: Int) -> [HCIErrorCode] {
        world.world.events(LECISEstablishedV2.subeventCode, at: index).compactMap { $0.first }.map {
            HCIErrorCode(rawValue: $0)
        }
    }

    /// Two connected controllers whose hosts support streams.
    private static func world() -> LinkWorld {
        LinkWorld(prepare: { world in
            for index in 0...1 { world.succeed(LESetHostFeature(bitNumber: 32, bitValue: true), at: index) }
        })
    }

    /// The same with a stream from the central to the peripheral, and its data paths.
    private static func established(_ parameters: LESetCIGParameters = parameters()) -> LinkWorld {
        let world = Self.world()
        world.world.succeed(
            parameters,
            LECreateCIS(streams: [.init(cisConnectionHandle: handle, aclConnectionHandle: LinkWorld.handle)]),
            at: 0
        )
        world.run(.milliseconds(100))
        #expect(world.world.events(LECISRequest.subeventCode, at: 1) == [[0x40, 0x00, 0x60, 0x0E, 0x01, 0x02]])
        world.world.succeed(LEAcceptCISRequest(connectionHandle: handle), at: 1)
        world.run(.milliseconds(15))
        for index in 0...1 {
            let events = world.world.events(LECISEstablishedV2.subeventCode, at: index).compactMap {
                try? LECISEstablishedV2(decoding: $0.rawSpan)
            }
            #expect(events.map(\.status) == [.success] && events.first?.isoInterval == 8)
            #expect(events.first?.bnCToP == 1 && events.first?.bnPToC == 0)
        }
        world.world.succeed(LESetupISODataPath(connectionHandle: handle, dataPathDirection: .input), at: 0)
        world.world.succeed(LESetupISODataPath(connectionHandle: handle, dataPathDirection: .output), at: 1)
        world.world.forget()
        return world
    }

    /// Sends an SDU, or its first fragment if it has more bytes.
    private static func send(_ bytes: [UInt8], _ number: UInt16, ofLength length: UInt16? = nil, in world: LinkWorld) {
        world.central.receive(
            PacketBuffer.bytes { buffer in
                buffer.append(PacketType.iso.rawValue)
                ISOPacket.encodeStart(
                    of: ISODataLoadHeader(packetSequenceNumber: number, sduLength: length ?? UInt16(bytes.count)),
                    on: handle,
                    isComplete: length == nil,
                    fragment: bytes.rawSpan,
                    into: &buffer
                )
            }.rawSpan
        )
    }

    private struct Received: Equatable {
        let status: ISOPacketStatus
        let data: [UInt8]
    }

    private static func received(in world: LinkWorld) -> [Received] {
        world.packets(1).filter { $0.first == PacketType.iso.rawValue }.compactMap { bytes in
            guard let packet = try? ISOPacket(decoding: bytes.rawSpan.extracting(droppingFirst: 1)),
                let header = packet.loadHeader
            else { return nil }
            return Received(status: header.packetStatus, data: [UInt8](copying: packet.payload))
        }
    }

    @Test func sdusArriveInOrderOnePerInterval() {
        let world = Self.established()
        for number in 0..<3 { Self.send([UInt8(number)], UInt16(number), in: world) }
        world.run(.milliseconds(35))
        #expect(Self.received(in: world) == (0..<3).map { Received(status: .valid, data: [UInt8($0)]) })
        #expect(world.completed(0) == 3)
    }

    @Test("SDUs of an interval that is no multiple of 1.25 ms arrive in framed PDUs")
    func framedSDUsArrive() {
        let refused = Self.parameters(interval: 10_884)
        #expect(Self.world().world.status(of: refused, to: 0) == .unsupportedFeatureOrParameterValue)
        let world = Self.established(Self.parameters(interval: 10_884, framing: .framed))
        for number in 0..<10 {
            Self.send([UInt8(number)], UInt16(number), in: world)
            world.run(.microseconds(10_884))
        }
        world.run(.milliseconds(30))
        #expect(Self.received(in: world) == (0..<10).map { Received(status: .valid, data: [UInt8($0)]) })
    }

    @Test("The event describes the SDUs, and has the burst of long ones; in version 1 if the host wants no other")
    func eventDescribesTheSDUs() throws {
        let world = Self.world()
        world.world.succeed(LESetEventMask(leEventMask: [.cisEstablished, .cisRequest]), at: 1)
        world.world.succeed(
            Self.parameters(toPeripheral: 1000, toCentral: 4095, interval: 20_000, framing: .framed),
            LECreateCIS(streams: [.init(cisConnectionHandle: Self.handle, aclConnectionHandle: LinkWorld.handle)]),
            at: 0
        )
        world.run(.milliseconds(100))
        world.world.succeed(LEAcceptCISRequest(connectionHandle: Self.handle), at: 1)
        world.run(.milliseconds(30))
        #expect(world.world.events(LECISEstablished.subeventCode, at: 0).isEmpty)
        let newest = try #require(world.world.events(LECISEstablishedV2.subeventCode, at: 0).first)
        let event = try LECISEstablishedV2(decoding: newest.rawSpan)
        #expect(event.maxSDUCToP == 1000 && event.maxSDUPToC == 4095 && event.framing == .framed)
        #expect(event.sduIntervalCToP == 20_000 && event.sduIntervalPToC == 20_000)
        // 17 PDUs for each SDU of 20 ms: 15 in 17.5 ms.
        #expect(event.isoInterval == 14 && event.bnCToP == 4 && event.bnPToC == 15)
        #expect(world.world.events(LECISEstablishedV2.subeventCode, at: 1).isEmpty)
        let older = try #require(world.world.events(LECISEstablished.subeventCode, at: 1).first)
        #expect(try LECISEstablished(decoding: older.rawSpan).bnPToC == 15)
    }

    @Test("The streams of a framed group have the same ISO interval, and unused SDU intervals do not count")
    func streamsOfAGroupHaveTheSameInterval() throws {
        func command(_ framing: ISOFraming, interval: UInt32, unused: UInt32, _ sdus: [UInt16]) -> LESetCIGParameters {
            LESetCIGParameters(
                cigID: 1,
                sduIntervalCToP: interval,
                sduIntervalPToC: unused,
                framing: framing,
                maxTransportLatencyCToP: 40,
                maxTransportLatencyPToC: 40,
                streams: zip(1..., sdus).map { .init(cisID: $0, maxSDUCToP: $1, maxSDUPToC: 0) }
            )
        }
        let framed = command(.framed, interval: 20_000, unused: 20_000, [1000, 4095])
        #expect(StreamParameters.all(of: framed)?.map(\.isoInterval) == [14, 14])
        let unframed = command(.unframed, interval: 10_000, unused: 10_884, [100])
        #expect(StreamParameters.all(of: unframed)?.map(\.isoInterval) == [8])
        // Many short SDUs share the PDUs of an event.
        let short = try #require(StreamParameters.all(of: command(.framed, interval: 255, unused: 255, [100]))?.first)
        #expect(short.isoInterval == 4 && short.central.burst(in: 4) == 9 && short.central.maximumPDU(in: 4) == 231)
    }

    @Test("An unframed group whose SDUs need more than 15 PDUs in an ISO interval is refused")
    func longUnframedSDUsAreRefused() {
        #expect(
            Self.world().world.status(of: Self.parameters(toPeripheral: 3766), to: 0)
                == .unsupportedFeatureOrParameterValue
        )
        Self.world().world.succeed(Self.parameters(toPeripheral: 3765), at: 0)
    }

    @Test func lostSDUsAreReported() {
        let world = Self.established(Self.parameters(rtn: 0))
        world.air.conditions = RadioConditions(loss: 0.5)
        for number in 0..<10 {
            Self.send([UInt8(number)], UInt16(number), in: world)
            world.run(.milliseconds(10))
        }
        let received = Self.received(in: world)
        let lost = received.count { $0.status == .lost && $0.data.isEmpty }
        #expect(received.count >= 9 && lost > 0 && lost < received.count)
    }

    @Test func streamEndsOnBothSides() {
        let world = Self.established()
        world.world.succeed(Disconnect(connectionHandle: Self.handle, reason: .remoteUserTerminatedConnection), at: 0)
        world.run(.milliseconds(50))
        #expect(world.told(0).last == [0x04, 0x05, 0x04, 0x00, 0x60, 0x0E, 0x16])
        #expect(world.told(1).last == [0x04, 0x05, 0x04, 0x00, 0x60, 0x0E, 0x13])
        world.world.succeed(LERemoveCIG(cigID: 1), at: 0)
        #expect(world.central.isochronous.streams.isEmpty && world.peripheral.isochronous.streams.isEmpty)
    }

    // MARK: Cancelling

    @Test(
        "A stream is cancelled by the central before the request, after it, and after its acceptance",
        arguments: 0...2
    )
    func creationIsCancelledByTheCentral(answers: Int) {
        let world = Self.world()
        world.world.succeed(Self.parameters(), Self.creation, at: 0)
        if answers > 0 { world.run(.milliseconds(100)) }
        if answers > 1 { world.world.succeed(Self.acceptance, at: 1) }
        world.world.succeed(Self.disconnection, at: 0)
        #expect(Self.statuses(world, 0) == [.operationCancelledByHost])
        #expect(world.told(0).last == [0x04, 0x05, 0x04, 0x00, 0x60, 0x0E, 0x16])
        world.run(.seconds(6))
        #expect(Self.statuses(world, 0) == [.operationCancelledByHost])
        #expect(Self.statuses(world, 1) == (answers == 0 ? [] : [.operationCancelledByHost]))
        #expect(world.peripheral.isochronous.streams.isEmpty)
        world.world.succeed(LERemoveCIG(cigID: 1), at: 0)
    }

    @Test("The answer to a request that was cancelled has no effect on the next one", arguments: [true, false])
    func answerToACancelledRequestHasNoEffectOnTheNext(isAccepted: Bool) {
        let world = Self.world()
        world.world.succeed(Self.parameters(), Self.creation, at: 0)
        world.run(.milliseconds(100))
        let rejection = LERejectCISRequest(
            connectionHandle: Self.handle,
            reason: .connectionRejectedDueToLimitedResources
        )
        if isAccepted { world.world.succeed(Self.acceptance, at: 1) } else { world.world.succeed(rejection, at: 1) }
        world.world.succeed(Self.disconnection, Self.creation, at: 0)
        world.world.forget()
        world.run(.milliseconds(100))
        world.world.succeed(Self.acceptance, at: 1)
        world.run(.milliseconds(15))
        #expect(Self.statuses(world, 0) == [.success] && Self.statuses(world, 1).last == .success)
    }

    @Test func streamThatCannotBeDisconnectedIsRefused() {
        let world = Self.world()
        world.world.succeed(Self.parameters(), at: 0)
        #expect(world.world.status(of: Self.disconnection, to: 0) == .commandDisallowed)
        let twice = LECreateCIS(streams: Self.creation.streams + Self.creation.streams)
        #expect(world.world.status(of: twice, to: 0) == .invalidHCICommandParameters)
        world.world.succeed(Self.creation, at: 0)
        world.run(.milliseconds(100))
        #expect(world.world.status(of: Self.disconnection, to: 1) == .commandDisallowed)
        world.world.succeed(Self.acceptance, at: 1)
        #expect(world.world.status(of: Self.acceptance, to: 1) == .commandDisallowed)
    }

    @Test func disconnectionWithAReasonThatNoHostMayGiveIsRefused() {
        let world = Self.established()
        let command = Disconnect(connectionHandle: Self.handle, reason: .connectionTimeout)
        #expect(world.world.status(of: command, to: 0) == .invalidHCICommandParameters)
        world.world.succeed(Self.disconnection, at: 0)
    }

    // MARK: Data paths

    @Test func dataPathsAreSetUpBeforeTheStreamIsEstablished() {
        let world = Self.world()
        let remove = LERemoveISODataPath(connectionHandle: Self.handle, dataPathDirection: .input)
        let input = LESetupISODataPath(connectionHandle: Self.handle, dataPathDirection: .input)
        let output = LESetupISODataPath(connectionHandle: Self.handle, dataPathDirection: .output)
        world.world.succeed(Self.parameters(), input, remove, at: 0)
        #expect(world.world.status(of: remove, to: 0) == .commandDisallowed)
        world.world.succeed(input, Self.creation, at: 0)
        world.run(.milliseconds(100))
        #expect(world.world.status(of: output, to: 1) == .commandDisallowed)
        world.world.succeed(Self.acceptance, output, at: 1)
        world.run(.milliseconds(15))
        Self.send([7], 0, in: world)
        world.run(.milliseconds(30))
        #expect(Self.received(in: world) == [Received(status: .valid, data: [7])])
    }

    @Test func dataPathsOfTheCentralOutliveADisconnection() {
        let world = Self.established()
        for number: UInt16 in 0..<3 { Self.send([1], number, in: world) }
        world.world.succeed(Self.disconnection, at: 0)
        #expect(world.central.isochronous.packetsHeld == 0)
        world.run(.milliseconds(50))
        let input = LESetupISODataPath(connectionHandle: Self.handle, dataPathDirection: .input)
        #expect(world.world.status(of: input, to: 0) == .commandDisallowed)
        world.world.succeed(Self.creation, at: 0)
        world.run(.milliseconds(100))
        let output = LESetupISODataPath(connectionHandle: Self.handle, dataPathDirection: .output)
        world.world.succeed(Self.acceptance, output, at: 1)
        world.run(.milliseconds(15))
        world.world.forget()
        Self.send([7], 0, in: world)
        world.run(.milliseconds(30))
        #expect(Self.received(in: world) == [Received(status: .valid, data: [7])])
        #expect(world.completed(0) == 1 && world.central.isochronous.packetsHeld == 0)
    }

    @Test func removalOfADataPathReturnsTheBuffersOfAPartialSDU() {
        let world = Self.established()
        Self.send([1], 0, ofLength: 10, in: world)
        #expect(world.central.isochronous.packetsHeld == 1)
        world.world.send(LERemoveISODataPath(connectionHandle: Self.handle, dataPathDirection: .input), to: 0)
        #expect(world.completed(0) == 1 && world.central.isochronous.packetsHeld == 0)
    }

    // MARK: The end of the link, and requests

    @Test func endOfTheLinkEndsItsStreamsFirst() {
        let world = Self.established()
        world.world.succeed(
            Disconnect(connectionHandle: LinkWorld.handle, reason: .remoteUserTerminatedConnection),
            at: 0
        )
        world.run(.seconds(1))
        for index in 0...1 {
            let ends = world.told(index).filter { $0.starts(with: [0x04, 0x05]) }.map { $0[4] }
            #expect(ends == [0x60, 0x40])
        }
    }

    @Test func rejectionReachesTheCentral() {
        let world = Self.world()
        world.world.succeed(
            Self.parameters(),
            LECreateCIS(streams: [.init(cisConnectionHandle: Self.handle, aclConnectionHandle: LinkWorld.handle)]),
            at: 0
        )
        world.run(.milliseconds(100))
        let rejection = LERejectCISRequest(
            connectionHandle: Self.handle,
            reason: .connectionRejectedDueToLimitedResources
        )
        world.world.succeed(rejection, at: 1)
        world.run(.milliseconds(50))
        #expect(world.world.events(LECISEstablishedV2.subeventCode, at: 0).map { $0.first } == [0x0D])
        #expect(world.world.status(of: rejection, to: 1) == .unknownConnectionIdentifier)
    }

    @Test func hostsFeatureIsRequiredAndRefusedWithALink() {
        let world = LinkWorld()
        #expect(
            world.world.status(of: LESetHostFeature(bitNumber: 32, bitValue: true), to: 0) == .commandDisallowed
        )
        world.world.succeed(Self.parameters(), at: 0)
        let creation = LECreateCIS(
            streams: [.init(cisConnectionHandle: Self.handle, aclConnectionHandle: LinkWorld.handle)]
        )
        #expect(world.world.status(of: creation, to: 0) == .commandDisallowed)
    }

    @Test func packetsBeyondTheBuffersAreDroppedAndReported() {
        let world = Self.established()
        for number in 0..<Int(IsochronousState.packetCount) + 1 { Self.send([1], UInt16(number), in: world) }
        world.run(.zero)
        #expect(world.told(0).last == [0x04, 0x1A, 0x01, 0x02])
        #expect(world.central.statistics.packetsBeyondCredit == 1)
    }

    @Test func requestThatTheHostDoesNotAnswerIsRejectedAfterATime() {
        let world = Self.world()
        world.world.succeed(
            Self.parameters(),
            LECreateCIS(streams: [.init(cisConnectionHandle: Self.handle, aclConnectionHandle: LinkWorld.handle)]),
            at: 0
        )
        world.run(.seconds(4))
        #expect(world.world.events(LECISRequest.subeventCode, at: 1).count == 1)
        #expect(world.world.events(LECISEstablishedV2.subeventCode, at: 0).isEmpty)
        world.run(.seconds(2))
        for index in 0...1 {
            #expect(world.world.events(LECISEstablishedV2.subeventCode, at: index).map { $0.first } == [0x10])
        }
        let acceptance = LEAcceptCISRequest(connectionHandle: Self.handle)
        #expect(world.world.status(of: acceptance, to: 1) == .unknownConnectionIdentifier)
    }

    @Test(arguments: [
        LEFeatures.connectedIsochronousStreamCentral, .connectedIsochronousStreamPeripheral, .isochronousBroadcaster,
        .synchronizedReceiver,
    ])
    func commandsOfDataPathsNeedAnyFeatureOfStreams(_ feature: LEFeatures) {
        let commands = CommandTable.all.supported(by: feature)
        #expect(commands.contains(LESetupISODataPath.self) && commands.contains(LERemoveISODataPath.self))
        #expect(commands.contains(LEReadISOTXSync.self) == (feature != .synchronizedReceiver))
        #expect(!CommandTable.all.supported(by: .bluetooth42).contains(LESetupISODataPath.self))
    }
}
