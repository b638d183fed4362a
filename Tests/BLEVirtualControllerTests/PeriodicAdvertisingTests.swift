import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEVirtualController

@Suite("Periodic advertising")
struct PeriodicAdvertisingTests {
    /// Controller 0 has a train with an interval of 100 ms.
    static func world(_ count: Int, isStarted: Bool = true, features: LEFeatures = .all) -> World {
        let world = World(count: 2) { if $0.address == World.address(1) { $0.features = features } }
        world.succeed(
            ExtendedAdvertisingTests.parameters(),
            LESetPeriodicAdvertisingParameters(
                advertisingHandle: 3,
                periodicAdvertisingIntervalMin: 80,
                periodicAdvertisingIntervalMax: 80,
                periodicAdvertisingProperties: .includeTXPower
            ),
            at: 0
        )
        for (operation, bytes) in ExtendedAdvertisingTests.fragments(count) {
            world.succeed(
                LESetPeriodicAdvertisingData(
                    advertisingHandle: 3,
                    operation: operation,
                    advertisingData: PeriodicAdvertisingDataFragment(bytes)
                ),
                at: 0
            )
        }
        world.succeed(LESetPeriodicAdvertisingEnable(enable: .enabled, advertisingHandle: 3), at: 0)
        if isStarted { world.succeed(ExtendedAdvertisingTests.enable, at: 0) }
        return world
    }

    static func synchronize(_ world: World, timeout: UInt16 = 100) {
        world.succeed(
            LESetExtendedScanEnable(enable: true, filterDuplicates: .enabled),
            LEPeriodicAdvertisingCreateSync(
                advertisingSID: 5,
                advertiserAddress: World.address(0),
                syncTimeout: timeout
            ),
            at: 1
        )
    }

    /// Reasons why a train is not received.
    enum Silence: CaseIterable {
        case stopped
        case reset
        case gone
        case tooFar
    }

    struct Report: Equatable {
        var power: Int8
        var status: DataStatus
        var data: [UInt8]
    }

    static func reports(_ world: World) -> [Report] {
        world.events(LEPeriodicAdvertisingReport.subeventCode, at: 1).compactMap { parameters in
            guard let report = try? LEPeriodicAdvertisingReport(decoding: parameters.rawSpan) else { return nil }
            return Report(power: report.txPower, status: report.dataStatus, data: [UInt8](copying: report.data))
        }
    }

    static func established(_ world: World) -> [LEPeriodicAdvertisingSyncEstablished] {
        world.events(LEPeriodicAdvertisingSyncEstablished.subeventCode, at: 1).compactMap {
            try? LEPeriodicAdvertisingSyncEstablished(decoding: $0.rawSpan)
        }
    }

    @Test("A scanner finds the train and receives its complete data every interval", arguments: [0, 3, 247, 248, 1650])
    func trainIsReceivedCompletely(_ count: Int) {
        let world = Self.world(count)
        Self.synchronize(world)
        world.run(.seconds(1))
        #expect(world.extendedReports(at: 1).last?.periodicInterval == 80)
        #expect(
            Self.established(world)
                == [
                    LEPeriodicAdvertisingSyncEstablished(
                        syncHandle: 0,
                        advertisingSID: 5,
                        advertiserAddress: PeerAddress(World.address(0)),
                        advertiserPHY: .le2M,
                        periodicAdvertisingInterval: 80,
                        advertiserClockAccuracy: 0
                    )
                ]
        )
        let reports = Self.reports(world)
        let perEvent = max(1, (count + 246) / 247)
        #expect((8...10).contains(reports.count / perEvent) && reports.count.isMultiple(of: perEvent))
        #expect(reports.prefix(perEvent).flatMap(\.data) == ExtendedAdvertisingTests.bytes(count))
        #expect(reports.prefix(perEvent).dropLast().allSatisfy { $0.status == .incompleteMoreToCome })
        #expect(reports.last?.status == .complete && reports.allSatisfy { $0.power == 0 })
    }

    @Test("Packets of a train stay in order, however much their delays differ")
    func packetsOfATrainStayInOrder() {
        let world = Self.world(1)
        Self.synchronize(world)
        world.run(.seconds(1))
        world.forget()
        world.air.conditions = RadioConditions(jitter: .milliseconds(900))
        for value in UInt8(0)..<50 {
            world.succeed(
                LESetPeriodicAdvertisingData(
                    advertisingHandle: 3,
                    operation: .complete,
                    advertisingData: PeriodicAdvertisingDataFragment([value])
                ),
                at: 0
            )
            world.run(.milliseconds(100))
        }
        world.run(.seconds(2))
        let values = Self.reports(world).flatMap(\.data)
        #expect(values.count > 50 && values == values.sorted())
    }

    @Test("The train begins when its set is advertised, and continues after the set has ended")
    func trainBeginsWithItsSetAndContinuesAfterTheSetHasEnded() {
        let world = Self.world(3, isStarted: false)
        Self.synchronize(world)
        world.run(.seconds(1))
        #expect(Self.established(world).isEmpty)
        world.succeed(ExtendedAdvertisingTests.enable, at: 0)
        world.run(.seconds(1))
        #expect(Self.established(world).count == 1)
        world.succeed(ExtendedEnable(enable: false), at: 0)
        world.succeed(LESetExtendedScanEnable(enable: false), at: 1)
        world.forget()
        world.run(.seconds(1))
        #expect((9...11).contains(Self.reports(world).count))
    }

    @Test("A train that is no longer received is lost after the timeout", arguments: Silence.allCases)
    func trainThatIsNoLongerReceivedIsLostAfterTheTimeout(_ silence: Silence) {
        let world = Self.world(3)
        Self.synchronize(world, timeout: 50)
        world.run(.seconds(1))
        world.forget()
        switch silence {
        case .stopped:
            world.succeed(LESetPeriodicAdvertisingEnable(enable: [], advertisingHandle: 3), at: 0)
        case .reset: world.succeed(Reset(), at: 0)
        case .gone: world.controllers[0].vanish()
        case .tooFar: world.controllers[1].position = Position(x: 10_000, y: 0)
        }
        world.run(.milliseconds(390))
        #expect(world.events(LEPeriodicAdvertisingSyncLost.subeventCode, at: 1).isEmpty)
        world.run(.milliseconds(120))
        #expect(world.events(LEPeriodicAdvertisingSyncLost.subeventCode, at: 1) == [[0x00, 0x00]])
    }

    @Test("A train that is announced but not received in six events is given up")
    func trainNotReceivedInSixEventsIsGivenUp() {
        let world = Self.world(3)
        Self.synchronize(world)
        // The announcement was received, and no event of the train.
        world.run(.milliseconds(20))
        world.air.conditions = RadioConditions(isDead: true)
        world.run(.seconds(1))
        #expect(Self.established(world).map(\.status) == [.connectionFailedToBeEstablished])
    }

    @Test("Synchronizing is cancelled after the answer, and a received train can be terminated")
    func synchronizationIsCancelledOrTerminatedOnRequest() {
        let world = Self.world(3)
        world.succeed(
            LEPeriodicAdvertisingCreateSync(advertisingSID: 9, advertiserAddress: World.address(0), syncTimeout: 100),
            at: 1
        )
        let packets = world.send(LEPeriodicAdvertisingCreateSyncCancel(), to: 1)
        #expect(packets.first == [0x04, 0x0E, 0x04, 0x01, 0x45, 0x20, 0x00])
        #expect(packets.last?.prefix(5) == [0x04, 0x3E, 0x10, 0x0E, 0x44])
        world.forget()
        Self.synchronize(world)
        world.run(.seconds(1))
        let again = LEPeriodicAdvertisingCreateSync(
            advertisingSID: 5,
            advertiserAddress: World.address(0),
            syncTimeout: 100
        )
        #expect(world.status(of: again, to: 1) == .connectionAlreadyExists)
        world.succeed(LEPeriodicAdvertisingTerminateSync(syncHandle: 0), at: 1)
        world.forget()
        world.run(.seconds(3))
        #expect(Self.reports(world).isEmpty)
        #expect(world.events(LEPeriodicAdvertisingSyncLost.subeventCode, at: 1).isEmpty)
    }

    @Test("A chain with lost parts leaves the report truncated")
    func chainWithLostPartsLeavesTheReportTruncated() {
        let world = Self.world(1650)
        Self.synchronize(world)
        world.run(.seconds(1))
        world.forget()
        world.air.conditions = RadioConditions(loss: 0.2)
        world.run(.seconds(5))
        let ends = Self.reports(world).map(\.status).filter { $0 != .incompleteMoreToCome }
        #expect(ends.contains(.truncated) && ends.contains(.complete))
    }
}
