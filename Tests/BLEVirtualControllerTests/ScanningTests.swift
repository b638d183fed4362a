import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEVirtualController

@Suite("Scanning")
struct ScanningTests {
    static let misuses: [Misuse] = [
        Misuse(
            "interval too short",
            [LESetScanParameters(leScanInterval: 3, leScanWindow: 3)],
            .invalidHCICommandParameters
        ),
        Misuse("interval too long", [LESetScanParameters(leScanInterval: 0x4001)], .invalidHCICommandParameters),
        Misuse(
            "window longer than the interval",
            [LESetScanParameters(leScanInterval: 0x10, leScanWindow: 0x11)],
            .invalidHCICommandParameters
        ),
        Misuse(
            "parameters while scanning",
            [LESetScanEnable(leScanEnable: true), LESetScanParameters()],
            .commandDisallowed
        ),
        Misuse(
            "no random address",
            [LESetScanParameters(ownAddressType: .random), LESetScanEnable(leScanEnable: true)],
            .invalidHCICommandParameters
        ),
        Misuse(
            "extended window longer than the interval",
            [LESetExtendedScanParameters(leCoded: .init(scanInterval: 0x10, scanWindow: 0x11))],
            .invalidHCICommandParameters
        ),
        Misuse(
            "extended parameters while scanning",
            [LESetExtendedScanEnable(enable: true), LESetExtendedScanParameters()],
            .commandDisallowed
        ),
        Misuse(
            "duration as long as the period",
            [LESetExtendedScanEnable(enable: true, duration: 128, period: 1)],
            .invalidHCICommandParameters
        ),
        Misuse(
            "filter for each of no periods",
            [LESetExtendedScanEnable(enable: true, filterDuplicates: .resetEachPeriod)],
            .invalidHCICommandParameters
        ),
        Misuse(
            "decision PDUs",
            [LESetExtendedScanParameters(scanningFilterPolicy: .basicUnfilteredAllPDUs)],
            .unsupportedFeatureOrParameterValue
        ),
        Misuse("stopping what is stopped", [LESetScanEnable(leScanEnable: false)], .success),
        Misuse(
            "accept list in use",
            [
                LESetScanParameters(scanningFilterPolicy: .basicFiltered), LESetScanEnable(leScanEnable: true),
                LEAddDeviceToFilterAcceptList(address: PeerAddress(World.address(1))),
            ],
            .commandDisallowed
        ),
        Misuse(
            "accept list not in use",
            [
                LESetScanEnable(leScanEnable: true),
                LEAddDeviceToFilterAcceptList(address: PeerAddress(World.address(1))),
            ],
            .success
        ),
        Misuse(
            "address of no type",
            [LEAddDeviceToFilterAcceptList(address: PeerAddress(type: .publicIdentity, value: 1))],
            .invalidHCICommandParameters
        ),
        Misuse(
            "more than the accept list holds",
            (0..<17).map { LEAddDeviceToFilterAcceptList(address: PeerAddress(World.address($0))) },
            .memoryCapacityExceeded
        ),
    ]

    @Test(arguments: misuses)
    func scanningCommandInAnInvalidStateIsRefused(_ misuse: Misuse) { misuse.check(in: World(count: 1)) }

    /// Controller 0 advertises with legacy commands every 100 ms, with a scan response.
    static func advertise(
        in world: World,
        _ type: AdvertisingType = .connectableScannableUndirected,
        filter: AdvertisingFilterPolicy = .all
    ) {
        world.succeed(
            LESetAdvertisingData(advertisingData: LegacyAdvertisingData([0x02, 0x01, 0x06])),
            LESetScanResponseData(scanResponseData: LegacyAdvertisingData([0x02, 0x09, 0x41])),
            LESetAdvertisingParameters(
                advertisingIntervalMin: 160,
                advertisingIntervalMax: 160,
                advertisingType: type,
                peerAddress: World.address(1),
                advertisingFilterPolicy: filter
            ),
            LESetAdvertisingEnable(advertisingEnable: true),
            at: 0
        )
    }

    static let advertisement: [UInt8] = [
        0x04, 0x3E, 0x0F, 0x02, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x03, 0x02, 0x01, 0x06, 0xEC,
    ]
    static let scanResponse: [UInt8] = [
        0x04, 0x3E, 0x0F, 0x02, 0x01, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x03, 0x02, 0x09, 0x41, 0xEC,
    ]

    @Test("A passive scanner gets the advertisement, an active one the scan response as well, each once")
    func onlyAnActiveScannerGetsTheScanResponse() {
        let world = World(count: 3)
        world.succeed(LESetScanEnable(leScanEnable: true, filterDuplicates: true), at: 1)
        world.succeed(LESetScanParameters(leScanType: .active), LESetScanEnable(leScanEnable: true), at: 2)
        Self.advertise(in: world)
        world.run(.seconds(1))
        #expect(world.packets[1] == [Self.advertisement])
        #expect(world.packets[2].prefix(2) == [Self.advertisement, Self.scanResponse])
        // Every 100 to 110 ms, an advertisement and a scan response each.
        #expect((18...20).contains(world.packets[2].count))
    }

    @Test(
        arguments: [
            (AdvertisingType.connectableScannableUndirected, UInt8(0x00), UInt16(0x13)),
            (.connectableHighDutyCycleDirected, 0x01, 0x15), (.scannableUndirected, 0x02, 0x12),
            (.nonConnectableUndirected, 0x03, 0x10), (.connectableLowDutyCycleDirected, 0x01, 0x15),
        ]
    )
    func passiveScannerReportsEachKindOfLegacyAdvertising(_ type: AdvertisingType, _ legacy: UInt8, _ extended: UInt16)
        throws
    {
        let world = World(count: 3)
        world.succeed(LESetScanEnable(leScanEnable: true, filterDuplicates: true), at: 1)
        world.succeed(
            LESetExtendedScanParameters(scanningFilterPolicy: .extendedUnfiltered),
            LESetExtendedScanEnable(enable: true, filterDuplicates: .enabled),
            at: 2
        )
        Self.advertise(in: world, type)
        world.run(.seconds(1))
        #expect(world.events(LEAdvertisingReport.subeventCode, at: 1).map { $0[1] } == [legacy])
        // Controller 2 ignores advertising directed to controller 1.
        let isDirected = extended == 0x15
        #expect(world.extendedReports(at: 2).map(\.eventType.rawValue) == (isDirected ? [] : [extended]))
        #expect(world.extendedReports(at: 2).allSatisfy { $0.phys == [.le1M, .none] && $0.sid == 0xFF })
    }

    @Test("A filtered scan receives only advertisers of the accept list")
    func filteredScanReceivesOnlyAdvertisersOfTheAcceptList() {
        let world = World(count: 3)
        world.succeed(LESetAdvertisingEnable(advertisingEnable: true), at: 2)
        Self.advertise(in: world)
        world.succeed(
            LEAddDeviceToFilterAcceptList(address: PeerAddress(World.address(0))),
            LESetScanParameters(scanningFilterPolicy: .basicFiltered),
            LESetScanEnable(leScanEnable: true, filterDuplicates: true),
            at: 1
        )
        world.run(.seconds(3))
        #expect(world.packets[1] == [Self.advertisement])
    }

    @Test("An advertiser can answer scan requests of its accept list only")
    func advertiserAnswersScanRequestsOfItsAcceptListOnly() {
        let world = World(count: 3)
        world.succeed(LEAddDeviceToFilterAcceptList(address: PeerAddress(World.address(1))), at: 0)
        Self.advertise(in: world, filter: .scanRequestsFromFilterAcceptList)
        for index in 1...2 {
            world.succeed(
                LESetScanParameters(leScanType: .active),
                LESetScanEnable(leScanEnable: true, filterDuplicates: true),
                at: index
            )
        }
        world.run(.seconds(1))
        #expect(world.packets[1] == [Self.advertisement, Self.scanResponse])
        #expect(world.packets[2] == [Self.advertisement])
    }

    @Test("A scanner receives in its windows only")
    func scannerReceivesInItsWindowsOnly() {
        let world = World(count: 2)
        // A tenth of the time.
        world.succeed(
            LESetScanParameters(leScanInterval: 0x0140, leScanWindow: 0x0020),
            LESetScanEnable(leScanEnable: true),
            at: 1
        )
        Self.advertise(in: world, .nonConnectableUndirected)
        world.run(.seconds(210))
        // About 2000 events.
        #expect((150...250).contains(world.packets[1].count))
    }

    @Test("Lost packets are not reported, and a lost scan response does not affect the advertisement")
    func lostPacketsAreNotReported() {
        let world = World(count: 2, seed: 7)
        world.air.conditions = RadioConditions(loss: 0.5)
        world.succeed(LESetScanParameters(leScanType: .active), LESetScanEnable(leScanEnable: true), at: 1)
        Self.advertise(in: world)
        world.run(.seconds(210))
        let advertisements = world.packets[1].filter { $0 == Self.advertisement }.count
        let responses = world.packets[1].filter { $0 == Self.scanResponse }.count
        #expect((900...1100).contains(advertisements))
        // The request and the response must be received too.
        #expect((200...300).contains(responses))
        world.air.conditions = RadioConditions(isDead: true)
        world.forget()
        world.run(.seconds(10))
        #expect(world.packets[1].isEmpty)
    }

    @Test("Signals weaken with distance until they are not received", arguments: [(1.0, -40), (10, -60), (1000, nil)])
    func signalsWeakenWithDistance(_ metres: Double, _ rssi: Int?) {
        let world = World(count: 2)
        world.controllers[1].position = Position(x: metres, y: 0)
        world.succeed(LESetScanEnable(leScanEnable: true, filterDuplicates: true), at: 1)
        Self.advertise(in: world)
        world.run(.seconds(1))
        #expect(world.packets[1].compactMap(\.last).map { Int(Int8(bitPattern: $0)) } == (rssi.map { [$0] } ?? []))
    }

    @Test("Reports are delayed by the air's latency, and none arrives after scanning has ended")
    func reportsAreDelayedAndNoneArrivesAfterTheEnd() {
        let world = World(count: 2)
        world.air.conditions = RadioConditions(latency: .milliseconds(50))
        world.succeed(LESetScanEnable(leScanEnable: true, filterDuplicates: true), at: 1)
        Self.advertise(in: world)
        world.run(.milliseconds(49))
        #expect(world.packets[1].isEmpty)
        world.run(.milliseconds(12))
        #expect(world.packets[1] == [Self.advertisement])
        world.succeed(LESetScanEnable(leScanEnable: false), LESetScanEnable(leScanEnable: true), at: 1)
        world.run(.milliseconds(61))
        world.forget()
        world.succeed(LESetScanEnable(leScanEnable: false), at: 1)
        world.run(.seconds(1))
        #expect(world.packets[1].isEmpty)
    }

    @Test("Reports about a device stay in order, however much their delays differ, also when a scan is restarted")
    func reportsAboutADeviceStayInOrder() {
        let world = World(count: 2)
        world.air.conditions = RadioConditions(jitter: .milliseconds(900))
        world.succeed(LESetScanEnable(leScanEnable: true), at: 1)
        Self.advertise(in: world)
        for value in UInt8(10)..<60 {
            world.succeed(LESetAdvertisingData(advertisingData: LegacyAdvertisingData([0x02, 0x01, value])), at: 0)
            world.run(.milliseconds(100))
            guard value.isMultiple(of: 5) else { continue }
            world.succeed(LESetScanEnable(leScanEnable: false), LESetScanEnable(leScanEnable: true), at: 1)
        }
        world.run(.seconds(2))
        let values = world.packets[1].map { $0[$0.count - 2] }
        #expect(values.count > 30 && values == values.sorted())
    }

    @Test("A scan of a duration ends with Scan Timeout")
    func scanOfADurationEndsWithScanTimeout() {
        let world = World(count: 1)
        world.succeed(LESetExtendedScanEnable(enable: true, duration: 100), at: 0)
        world.run(.milliseconds(999))
        #expect(world.packets[0].isEmpty)
        world.run(.milliseconds(1))
        #expect(world.packets[0] == [[0x04, 0x3E, 0x01, 0x11]])
        #expect(!world.controllers[0].scanner.isEnabled && world.air.listeners.isEmpty)
    }

    @Test(
        "A filter can forget in each period which advertisers it has reported",
        arguments: [
            (DuplicateFilter.enabled, 1), (.resetEachPeriod, 3),
        ]
    )
    func filterForgetsReportedAdvertisersInEachPeriod(_ filter: DuplicateFilter, _ reports: Int) {
        let world = World(count: 2)
        Self.advertise(in: world)
        // In the first second of each 2.56 s.
        world.succeed(
            LESetExtendedScanEnable(enable: true, filterDuplicates: filter, duration: 100, period: 2),
            at: 1
        )
        world.run(.milliseconds(2560 * 3 - 10))
        #expect(world.extendedReports(at: 1).count == reports)
        #expect(world.events(LEScanTimeout.subeventCode, at: 1).isEmpty)
    }

    @Test("Runs from the same seed are the same, and differ from another seed's")
    func runsFromTheSameSeedAreTheSame() {
        func trace(_ seed: UInt64) -> [[[UInt8]]] {
            let world = World(count: 3, seed: seed)
            world.air.conditions = RadioConditions(loss: 0.3, jitter: .milliseconds(5))
            for index in 1...2 {
                world.succeed(LESetScanParameters(leScanType: .active), LESetScanEnable(leScanEnable: true), at: index)
            }
            Self.advertise(in: world)
            world.run(.seconds(5))
            return world.packets
        }
        #expect(trace(1) == trace(1))
        #expect(trace(1) != trace(2))
    }
}
