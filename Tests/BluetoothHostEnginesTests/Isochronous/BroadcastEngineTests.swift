import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The engine of broadcast isochronous streams")
struct BroadcastEngineTests {
    typealias Effects = [IsochronousEffect]

    private static let advertisement = AdvertisementIdentifier(value: 1)
    private static let synchronization = SynchronizationIdentifier(value: 2)
    private static let now = Instant(nanoseconds: 0)
    private static let timing = BIGTiming(transportLatency: 10_000, maxPDU: 100, isoInterval: 8)

    /// The commands among effects.
    private static func requests(_ effects: Effects) -> [CommandRequest] {
        effects.compactMap { if case .send(let request) = $0 { request } else { nil } }
    }

    private static func opcodes(_ effects: Effects) -> [HCIOpcode] { requests(effects).map(\.opcode) }

    private static func answer(_ engine: inout IsochronousEngine, _ step: BroadcastStep, _ status: UInt8 = 0) -> Effects
    {
        let reply = [status, 0, 0]
        return engine.answered(.broadcast(step), reply.rawSpan, of: LETerminateBIG.opcode)
    }

    private static func created(
        _ big: UInt8 = 0,
        _ status: HCIErrorCode = .success,
        _ handles: [ConnectionHandle] = [0x0070, 0x0071]
    ) -> LECreateBIGComplete {
        LECreateBIGComplete(
            status: status,
            bigHandle: big,
            bigSyncDelay: 1000,
            phy: .le2M,
            timing: timing,
            connectionHandles: handles
        )
    }

    private static func announcement(streams: UInt8 = 2, isEncrypted: Bool = false) -> LEBIGInfoAdvertisingReport {
        LEBIGInfoAdvertisingReport(
            syncHandle: 0x0005,
            numBIS: streams,
            nse: 1,
            isoInterval: 8,
            bn: 1,
            pto: 0,
            irc: 1,
            maxPDU: 100,
            sduInterval: 10_000,
            maxSDU: 100,
            phy: .le2M,
            framing: .unframed,
            encryption: isEncrypted ? 1 : 0
        )
    }

    private static func engine() -> IsochronousEngine {
        var engine = IsochronousEngine()
        engine.sender.configure(packetLength: 100, packetCount: 4)
        return engine
    }

    private static let parameters = BroadcastGroupParameters(streamCount: 2, maximumSDU: 100)

    /// An engine that sends a group with two streams.
    private static func sending() throws -> (IsochronousEngine, [IsochronousStreamInformation]) {
        var engine = engine()
        let begun = try engine.broadcast(7, on: advertisement, advertisingHandle: 3, parameters)
        #expect(
            requests(begun).map(\.packet.hexadecimal) == [
                "01" + "68201f" + "000302" + "102700" + "6400" + "2800" + "0203" + "0000" + "00"
                    + String(repeating: "00", count: 16)
            ]
        )
        #expect(answer(&engine, .create(0)) == [])
        #expect(opcodes(engine.created(created())) == [LESetupISODataPath.opcode, LESetupISODataPath.opcode])
        #expect(answer(&engine, .setUpPath(0x0070)) == [])
        let streams = opened(answer(&engine, .setUpPath(0x0071)))
        return (engine, streams)
    }

    private static func opened(_ effects: Effects) -> [IsochronousStreamInformation] {
        guard case .opened(7, let streams)? = effects.first, effects.count == 1 else {
            Issue.record("\(effects)")
            return []
        }
        return streams
    }

    private static func receiving(
        _ parameters: BroadcastReceptionParameters = BroadcastReceptionParameters()
    ) throws -> (IsochronousEngine, [IsochronousStreamInformation]) {
        var engine = engine()
        try engine.receiveBroadcast(7, from: synchronization, parameters)
        #expect(opcodes(engine.announced(announcement(), on: synchronization, at: now)) == [LEBIGCreateSync.opcode])
        #expect(engine.announced(announcement(), on: synchronization, at: now) == [])
        let event = LEBIGSyncEstablished(bigHandle: 0, timing: timing, connectionHandles: [0x0070, 0x0071])
        #expect(opcodes(engine.synchronized(event)) == [LESetupISODataPath.opcode, LESetupISODataPath.opcode])
        #expect(answer(&engine, .setUpPath(0x0070)) == [])
        let streams = opened(answer(&engine, .setUpPath(0x0071)))
        return (engine, streams)
    }

    @Test func groupOpensWhenAllDataPathsExist() throws {
        let (_, streams) = try Self.sending()
        #expect(streams.map { $0.broadcast?.number } == [1, 2])
        #expect(streams.allSatisfy { $0.canSend && !$0.canReceive && $0.link == nil && $0.maximumSDU == 100 })
        let (_, received) = try Self.receiving()
        #expect(received.map { $0.broadcast?.number } == [1, 2])
        #expect(received.allSatisfy { !$0.canSend && $0.canReceive && $0.broadcast?.information?.streamCount == 2 })
    }

    @Test func sdusOfBroadcastStreamsShareTheBuffersOfConnectedStreams() throws {
        var (engine, streams) = try Self.sending()
        for stream in streams {
            for _ in 0..<3 {
                #expect(engine.send([1], timeStamp: nil, on: stream.identifier, at: Self.now) == .taken)
            }
        }
        var handles: [ConnectionHandle?] = []
        var buffer = PacketBuffer()
        while let handle = engine.sender.nextPacket(into: &buffer) { handles.append(handle) }
        #expect(handles == [0x0070, 0x0071, 0x0070, 0x0071] && engine.sender.credits == 0)
        _ = engine.terminated(LETerminateBIGComplete(bigHandle: 0, reason: .connectionTerminatedByLocalHost))
        #expect(engine.sender.credits == 4)
        let long = [UInt8](repeating: 0, count: 101)
        #expect(engine.send(long, timeStamp: nil, on: streams[0].identifier, at: Self.now) == .notOpen)
    }

    @Test func groupEndsWithItsLastStream() throws {
        var (engine, streams) = try Self.sending()
        let reason = DisconnectionReason.controller(.connectionTerminatedByLocalHost)
        #expect(engine.close(streams[0].identifier) == [.ended(streams[0].identifier, reason)])
        #expect(engine.close(streams[0].identifier) == [])
        let effects = engine.close(streams[1].identifier)
        #expect(effects.first == .ended(streams[1].identifier, reason))
        #expect(Self.requests(effects).map(\.packet.hexadecimal) == ["01" + "6a2002" + "0013"])
        #expect(engine.terminated(LETerminateBIGComplete(bigHandle: 0, reason: .connectionTerminatedByLocalHost)) == [])
        #expect(engine.broadcasts.groups.isEmpty && engine.broadcasts.streams.isEmpty)
    }

    @Test func groupEndsWithItsAdvertisementAlsoWhileItIsCreated() throws {
        var (engine, streams) = try Self.sending()
        #expect(Self.opcodes(engine.advertisementEnded(Self.advertisement)) == [LETerminateBIG.opcode])
        let ended = engine.terminated(LETerminateBIGComplete(bigHandle: 0, reason: .connectionTerminatedByLocalHost))
        #expect(ended.count == 2 && streams.allSatisfy { engine.endReason(of: $0.identifier) != nil })

        // The handle of the group that ended before is not the next one.
        _ = try engine.broadcast(8, on: Self.advertisement, advertisingHandle: 3, Self.parameters)
        #expect(Self.opcodes(engine.advertisementEnded(Self.advertisement)) == [LETerminateBIG.opcode])
        let cancelled = Self.created(1, .operationCancelledByHost, [])
        #expect(engine.created(cancelled) == [.failed(8, .cancelled)])
    }

    @Test("A controller that refuses to end a group that it creates is asked again when it has created it")
    func refusedEndIsRepeatedAfterTheCreation() throws {
        var engine = Self.engine()
        _ = try engine.broadcast(7, on: Self.advertisement, advertisingHandle: 3, Self.parameters)
        #expect(Self.opcodes(engine.cancelOpening(7)) == [LETerminateBIG.opcode])
        #expect(Self.answer(&engine, .terminate(0), 0x42) == [])
        #expect(engine.advertisementEnded(Self.advertisement) == [], "it was refused already")
        // The next group waits for the end of the first.
        #expect(try engine.broadcast(8, on: Self.advertisement, advertisingHandle: 3, Self.parameters) == [])
        #expect(Self.opcodes(engine.created(Self.created())) == [LETerminateBIG.opcode])
        let ended = LETerminateBIGComplete(bigHandle: 0, reason: .connectionTerminatedByLocalHost)
        #expect(Self.opcodes(engine.terminated(ended)) == [LECreateBIG.opcode])
        #expect(engine.broadcasts.groups.keys == [1])
    }

    @Test("A group that was created just before the refusal to end it is ended once more")
    func groupCreatedBeforeTheRefusalEnds() throws {
        var engine = Self.engine()
        _ = try engine.broadcast(7, on: Self.advertisement, advertisingHandle: 3, Self.parameters)
        _ = engine.cancelOpening(7)
        #expect(engine.created(Self.created()) == [])
        #expect(Self.opcodes(Self.answer(&engine, .terminate(0), 0x42)) == [LETerminateBIG.opcode])
        #expect(Self.answer(&engine, .terminate(0), 0x42) == [])
        #expect(engine.broadcasts.groups.isEmpty, "the controller does not have it")
    }

    @Test("A reception whose train no longer announces the group yields to another one, and begins again later")
    func receptionWithoutAnnouncementsYields() throws {
        var engine = Self.engine()
        let other = SynchronizationIdentifier(value: 3)
        try engine.receiveBroadcast(7, from: Self.synchronization, BroadcastReceptionParameters())
        try engine.receiveBroadcast(8, from: other, BroadcastReceptionParameters())
        _ = engine.announced(Self.announcement(), on: Self.synchronization, at: Self.now)
        let before = Self.now + .seconds(29)
        #expect(engine.announced(Self.announcement(), on: other, at: before) == [])
        let later = Self.now + IsochronousEngine.creationTimeout
        #expect(
            Self.opcodes(engine.announced(Self.announcement(), on: other, at: later)) == [LEBIGTerminateSync.opcode]
        )
        #expect(engine.announced(Self.announcement(), on: other, at: later) == [], "the first has not ended")
        #expect(Self.answer(&engine, .stopReceiving(0)) == [])
        #expect(Self.opcodes(engine.announced(Self.announcement(), on: other, at: later)) == [LEBIGCreateSync.opcode])
        let failed = LEBIGSyncEstablished(
            status: .connectionFailedToBeEstablished,
            bigHandle: 1,
            timing: Self.timing,
            connectionHandles: []
        )
        #expect(engine.synchronized(failed).count == 2)
        let again = engine.announced(Self.announcement(), on: Self.synchronization, at: later)
        #expect(Self.opcodes(again) == [LEBIGCreateSync.opcode])
        #expect(engine.broadcasts.groups.values.map(\.number) == [7])
    }

    @Test("A yielding reception ends if its caller cancels it")
    func yieldingReceptionCanBeCancelled() throws {
        var engine = Self.engine()
        let other = SynchronizationIdentifier(value: 3)
        try engine.receiveBroadcast(7, from: Self.synchronization, BroadcastReceptionParameters())
        try engine.receiveBroadcast(8, from: other, BroadcastReceptionParameters())
        _ = engine.announced(Self.announcement(), on: Self.synchronization, at: Self.now)
        _ = engine.announced(Self.announcement(), on: other, at: Self.now + .seconds(60))
        #expect(engine.cancelOpening(7) == [])
        #expect(Self.answer(&engine, .stopReceiving(0)) == [.receptionEnded(Self.synchronization)])
        #expect(engine.broadcasts.groups.values.map(\.number) == [8])
    }

    @Test("Handles are the lowest that are free, except that of the group that has ended last")
    func handlesStayLow() throws {
        var engine = Self.engine()
        for number in 0..<UInt64(100) {
            try engine.receiveBroadcast(number, from: Self.synchronization, BroadcastReceptionParameters())
            #expect(engine.broadcasts.groups.keys == [number % 2 == 0 ? 0 : 1])
            _ = engine.cancelOpening(number)
        }
    }

    @Test func nextGroupWaitsForTheEndOfTheFirst() throws {
        var (engine, streams) = try Self.sending()
        #expect(throws: HostError.self) {
            try engine.broadcast(8, on: Self.advertisement, advertisingHandle: 3, Self.parameters)
        }
        for stream in streams { _ = engine.close(stream.identifier) }
        #expect(try engine.broadcast(8, on: Self.advertisement, advertisingHandle: 3, Self.parameters) == [])
        let ended = LETerminateBIGComplete(bigHandle: 0, reason: .connectionTerminatedByLocalHost)
        #expect(Self.opcodes(engine.terminated(ended)) == [LECreateBIG.opcode])
        let group = try #require(engine.broadcasts.groups.first { _ in true })
        #expect(engine.broadcasts.groups.count == 1 && group.key != 0 && group.value.phase == .creating)
    }

    @Test func nextReceptionKeepsTheSynchronizationOfTheFirst() throws {
        var (engine, streams) = try Self.receiving()
        for stream in streams { _ = engine.close(stream.identifier) }
        try engine.receiveBroadcast(8, from: Self.synchronization, BroadcastReceptionParameters())
        #expect(engine.announced(Self.announcement(), on: Self.synchronization, at: Self.now) == [])
        #expect(Self.answer(&engine, .stopReceiving(0)) == [])
        #expect(
            Self.opcodes(engine.announced(Self.announcement(), on: Self.synchronization, at: Self.now)) == [
                LEBIGCreateSync.opcode
            ]
        )
    }

    @Test func refusalsFailTheOpening() throws {
        var engine = Self.engine()
        _ = try engine.broadcast(7, on: Self.advertisement, advertisingHandle: 3, Self.parameters)
        #expect(
            engine.created(Self.created(0, .memoryCapacityExceeded, []))
                == [.failed(7, .command(.status(.memoryCapacityExceeded, LECreateBIG.opcode)))]
        )
        _ = try engine.broadcast(8, on: Self.advertisement, advertisingHandle: 3, Self.parameters)
        #expect(Self.opcodes(engine.created(Self.created(1, .success, [0x0070]))) == [LETerminateBIG.opcode])
        let ended = engine.terminated(LETerminateBIGComplete(bigHandle: 1, reason: .connectionTerminatedByLocalHost))
        guard case .failed(8, .controllerFailed)? = ended.first else {
            Issue.record("\(ended)")
            return
        }
        #expect(engine.broadcasts.groups.isEmpty)
    }

    @Test func receiverSendsTheCodeAndTheNumbersOfTheStreams() throws {
        var engine = Self.engine()
        let code = BroadcastCode("abcd")
        try engine.receiveBroadcast(
            7,
            from: Self.synchronization,
            BroadcastReceptionParameters(streams: [2, 1], code: code, timeout: .seconds(1))
        )
        let effects = engine.announced(Self.announcement(isEncrypted: true), on: Self.synchronization, at: Self.now)
        #expect(
            Self.requests(effects).map(\.packet.hexadecimal) == [
                "01" + "6b201a" + "00" + "0500" + "01" + "61626364" + String(repeating: "00", count: 12) + "00" + "6400"
                    + "020102"
            ]
        )
    }

    @Test func wrongCodeIsATypedErrorBeforeAndAfterTheOpening() throws {
        var engine = Self.engine()
        try engine.receiveBroadcast(7, from: Self.synchronization, BroadcastReceptionParameters())
        _ = engine.announced(Self.announcement(), on: Self.synchronization, at: Self.now)
        let event = LEBIGSyncEstablished(bigHandle: 0, timing: Self.timing, connectionHandles: [0x0070, 0x0071])
        _ = engine.synchronized(event)
        #expect(
            engine.lost(LEBIGSyncLost(bigHandle: 0, reason: .connectionTerminatedDueToMICFailure))
                == [.failed(7, .broadcast(.wrongCode)), .receptionEnded(Self.synchronization)]
        )
        var (open, streams) = try Self.receiving()
        let reason = DisconnectionReason.controller(.connectionTerminatedDueToMICFailure)
        #expect(
            open.lost(LEBIGSyncLost(bigHandle: 0, reason: .connectionTerminatedDueToMICFailure))
                == streams.map { .ended($0.identifier, reason) } + [.receptionEnded(Self.synchronization)]
        )
    }

    @Test func announcementsFromTheAirAreChecked() throws {
        var engine = Self.engine()
        for (number, streams) in [(1, 0), (2, 255)] as [(UInt64, UInt8)] {
            try engine.receiveBroadcast(number, from: Self.synchronization, BroadcastReceptionParameters(streams: nil))
            let effects = engine.announced(Self.announcement(streams: streams), on: Self.synchronization, at: Self.now)
            if streams == 0 {
                #expect(effects.first == .failed(1, .broadcast(.noStream(number: 1, count: 0))))
            } else {
                #expect(Self.requests(effects).first?.packet.hexadecimal.hasSuffix("1f" + Self.allStreams) == true)
                #expect(engine.broadcasts.groups.values.map(\.streamNumbers.count) == [31])
            }
        }
    }

    /// The numbers 1 to 31.
    private static let allStreams = (1...31).map { [UInt8($0)].hexadecimal }.joined()

    @Test func cancelledReceptionEndsInEachState() throws {
        var engine = Self.engine()
        try engine.receiveBroadcast(1, from: Self.synchronization, BroadcastReceptionParameters())
        #expect(engine.cancelOpening(1) == [.receptionEnded(Self.synchronization)])
        try engine.receiveBroadcast(2, from: Self.synchronization, BroadcastReceptionParameters())
        _ = engine.announced(Self.announcement(), on: Self.synchronization, at: Self.now)
        #expect(Self.opcodes(engine.cancelOpening(2)) == [LEBIGTerminateSync.opcode])
        #expect(Self.answer(&engine, .stopReceiving(1)) == [.receptionEnded(Self.synchronization)])
        // The event of the creation that was cancelled, with another group in progress.
        try engine.receiveBroadcast(3, from: Self.synchronization, BroadcastReceptionParameters())
        _ = engine.announced(Self.announcement(), on: Self.synchronization, at: Self.now)
        let late = LEBIGSyncEstablished(
            status: .operationCancelledByHost,
            bigHandle: 1,
            timing: Self.timing,
            connectionHandles: []
        )
        #expect(engine.synchronized(late) == [])
        #expect(engine.broadcasts.groups.count == 1)
    }

    @Test func receptionEndsWithItsSynchronization() throws {
        var (engine, streams) = try Self.receiving()
        #expect(
            Self.opcodes(engine.synchronizationEnded(Self.synchronization, .cancelled)) == [LEBIGTerminateSync.opcode]
        )
        let effects = Self.answer(&engine, .stopReceiving(0))
        #expect(effects.count == 3 && streams.allSatisfy { engine.endReason(of: $0.identifier) != nil })
    }

    @Test func groupsAreBounded() throws {
        var engine = Self.engine()
        for value in 0..<UInt64(BroadcastGroups.limit) {
            try engine.receiveBroadcast(
                value,
                from: SynchronizationIdentifier(value: value),
                BroadcastReceptionParameters()
            )
        }
        #expect(throws: HostError.limitReached("there are 16 broadcast groups, the maximum; stop another one first")) {
            try engine.receiveBroadcast(99, from: SynchronizationIdentifier(value: 99), BroadcastReceptionParameters())
        }
    }

    @Test func resetEndsEverythingOnce() throws {
        var (engine, streams) = try Self.sending()
        try engine.receiveBroadcast(9, from: Self.synchronization, BroadcastReceptionParameters())
        let effects = engine.reset(.notReady, .adapterClosed)
        #expect(
            effects
                == [.failed(9, .notReady), .receptionEnded(Self.synchronization)]
                + streams.map { .ended($0.identifier, .adapterClosed) }
        )
        #expect(engine.reset(.notReady, .adapterClosed) == [])
    }

    @Test func codeIsTheTextInItsOrder() {
        // The example of Vol 3, Part C, 3.2.6.
        #expect(BroadcastCode("Børne House")?.value == 0x0000_0000_6573_756F_4820_656E_72B8_C342)
        #expect(BroadcastCode("abc") == nil && BroadcastCode("12345678901234567") == nil)
        #expect(BroadcastCode("secret").map { "\($0)" } == "BroadcastCode")
    }
}
