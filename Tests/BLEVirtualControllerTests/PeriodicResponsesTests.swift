import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEVirtualController

@Suite("Periodic advertising with responses")
struct PeriodicResponsesTests {
    /// 4 subevents of 20 ms in an interval of 100 ms, each with 4 response slots of 2 ms from 10 ms on.
    static let parameters = LESetPeriodicAdvertisingParametersV2(
        advertisingHandle: 3,
        periodicAdvertisingIntervalMin: 80,
        periodicAdvertisingIntervalMax: 80,
        periodicAdvertisingProperties: .includeTXPower,
        numSubevents: 4,
        subeventInterval: 16,
        responseSlotDelay: 8,
        responseSlotSpacing: 16,
        numResponseSlots: 4
    )

    static let allEvents = LEEventMask(rawValue: 0x1FF_FFFF_FFFF)

    /// Controller 0 has a train; the others receive the subevents of their numbers.
    static func world(responders: Int = 1, isChosen: Bool = true) -> World {
        let world = World(count: 1 + responders, masks: allEvents)
        world.succeed(
            ExtendedAdvertisingTests.parameters(),
            parameters,
            LESetPeriodicAdvertisingEnable(enable: .enabled, advertisingHandle: 3),
            ExtendedAdvertisingTests.enable,
            at: 0
        )
        for responder in 1..<(1 + responders) {
            world.succeed(
                LESetExtendedScanEnable(enable: true, filterDuplicates: .enabled),
                LEPeriodicAdvertisingCreateSync(
                    advertisingSID: 5,
                    advertiserAddress: World.address(0),
                    syncTimeout: 100
                ),
                at: responder
            )
        }
        world.run(.seconds(1))
        guard isChosen else { return world }
        for responder in 1..<(1 + responders) {
            world.succeed(LESetPeriodicSyncSubevent(syncHandle: 0, subevents: [1]), at: responder)
        }
        return world
    }

    struct Report: Equatable {
        var event: UInt16
        var subevent: UInt8
        var status: DataStatus
        var data: [UInt8]
    }

    static func reports(_ world: World, at index: Int = 1) -> [Report] {
        world.events(LEPeriodicAdvertisingReportV2.subeventCode, at: index).compactMap { parameters in
            guard let report = try? LEPeriodicAdvertisingReportV2(decoding: parameters.rawSpan) else { return nil }
            return Report(
                event: report.periodicEventCounter,
                subevent: report.subevent,
                status: report.dataStatus,
                data: [UInt8](copying: report.data)
            )
        }
    }

    struct Response: Equatable {
        var subevent: UInt8
        var slot: UInt8
        var power: Int8 = 127
        var status: DataStatus
        var data: [UInt8]
    }

    static func responses(_ world: World) -> [Response] {
        world.events(LEPeriodicAdvertisingResponseReport.subeventCode, at: 0).flatMap { parameters in
            var all: [Response] = []
            guard let event = try? LEPeriodicAdvertisingResponseReport(decoding: parameters.rawSpan) else { return all }
            var responses = event.responses
            while let response = try? responses.next() {
                all.append(
                    Response(
                        subevent: event.subevent,
                        slot: response.responseSlot,
                        power: response.txPower,
                        status: response.dataStatus,
                        data: [UInt8](copying: response.data)
                    )
                )
            }
            return all
        }
    }

    static func setData(
        _ bytes: [UInt8],
        subevent: UInt8 = 1,
        slots: UInt8 = 2
    ) -> LESetPeriodicAdvertisingSubeventData {
        LESetPeriodicAdvertisingSubeventData(
            advertisingHandle: 3,
            subevents: [.init(subevent: subevent, responseSlotCount: slots, data: .init(bytes))]
        )
    }

    static func respond(_ bytes: [UInt8], to report: Report, slot: UInt8) -> LESetPeriodicAdvertisingResponseData {
        LESetPeriodicAdvertisingResponseData(
            syncHandle: 0,
            requestEvent: report.event,
            requestSubevent: report.subevent,
            responseSubevent: report.subevent,
            responseSlot: slot,
            responseData: .init(bytes)
        )
    }

    /// Runs until the responders have the report of a subevent with data.
    static func runToData(_ world: World) -> Report? {
        for _ in 0..<200 {
            if let report = reports(world).last(where: { !$0.data.isEmpty }) { return report }
            world.run(.milliseconds(1))
        }
        return nil
    }

    @Test("The event of version 2 tells the timing of subevents, and nothing is reported before some are chosen")
    func synchronizationHasTheTimingOfSubevents() {
        let world = Self.world(isChosen: false)
        #expect(
            world.events(LEPeriodicAdvertisingSyncEstablishedV2.subeventCode, at: 1)
                == [[0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0x10, 2, 80, 0, 0, 4, 16, 8, 16]]
        )
        #expect(world.events(LEPeriodicAdvertisingSyncEstablished.subeventCode, at: 1).isEmpty)
        #expect(Self.reports(world).isEmpty)
        world.run(.seconds(3))
        #expect(world.events(LEPeriodicAdvertisingSyncLost.subeventCode, at: 1).isEmpty)
    }

    @Test("Data is requested for every subevent, sent once, and is empty where the host has set none")
    func dataIsRequestedAndSentOnce() throws {
        let world = Self.world()
        world.forget()
        world.run(.milliseconds(100))
        #expect(world.events(LEPeriodicAdvertisingSubeventDataRequest.subeventCode, at: 0) == [[3, 0, 4]])
        world.succeed(Self.setData([1, 2, 3]), at: 0)
        world.forget()
        world.run(.milliseconds(300))
        let reports = Self.reports(world)
        #expect(reports.map(\.data).sorted { $0.count > $1.count } == [[1, 2, 3], [], []])
        #expect(reports.allSatisfy { $0.subevent == 1 && $0.status == .complete })
        let events = reports.map(\.event)
        #expect(zip(events, events.dropFirst()).allSatisfy { $1 == $0 &+ 1 })
    }

    @Test("A response arrives in its slot, and a slot without a response is reported as not received")
    func responseArrivesInItsSlot() throws {
        let world = Self.world()
        world.succeed(
            LESetPeriodicSyncSubevent(
                syncHandle: 0,
                periodicAdvertisingProperties: .includeTXPower,
                subevents: [1]
            ),
            at: 1
        )
        world.succeed(Self.setData([1]), at: 0)
        world.forget()
        let report = try #require(Self.runToData(world))
        world.succeed(Self.respond([7, 8], to: report, slot: 1), at: 1)
        world.run(.milliseconds(20))
        #expect(
            Self.responses(world) == [
                Response(subevent: 1, slot: 0, status: .failedToReceive, data: []),
                Response(subevent: 1, slot: 1, power: 0, status: .complete, data: [7, 8]),
            ]
        )
    }

    @Test("Two responses in one slot are both lost; one in another slot is received")
    func collidingResponsesAreLost() throws {
        let world = Self.world(responders: 3)
        world.succeed(Self.setData([1]), at: 0)
        world.forget()
        let report = try #require(Self.runToData(world))
        world.succeed(Self.respond([1], to: report, slot: 0), at: 1)
        world.succeed(Self.respond([2], to: report, slot: 0), at: 2)
        world.succeed(Self.respond([3], to: report, slot: 1), at: 3)
        world.run(.milliseconds(20))
        #expect(
            Self.responses(world) == [
                Response(subevent: 1, slot: 0, status: .failedToReceive, data: []),
                Response(subevent: 1, slot: 1, status: .complete, data: [3]),
            ]
        )
    }

    @Test("A response after its slot is too late, and one beyond the slots is invalid")
    func lateResponseIsRefused() throws {
        let world = Self.world()
        world.succeed(Self.setData([1]), at: 0)
        world.forget()
        let report = try #require(Self.runToData(world))
        #expect(world.status(of: Self.respond([1], to: report, slot: 4), to: 1) == .invalidHCICommandParameters)
        world.run(.milliseconds(12))
        #expect(world.status(of: Self.respond([1], to: report, slot: 0), to: 1) == .tooLate)
        world.run(.milliseconds(20))
        #expect(
            Self.responses(world) == [
                Response(subevent: 1, slot: 0, status: .failedToReceive, data: []),
                Response(subevent: 1, slot: 1, status: .failedToReceive, data: []),
            ]
        )
    }

    @Test func responseToASubeventWithoutSlotsIsRemoved() throws {
        let world = Self.world()
        world.succeed(Self.setData([1], slots: 0), at: 0)
        world.forget()
        let report = try #require(Self.runToData(world))
        world.succeed(Self.respond([7], to: report, slot: 1), at: 1)
        world.run(.milliseconds(200))
        #expect(Self.responses(world).isEmpty)
        let train = try #require(world.controllers[0].advertiser.sets.first?.train)
        #expect(train.responses.values.allSatisfy { $0.isEmpty })
    }

    @Test("A response of 247 bytes, the most that a command has room for, is reported whole, in two parts")
    func longResponseIsReportedWhole() throws {
        let world = Self.world()
        world.succeed(Self.setData([1]), at: 0)
        world.forget()
        let report = try #require(Self.runToData(world))
        let bytes = [UInt8](repeating: 9, count: 247)
        world.succeed(Self.respond(bytes, to: report, slot: 0), at: 1)
        world.run(.milliseconds(20))
        let parts = Self.responses(world).filter { $0.slot == 0 }
        #expect(parts.map(\.status) == [.incompleteMoreToCome, .complete])
        #expect(parts.flatMap(\.data) == bytes)
    }

    @Test(
        "Parameters out of their ranges are refused",
        arguments: [
            (129, 6, 1, 2, 1), (1, 5, 1, 2, 1), (1, 6, 0, 2, 1), (1, 6, 255, 2, 1), (1, 6, 1, 1, 1), (1, 6, 5, 8, 2),
            (14, 6, 1, 2, 1),
        ] as [(UInt8, UInt8, UInt8, UInt8, UInt8)]
    )
    func parametersOutOfRangeAreRefused(
        _ count: UInt8,
        _ interval: UInt8,
        _ delay: UInt8,
        _ spacing: UInt8,
        _ slots: UInt8
    ) {
        let world = World(count: 1)
        world.succeed(ExtendedAdvertisingTests.parameters(), at: 0)
        var command = Self.parameters
        command.numSubevents = count
        command.subeventInterval = interval
        command.responseSlotDelay = delay
        command.responseSlotSpacing = spacing
        command.numResponseSlots = slots
        #expect(world.status(of: command, to: 0) == .invalidHCICommandParameters)
    }

    @Test("A lost packet is reported as not received, and a receiver without the feature finds no train")
    func lostPacketIsReported() {
        let world = Self.world()
        world.forget()
        world.air.conditions = RadioConditions(isDead: true)
        world.run(.milliseconds(100))
        #expect(Self.reports(world).map(\.status) == [.failedToReceive])
        let other = World(count: 2, masks: Self.allEvents) {
            if $0.address == World.address(1) { $0.features.remove(.periodicAdvertisingWithResponsesScanner) }
        }
        other.succeed(
            ExtendedAdvertisingTests.parameters(),
            Self.parameters,
            LESetPeriodicAdvertisingEnable(enable: .enabled, advertisingHandle: 3),
            ExtendedAdvertisingTests.enable,
            at: 0
        )
        PeriodicAdvertisingTests.synchronize(other)
        other.run(.seconds(1))
        #expect(other.events(LEPeriodicAdvertisingSyncEstablishedV2.subeventCode, at: 1).isEmpty)
        #expect(
            other.status(of: LESetPeriodicSyncSubevent(syncHandle: 0, subevents: [0]), to: 1) == .unknownHCICommand
        )
    }

    @Test("Subevents and data that the train does not have are refused")
    func unknownSubeventsAreRefused() {
        let world = Self.world()
        #expect(world.status(of: Self.setData([], subevent: 4), to: 0) == .invalidHCICommandParameters)
        #expect(world.status(of: Self.setData([], slots: 5), to: 0) == .invalidHCICommandParameters)
        for subevents in [[], [4], [1, 1]] as [[UInt8]] {
            let command = LESetPeriodicSyncSubevent(syncHandle: 0, subevents: subevents)
            #expect(world.status(of: command, to: 1) == .invalidHCICommandParameters)
        }
        #expect(
            world.status(of: LESetPeriodicSyncSubevent(syncHandle: 1, subevents: [1]), to: 1)
                == .unknownAdvertisingIdentifier
        )
        let data = LESetPeriodicAdvertisingData(advertisingHandle: 3)
        #expect(world.status(of: data, to: 0) == .commandDisallowed)
    }

    // MARK: Connections

    private static func connect(
        _ address: DeviceAddress = World.address(1),
        handle: UInt8 = 3,
        subevent: UInt8 = 1,
        scanWindow: UInt16 = 0x60,
        interval: UInt16 = 24
    ) -> LEExtendedCreateConnectionV2 {
        let parameters = LEExtendedCreateConnection.PHYParameters(
            scanInterval: 0x60,
            scanWindow: scanWindow,
            connectionIntervalMin: interval,
            connectionIntervalMax: interval,
            maxLatency: 0,
            supervisionTimeout: 100
        )
        return LEExtendedCreateConnectionV2(
            advertisingHandle: handle,
            subevent: subevent,
            connection: LEExtendedCreateConnection(
                ownAddressType: .public,
                peerAddress: address,
                le1M: parameters,
                le2M: parameters
            )
        )
    }

    private static func connections(_ world: World, at index: Int) throws -> [LEEnhancedConnectionCompleteV2] {
        try world.events(LEEnhancedConnectionCompleteV2.subeventCode, at: index).map {
            try LEEnhancedConnectionCompleteV2(decoding: $0.rawSpan)
        }
    }

    @Test("A connection request takes the place of a packet, whose data follows in the next event")
    func connectionIsRequestedInASubevent() throws {
        let world = Self.world()
        world.run(.milliseconds(200))
        world.succeed(Self.setData([1, 2, 3]), at: 0)
        world.succeed(Self.connect(), at: 0)
        let before = Self.reports(world).filter { !$0.data.isEmpty }.count
        world.run(.milliseconds(100))
        let central = try #require(try Self.connections(world, at: 0).first)
        let peripheral = try #require(try Self.connections(world, at: 1).first)
        #expect(
            central.status == .success && central.role == .central
                && central.peerAddress.deviceAddress == World.address(1)
        )
        #expect(central.advertisingHandle == 3 && central.syncHandle == 0xFFFF)
        #expect(peripheral.role == .peripheral && peripheral.peerAddress.deviceAddress == World.address(0))
        #expect(peripheral.advertisingHandle == 0xFF && peripheral.syncHandle == 0)
        #expect(Self.reports(world).filter { !$0.data.isEmpty }.count == before)
        world.run(.milliseconds(100))
        #expect(Self.reports(world).last { !$0.data.isEmpty }?.data == [1, 2, 3])
    }

    @Test("A request that nobody answers fails after one event, and can be cancelled before")
    func unansweredRequestFails() throws {
        let world = Self.world()
        for command in [Self.connect(World.address(9)), Self.connect(subevent: 2)] {
            world.succeed(command, at: 0)
            world.run(.milliseconds(200))
            let failed = try #require(try Self.connections(world, at: 0).last)
            #expect(failed.status == .connectionFailedToBeEstablished && failed.role == .central)
        }
        world.succeed(Self.connect(), LECreateConnectionCancel(), at: 0)
        world.run(.milliseconds(200))
        #expect(try Self.connections(world, at: 0).last?.status == .unknownConnectionIdentifier)
        #expect(try Self.connections(world, at: 1).isEmpty)
    }

    @Test("Requests in subevents that do not exist are refused")
    func requestsInUnknownSubeventsAreRefused() {
        let world = Self.world()
        #expect(world.status(of: Self.connect(handle: 4), to: 0) == .unknownAdvertisingIdentifier)
        #expect(world.status(of: Self.connect(subevent: 4), to: 0) == .invalidHCICommandParameters)
        #expect(world.status(of: Self.connect(handle: 0xFF), to: 0) == .invalidHCICommandParameters)
        #expect(world.status(of: Self.connect(subevent: 0xFF), to: 0) == .invalidHCICommandParameters)
        #expect(world.status(of: Self.connect(interval: 0), to: 0) == .invalidHCICommandParameters)
        #expect(world.status(of: Self.connect(scanWindow: 0), to: 0) == .success, "scanning is not needed")
    }
}
