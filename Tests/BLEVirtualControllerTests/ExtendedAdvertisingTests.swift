import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEVirtualController

@Suite("Extended advertising")
struct ExtendedAdvertisingTests {
    static func parameters(
        _ properties: AdvertisingEventProperties = [],
        _ change: (inout ExtendedParameters) -> Void = { _ in }
    ) -> ExtendedParameters {
        var parameters = ExtendedParameters(
            advertisingHandle: 3,
            advertisingEventProperties: properties,
            primaryAdvertisingIntervalMin: 160,
            primaryAdvertisingIntervalMax: 160,
            secondaryAdvertisingPHY: .le2M,
            advertisingSID: 5
        )
        change(&parameters)
        return parameters
    }

    static let enable = ExtendedEnable(enable: true, sets: [.init(advertisingHandle: 3)])

    /// Data of `count` bytes, each its number, in as many commands as needed.
    static func data(_ count: Int) -> [LESetExtendedAdvertisingData] {
        fragments(count).map {
            LESetExtendedAdvertisingData(
                advertisingHandle: 3,
                operation: $0,
                advertisingData: AdvertisingDataFragment($1)
            )
        }
    }

    static func responseData(_ count: Int) -> [LESetExtendedScanResponseData] {
        fragments(count).map {
            LESetExtendedScanResponseData(
                advertisingHandle: 3,
                operation: $0,
                scanResponseData: AdvertisingDataFragment($1)
            )
        }
    }

    static func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0) } }

    static func fragments(_ count: Int) -> [(AdvertisingDataOperation, [UInt8])] {
        let bytes = bytes(count)
        guard count > 251 else { return [(.complete, bytes)] }
        return stride(from: 0, to: count, by: 251).map { start in
            let end = min(start + 251, count)
            let operation: AdvertisingDataOperation =
                start == 0 ? .firstFragment : end == count ? .lastFragment : .intermediateFragment
            return (operation, Array(bytes[start..<end]))
        }
    }

    static func world(_ count: Int = 2, seed: UInt64 = 0, active: Bool = false) -> World {
        let world = World(count: count, seed: seed)
        let phy = LESetExtendedScanParameters.PHYParameters(scanType: active ? .active : .passive)
        world.succeed(
            LESetExtendedScanParameters(le1M: phy),
            LESetExtendedScanEnable(enable: true, filterDuplicates: .enabled),
            at: 1
        )
        return world
    }

    @Test(
        "Data of any length arrives complete, in reports of at most 229 bytes",
        arguments: [0, 1, 229, 230, 251, 1000, 1650]
    )
    func dataOfAnyLengthArrivesComplete(_ count: Int) {
        let world = Self.world()
        world.succeed(Self.parameters(), at: 0)
        for command in Self.data(count) { world.succeed(command, at: 0) }
        world.succeed(Self.enable, at: 0)
        world.run(.seconds(1))
        let reports = world.extendedReports(at: 1)
        #expect(reports.flatMap(\.data) == Self.bytes(count))
        #expect(reports.count == max(1, (count + 228) / 229))
        #expect(reports.dropLast().allSatisfy { $0.eventType.dataStatus == .incompleteMoreToCome })
        #expect(reports.last?.eventType.rawValue == 0)
        #expect(reports.allSatisfy { $0.address == PeerAddress(World.address(0)) && $0.sid == 5 })
        #expect(reports.allSatisfy { $0.phys == [.le1M, .le2M] && $0.txPower == 127 && $0.rssi == -20 })
    }

    @Test("A scan response of 1,650 bytes arrives complete, and its advertiser reports the scanner")
    func longScanResponseArrivesCompleteAndTheScannerIsReported() {
        let world = Self.world(active: true)
        world.succeed(Self.parameters(.scannable) { $0.scanRequestNotificationEnable = true }, at: 0)
        for command in Self.responseData(1650) { world.succeed(command, at: 0) }
        world.succeed(Self.enable, at: 0)
        world.run(.seconds(1))
        let reports = world.extendedReports(at: 1)
        #expect(reports.first?.eventType.rawValue == 0x02 && reports.first?.data == [])
        #expect(reports.dropFirst().allSatisfy { $0.eventType.isSuperset(of: [.scannable, .scanResponse]) })
        #expect(reports.flatMap(\.data) == Self.bytes(1650))
        // Requested once: there is nothing more to report.
        let requests = world.events(LEScanRequestReceived.subeventCode, at: 0)
        #expect(requests == [[0x03, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x10]])
    }

    @Test("A chain without its end is reported as truncated, and again until it is complete")
    func chainWithoutItsEndIsReportedAsTruncatedUntilComplete() {
        let world = Self.world(seed: 1)
        world.air.conditions = RadioConditions(loss: 0.3)
        world.succeed(Self.parameters(), at: 0)
        for command in Self.data(1650) { world.succeed(command, at: 0) }
        world.succeed(Self.enable, at: 0)
        world.run(.seconds(30))
        let ends = world.extendedReports(at: 1).map(\.eventType.dataStatus).filter { $0 != .incompleteMoreToCome }
        #expect(ends.contains(.truncated))
        #expect(ends.filter { $0 == .complete }.count == 1 && ends.last == .complete)
    }

    @Test("New data of a known advertiser is reported, and so is data marked as new")
    func newDataOfAKnownAdvertiserIsReported() {
        let world = Self.world()
        world.succeed(Self.parameters(), Self.data(3)[0], Self.enable, at: 0)
        world.run(.seconds(1))
        #expect(world.extendedReports(at: 1).map(\.data) == [Self.bytes(3)])
        world.succeed(Self.data(4)[0], at: 0)
        world.run(.seconds(1))
        #expect(world.extendedReports(at: 1).map(\.data) == [Self.bytes(3), Self.bytes(4)])
        world.succeed(LESetExtendedAdvertisingData(advertisingHandle: 3, operation: .unchanged), at: 0)
        world.run(.seconds(1))
        #expect(world.extendedReports(at: 1).map(\.data) == [Self.bytes(3), Self.bytes(4), Self.bytes(4)])
    }

    @Test("Extended PDUs are invisible to a legacy scanner, and the coded PHY to one of LE 1M")
    func extendedPDUsAreInvisibleToLegacyScanners() {
        let world = World(count: 4)
        world.succeed(LESetScanEnable(leScanEnable: true), at: 1)
        world.succeed(LESetExtendedScanParameters(), LESetExtendedScanEnable(enable: true), at: 2)
        world.succeed(
            LESetExtendedScanParameters(le1M: nil, leCoded: .init()),
            LESetExtendedScanEnable(enable: true, filterDuplicates: .enabled),
            at: 3
        )
        world.succeed(
            Self.parameters {
                $0.primaryAdvertisingPHY = .leCoded
                $0.secondaryAdvertisingPHY = .leCoded
            },
            Self.enable,
            at: 0
        )
        world.run(.seconds(1))
        #expect(world.packets[1].isEmpty && world.packets[2].isEmpty)
        #expect(world.extendedReports(at: 3).map(\.phys) == [[.leCoded, .leCoded]])
    }

    @Test("An anonymous advertiser has no address, and reports its power if that is enabled")
    func anonymousAdvertiserHasNoAddressAndReportsItsPower() {
        let world = Self.world()
        world.succeed(
            Self.parameters([.omitAdvertiserAddress, .includeTXPower]) { $0.advertisingTXPower = -10 },
            Self.enable,
            at: 0
        )
        world.run(.seconds(1))
        let reports = world.extendedReports(at: 1)
        #expect(reports.map(\.address) == [.anonymous])
        #expect(reports.map(\.txPower) == [-10] && reports.map(\.rssi) == [-30])
    }

    @Test("The accept list can contain all anonymous advertisers")
    func acceptListCanContainAllAnonymousAdvertisers() {
        let world = World(count: 3)
        world.succeed(Self.parameters(.omitAdvertiserAddress), Self.enable, at: 0)
        world.succeed(Self.parameters(), Self.enable, at: 2)
        world.succeed(
            LEAddDeviceToFilterAcceptList(address: .anonymous),
            LESetExtendedScanParameters(scanningFilterPolicy: .basicFiltered),
            LESetExtendedScanEnable(enable: true, filterDuplicates: .enabled),
            at: 1
        )
        world.run(.seconds(1))
        #expect(world.extendedReports(at: 1).map(\.address) == [.anonymous])
    }

    @Test("Directed advertising is received by its target, with data")
    func directedAdvertisingIsReceivedByItsTargetWithData() {
        let world = Self.world(3)
        world.succeed(LESetExtendedScanEnable(enable: true), at: 2)
        world.succeed(
            Self.parameters(.directed) { $0.peerAddress = World.address(1) },
            Self.data(3)[0],
            Self.enable,
            at: 0
        )
        world.run(.seconds(1))
        #expect(world.extendedReports(at: 1).map(\.directAddress) == [PeerAddress(World.address(1))])
        #expect(world.extendedReports(at: 1).map(\.eventType) == [.directed])
        #expect(world.packets[2].isEmpty)
    }

    @Test("Sixteen sets are advertised at the same time, each with its address")
    func sixteenSetsAreAdvertisedEachWithItsAddress() {
        let world = Self.world()
        for handle: UInt8 in 0..<16 {
            world.succeed(
                Self.parameters {
                    $0.advertisingHandle = handle
                    $0.ownAddressType = .random
                    $0.advertisingSID = handle
                },
                LESetAdvertisingSetRandomAddress(
                    advertisingHandle: handle,
                    randomAddress: .randomStatic(from: UInt64(handle) + 1)
                ),
                at: 0
            )
        }
        world.succeed(ExtendedEnable(enable: true, sets: (0..<16).map { .init(advertisingHandle: $0) }), at: 0)
        world.run(.seconds(1))
        let reports = world.extendedReports(at: 1).sorted { $0.sid < $1.sid }
        #expect(reports.map(\.sid) == Array(0..<16))
        #expect(reports.map(\.address.value) == (1...16).map { 0xC000_0000_0000 + $0 })
        world.succeed(ExtendedEnable(enable: false), LEClearAdvertisingSets(), at: 0)
    }

    @Test("A set ends after its duration")
    func setEndsAfterItsDuration() {
        let world = World(count: 1)
        world.succeed(
            Self.parameters(),
            ExtendedEnable(enable: true, sets: [.init(advertisingHandle: 3, duration: 50)]),
            at: 0
        )
        world.run(.milliseconds(499))
        #expect(world.terminated(at: 0).isEmpty)
        world.run(.milliseconds(1))
        let ended = world.terminated(at: 0)
        #expect(ended.map(\.status) == [.advertisingTimeout] && ended.map(\.advertisingHandle) == [3])
        #expect(ended.allSatisfy { (4...5).contains($0.numCompletedExtendedAdvertisingEvents) })
    }

    @Test("A set ends after its number of events")
    func setEndsAfterItsNumberOfEvents() {
        let world = Self.world()
        world.succeed(
            Self.parameters(),
            ExtendedEnable(enable: true, sets: [.init(advertisingHandle: 3, maxExtendedAdvertisingEvents: 3)]),
            at: 0
        )
        world.run(.seconds(1))
        #expect(
            world.terminated(at: 0)
                == [
                    LEAdvertisingSetTerminated(
                        status: .limitReached,
                        advertisingHandle: 3,
                        connectionHandle: 0,
                        numCompletedExtendedAdvertisingEvents: 3
                    )
                ]
        )
    }

    @Test("The controller reports its capacities")
    func controllerReportsItsCapacities() {
        let world = World(count: 1)
        let length = world.send(LEReadMaximumAdvertisingDataLength(), to: 0)
        #expect(length == [[0x04, 0x0E, 0x06, 0x01, 0x3A, 0x20, 0x00, 0x72, 0x06]])
        let sets = world.send(LEReadNumberOfSupportedAdvertisingSets(), to: 0)
        #expect(sets == [[0x04, 0x0E, 0x05, 0x01, 0x3B, 0x20, 0x00, 0x10]])
        let accepted = world.send(LEReadFilterAcceptListSize(), to: 0)
        #expect(accepted == [[0x04, 0x0E, 0x05, 0x01, 0x0F, 0x20, 0x00, 0x10]])
        let resolved = world.send(LEReadResolvingListSize(), to: 0)
        #expect(resolved == [[0x04, 0x0E, 0x05, 0x01, 0x2A, 0x20, 0x00, 0x10]])
    }

    @Test(
        "The power is the requested one, up to the maximum",
        arguments: [
            (Int8(127), UInt8(0)), (20, 0), (0, 0), (-10, 0xF6),
        ]
    )
    func powerIsTheRequestedOneUpToTheMaximum(_ requested: Int8, _ selected: UInt8) {
        let world = World(count: 1)
        let answer = world.send(Self.parameters { $0.advertisingTXPower = requested }, to: 0)
        #expect(answer == [[0x04, 0x0E, 0x05, 0x01, 0x36, 0x20, 0x00, selected]])
    }

    @Test("A set that is enabled again starts its duration again")
    func enablingAgainRestartsTheDuration() {
        let world = World(count: 1)
        let enable = ExtendedEnable(enable: true, sets: [.init(advertisingHandle: 3, duration: 50)])
        world.succeed(Self.parameters(), enable, at: 0)
        world.run(.milliseconds(400))
        world.succeed(enable, at: 0)
        world.run(.milliseconds(499))
        #expect(world.terminated(at: 0).isEmpty)
        world.run(.milliseconds(1))
        #expect(world.terminated(at: 0).map(\.status) == [.advertisingTimeout])
    }

    @Test(
        "Connectable data must fit one PDU, whose room depends on its other fields",
        arguments: [
            (.connectable, 245), ([.connectable, .includeTXPower], 244), ([.connectable, .directed], 239),
        ] as [(AdvertisingEventProperties, Int)]
    )
    func connectableDataMustFitOnePDU(_ properties: AdvertisingEventProperties, _ room: Int) {
        let world = World(count: 1)
        let parameters = Self.parameters(properties) { $0.peerAddress = World.address(1) }
        world.succeed(parameters, Self.data(room + 1)[0], at: 0)
        #expect(world.status(of: Self.enable, to: 0) == .invalidHCICommandParameters)
        world.succeed(Self.data(room)[0], Self.enable, at: 0)
        #expect(world.status(of: Self.data(room + 1)[0], to: 0) == .invalidHCICommandParameters)
    }

    @Test("Data that takes longer than the interval is refused, and all of it is discarded")
    func dataThatTakesLongerThanTheIntervalIsDiscarded() throws {
        func parameters(_ properties: AdvertisingEventProperties) -> ExtendedParameters {
            Self.parameters(properties) {
                $0.primaryAdvertisingIntervalMin = 0x20
                $0.primaryAdvertisingIntervalMax = 0x20
                $0.secondaryAdvertisingPHY = .leCoded
            }
        }
        let train = LESetPeriodicAdvertisingParameters(
            advertisingHandle: 3,
            periodicAdvertisingIntervalMin: 16,
            periodicAdvertisingIntervalMax: 16
        )
        let trainData = Self.fragments(502).map {
            LESetPeriodicAdvertisingData(
                advertisingHandle: 3,
                operation: $0,
                advertisingData: PeriodicAdvertisingDataFragment($1)
            )
        }
        let world = World(count: 1)
        world.succeed(parameters([]), Self.data(502)[0], train, trainData[0], at: 0)
        #expect(world.status(of: Self.data(502)[1], to: 0) == .packetTooLong)
        #expect(world.status(of: trainData[1], to: 0) == .packetTooLong)
        world.succeed(parameters(.scannable), Self.responseData(502)[0], at: 0)
        #expect(world.status(of: Self.responseData(502)[1], to: 0) == .packetTooLong)
        let set = try #require(world.controllers[0].advertiser.sets.first)
        let trainPayload = try #require(set.train?.payload)
        for payload in [set.data, set.scanResponse, trainPayload] {
            #expect(payload.bytes.isEmpty && payload.isComplete)
        }
    }

    @Test("Data that is too long for the controller is discarded completely")
    func tooLongDataIsDiscarded() {
        let world = Self.world()
        world.succeed(Self.parameters(), at: 0)
        for command in Self.data(1650).dropLast() { world.succeed(command, at: 0) }
        let long = LESetExtendedAdvertisingData(
            advertisingHandle: 3,
            operation: .lastFragment,
            advertisingData: AdvertisingDataFragment(Self.bytes(251))
        )
        #expect(world.status(of: long, to: 0) == .memoryCapacityExceeded)
        world.succeed(Self.enable, at: 0)
        world.run(.seconds(1))
        #expect(world.extendedReports(at: 1).map(\.data) == [[]])
    }
}
