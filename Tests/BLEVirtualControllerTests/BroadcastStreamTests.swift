import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEVirtualController

@Suite("Broadcast isochronous streams of controllers")
struct BroadcastStreamTests {
    private static let handle: ConnectionHandle = 0x0E60

    private static func create(
        _ big: UInt8 = 1,
        count: UInt8 = 2,
        maxSDU: UInt16 = 100,
        rtn: UInt8 = 2,
        interval: UInt32 = 10_000,
        framing: ISOFraming = .unframed,
        code: UInt128? = nil
    ) -> LECreateBIG {
        LECreateBIG(
            bigHandle: big,
            advertisingHandle: 3,
            numBIS: count,
            sduInterval: interval,
            maxSDU: maxSDU,
            maxTransportLatency: 40,
            rtn: rtn,
            framing: framing,
            broadcastCode: code
        )
    }

    private static func createSync(
        code: UInt128? = nil,
        streams: [UInt8] = [2],
        timeout: UInt16 = 100
    ) -> LEBIGCreateSync {
        LEBIGCreateSync(bigHandle: 7, syncHandle: 0, broadcastCode: code, bigSyncTimeout: timeout, streams: streams)
    }

    /// Controller 0 has a train, with which controller 1 is synchronized, and sends a group.
    private static func world(_ command: LECreateBIG = create()) -> World {
        let world = PeriodicAdvertisingTests.world(3)
        PeriodicAdvertisingTests.synchronize(world)
        world.run(.seconds(1))
        world.succeed(command, at: 0)
        world.run(.seconds(1))
        return world
    }

    /// The same with a received stream, its data paths, and no packets so far.
    private static func established(_ command: LECreateBIG = create(), code: UInt128? = nil) -> World {
        let world = Self.world(command)
        world.succeed(createSync(code: code), at: 1)
        world.run(.milliseconds(100))
        #expect(statuses(world) == [.success])
        for handle in [handle, 0x0E61] as [ConnectionHandle] {
            world.succeed(LESetupISODataPath(connectionHandle: handle, dataPathDirection: .input), at: 0)
        }
        world.succeed(LESetupISODataPath(connectionHandle: handle, dataPathDirection: .output), at: 1)
        world.forget()
        return world
    }

    private static func statuses(_ world: World) -> [HCIErrorCode] {
        world.events(LEBIGSyncEstablished.subeventCode, at: 1).compactMap {
            (try? LEBIGSyncEstablished(decoding: $0.rawSpan))?.status
        }
    }

    private static func lost(_ world: World) -> [[UInt8]] { world.events(LEBIGSyncLost.subeventCode, at: 1) }

    /// Sends an SDU in fragments of at most 200 bytes.
    private static func send(_ bytes: [UInt8], on handle: ConnectionHandle, in world: World) {
        var sent = 0
        repeat {
            let end = min(sent + 200, bytes.count)
            let fragment = Array(bytes[sent..<end])
            world.controllers[0].receive(
                PacketBuffer.bytes { buffer in
                    buffer.append(PacketType.iso.rawValue)
                    if sent == 0 {
                        ISOPacket.encodeStart(
                            of: ISODataLoadHeader(packetSequenceNumber: 0, sduLength: UInt16(bytes.count)),
                            on: handle,
                            isComplete: end == bytes.count,
                            fragment: fragment.rawSpan,
                            into: &buffer
                        )
                    } else {
                        ISOPacket.encodeContinuation(
                            on: handle,
                            isLast: end == bytes.count,
                            fragment: fragment.rawSpan,
                            into: &buffer
                        )
                    }
                }.rawSpan
            )
            sent = end
        } while sent < bytes.count
    }

    private struct Received: Equatable {
        var status: ISOPacketStatus
        var data: [UInt8]
    }

    /// The SDUs that the host of the receiver got.
    private static func received(_ world: World) -> [Received] {
        var sdus: [Received] = []
        for bytes in world.packets[1] where bytes.first == PacketType.iso.rawValue {
            guard let packet = try? ISOPacket(decoding: bytes.rawSpan.extracting(droppingFirst: 1)) else { continue }
            if let header = packet.loadHeader { sdus.append(Received(status: header.packetStatus, data: [])) }
            sdus[sdus.count - 1].data += [UInt8](copying: packet.payload)
        }
        return sdus
    }

    @Test func groupIsReportedToItsHostAndAnnouncedByTheTrain() throws {
        let world = Self.world(Self.create(maxSDU: 600, rtn: 1))
        let created = try #require(world.events(LECreateBIGComplete.subeventCode, at: 0).first)
        let timing = BIGTiming(transportLatency: 40_000, nse: 6, bn: 3, irc: 2, maxPDU: 251, isoInterval: 8)
        #expect(
            try LECreateBIGComplete(decoding: created.rawSpan)
                == LECreateBIGComplete(
                    bigHandle: 1,
                    bigSyncDelay: 40_000,
                    phy: .le2M,
                    timing: timing,
                    connectionHandles: [0x0E60, 0x0E61]
                )
        )
        let announced = try #require(world.events(LEBIGInfoAdvertisingReport.subeventCode, at: 1).first)
        let report = try LEBIGInfoAdvertisingReport(decoding: announced.rawSpan)
        #expect(report.syncHandle == 0 && report.numBIS == 2 && report.maxSDU == 600 && report.sduInterval == 10_000)
        #expect(report.bn == 3 && report.nse == 6 && report.encryption == 0)
    }

    @Test(arguments: [nil, 0x1234] as [UInt128?])
    func sdusOfTheChosenStreamArriveInOrder(_ code: UInt128?) {
        let world = Self.established(Self.create(maxSDU: 600, code: code), code: code)
        let sdus = [1, 300, 600].map { [UInt8](repeating: UInt8(truncatingIfNeeded: $0), count: $0) }
        for sdu in sdus {
            Self.send(sdu, on: 0x0E61, in: world)
            Self.send([9], on: Self.handle, in: world)
            world.run(.milliseconds(10))
        }
        world.run(.milliseconds(20))
        #expect(Self.received(world) == sdus.map { Received(status: .valid, data: $0) })
        #expect(world.controllers[0].isochronous.packetsHeld == 0)
    }

    @Test("A group whose SDU interval is no multiple of 1.25 ms is sent in framed PDUs")
    func framedSDUsArrive() {
        let world = Self.established(Self.create(maxSDU: 600, interval: 10_884, framing: .framed))
        for number in 0..<5 {
            Self.send([UInt8](repeating: UInt8(number), count: 600), on: 0x0E61, in: world)
            world.run(.microseconds(10_884))
        }
        world.run(.milliseconds(30))
        #expect(
            Self.received(world)
                == (0..<5).map { Received(status: .valid, data: [UInt8](repeating: UInt8($0), count: 600)) }
        )
    }

    @Test func lostSDUsAreReported() {
        let world = Self.established(Self.create(rtn: 0))
        world.air.conditions = RadioConditions(loss: 0.5)
        for number in 0..<20 {
            Self.send([UInt8(number)], on: 0x0E61, in: world)
            world.run(.milliseconds(10))
        }
        let received = Self.received(world)
        let lost = received.count { $0.status == .lost && $0.data.isEmpty }
        #expect(received.count >= 19 && lost > 0 && lost < received.count)
    }

    @Test func wrongCodeEndsWithAMICFailureAtTheFirstData() {
        let world = Self.established(Self.create(code: 0x1234), code: 0x1235)
        world.run(.milliseconds(100))
        #expect(Self.lost(world).isEmpty)
        Self.send([1], on: 0x0E61, in: world)
        world.run(.milliseconds(20))
        #expect(Self.lost(world) == [[7, 0x3D]] && Self.received(world).isEmpty)
        #expect(world.controllers[1].isochronous.broadcastStreams.isEmpty)
    }

    @Test(
        arguments: [.remoteUserTerminatedConnection, .remoteDeviceTerminatedConnectionDueToPowerOff]
            as [HCIErrorCode]
    )
    func endOfTheGroupReachesItsReceivers(_ reason: HCIErrorCode) {
        let world = Self.established()
        world.succeed(LETerminateBIG(bigHandle: 1, reason: reason), at: 0)
        world.run(.milliseconds(50))
        #expect(world.events(LETerminateBIGComplete.subeventCode, at: 0) == [[1, 0x16]])
        #expect(Self.lost(world) == [[7, 0x13]])
        #expect(world.controllers.allSatisfy { $0.isochronous.broadcastStreams.isEmpty })
        // The train can announce another group.
        world.succeed(Self.create(), at: 0)
    }

    @Test func groupThatIsEndedBeforeItIsSentIsNotCreated() {
        func statuses(_ world: World) -> [HCIErrorCode] {
            world.events(LECreateBIGComplete.subeventCode, at: 0).compactMap {
                (try? LECreateBIGComplete(decoding: $0.rawSpan))?.status
            }
        }
        let world = PeriodicAdvertisingTests.world(3)
        world.succeed(
            Self.create(),
            LETerminateBIG(bigHandle: 1, reason: .remoteUserTerminatedConnection),
            at: 0
        )
        #expect(statuses(world) == [.operationCancelledByHost])
        #expect(world.events(LETerminateBIGComplete.subeventCode, at: 0) == [[1, 0x16]])
        #expect(world.controllers[0].isochronous.broadcastStreams.isEmpty)
        // Another group can be created at once.
        world.succeed(Self.create(), at: 0)
        world.run(.seconds(1))
        #expect(statuses(world) == [.operationCancelledByHost, .success])
    }

    @Test func groupThatIsNotHeardIsLostAfterTheTimeout() {
        let world = Self.established()
        world.air.conditions = RadioConditions(loss: 1)
        world.run(.milliseconds(900))
        #expect(Self.lost(world).isEmpty)
        world.run(.milliseconds(200))
        #expect(Self.lost(world) == [[7, 0x08]])
    }

    @Test func resetOfTheSenderIsNoticedByTheTimeout() {
        let world = Self.established()
        world.send(Reset(), to: 0)
        world.run(.milliseconds(1100))
        #expect(Self.lost(world) == [[7, 0x08]])
    }

    @Test(
        arguments: [(nil, 0x12, [1], 0x25), (0x12, nil, [1], 0x25), (nil, nil, [3], 0x11)]
            as [(
                UInt128?, UInt128?, [UInt8], UInt8
            )]
    )
    func receptionThatDoesNotMatchTheGroupFails(
        _ theirs: UInt128?,
        _ ours: UInt128?,
        _ streams: [UInt8],
        _ status: UInt8
    ) {
        let world = Self.world(Self.create(code: theirs))
        world.succeed(Self.createSync(code: ours, streams: streams), at: 1)
        world.run(.milliseconds(100))
        #expect(Self.statuses(world) == [HCIErrorCode(rawValue: status)])
        #expect(world.controllers[1].isochronous.receptions.isEmpty)
    }

    @Test func receptionIsCancelledWhileTheTrainAnnouncesNothing() {
        let world = PeriodicAdvertisingTests.world(3)
        PeriodicAdvertisingTests.synchronize(world)
        world.run(.seconds(1))
        world.succeed(Self.createSync(), at: 1)
        world.run(.seconds(2))
        #expect(Self.statuses(world).isEmpty)
        #expect(world.status(of: Self.createSync(), to: 1) == .commandDisallowed)
        world.succeed(LEBIGTerminateSync(bigHandle: 7), at: 1)
        world.run()
        #expect(Self.statuses(world) == [.operationCancelledByHost])
        #expect(world.status(of: LEBIGTerminateSync(bigHandle: 7), to: 1) == .unknownAdvertisingIdentifier)
    }

    @Test func commandsAreChecked() {
        let world = Self.world()
        let cases: [(any Command, HCIErrorCode)] = [
            (Self.create(2), .commandDisallowed),
            (Self.create(2, count: 32), .invalidHCICommandParameters),
            (Self.create(0xF0), .invalidHCICommandParameters),
            (
                LECreateBIG(
                    bigHandle: 2,
                    advertisingHandle: 9,
                    numBIS: 1,
                    sduInterval: 10_000,
                    maxSDU: 100,
                    maxTransportLatency: 40
                ), .unknownAdvertisingIdentifier
            ),
            (LETerminateBIG(bigHandle: 9, reason: .remoteUserTerminatedConnection), .unknownAdvertisingIdentifier),
            (LESetupISODataPath(connectionHandle: Self.handle, dataPathDirection: .output), .commandDisallowed),
        ]
        for (command, status) in cases { #expect(world.status(of: command, to: 0) == status, "\(command)") }
        #expect(world.status(of: Self.createSync(streams: [2, 1]), to: 1) == .invalidHCICommandParameters)
        let unknown = LEBIGCreateSync(bigHandle: 7, syncHandle: 9, bigSyncTimeout: 100, streams: [1])
        #expect(world.status(of: unknown, to: 1) == .unknownAdvertisingIdentifier)
    }
}
