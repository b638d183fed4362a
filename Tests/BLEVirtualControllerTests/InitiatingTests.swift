import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEVirtualController

@Suite("Initiating")
struct InitiatingTests {
    static let peer = World.address(1)
    static let misuses: [Misuse] = [
        Misuse("twice", [LECreateConnection(), LECreateConnection()], .commandDisallowed),
        Misuse("cancelling none", [LECreateConnectionCancel()], .commandDisallowed),
        Misuse("scan interval too short", [LECreateConnection(leScanInterval: 3)], .invalidHCICommandParameters),
        Misuse("scan window too long", [LECreateConnection(leScanWindow: 0x61)], .invalidHCICommandParameters),
        Misuse("interval too short", [LECreateConnection(connectionIntervalMin: 5)], .invalidHCICommandParameters),
        Misuse("interval too long", [LECreateConnection(connectionIntervalMax: 0xC81)], .invalidHCICommandParameters),
        Misuse("interval upside down", [LECreateConnection(connectionIntervalMin: 0x29)], .invalidHCICommandParameters),
        Misuse("latency too long", [LECreateConnection(maxLatency: 0x1F4)], .invalidHCICommandParameters),
        Misuse("timeout too short", [LECreateConnection(supervisionTimeout: 9)], .invalidHCICommandParameters),
        Misuse(
            "timeout too short for the latency",
            [LECreateConnection(maxLatency: 99, supervisionTimeout: 1000)],
            .invalidHCICommandParameters
        ),
        Misuse("connection event upside down", [LECreateConnection(minCELength: 1)], .invalidHCICommandParameters),
        Misuse(
            "peer of no type",
            [LECreateConnection(peerAddress: PeerAddress(type: AddressType(rawValue: 4), value: 0))],
            .invalidHCICommandParameters
        ),
        Misuse("no random address", [LECreateConnection(ownAddressType: .random)], .invalidHCICommandParameters),
        Misuse(
            "neither key nor random address",
            [LECreateConnection(initiatorFilterPolicy: .filterAcceptList, ownAddressType: .resolvableOrRandom)],
            .invalidHCICommandParameters
        ),
        Misuse(
            "decision PDUs",
            [LEExtendedCreateConnection(initiatorFilterPolicy: .decisionPDUs)],
            .unsupportedFeatureOrParameterValue
        ),
        Misuse(
            "LE 2M alone",
            [LEExtendedCreateConnection(le1M: nil, le2M: .init())],
            .invalidHCICommandParameters
        ),
        Misuse(
            "legacy after extended",
            [LESetExtendedScanParameters(), LECreateConnection()],
            .commandDisallowed
        ),
        Misuse(
            "accept list in use",
            [LECreateConnection(initiatorFilterPolicy: .filterAcceptList), LEClearFilterAcceptList()],
            .commandDisallowed
        ),
        Misuse(
            "accept list not in use",
            [LECreateConnection(), LEClearFilterAcceptList()],
            .success
        ),
    ]

    @Test(arguments: misuses)
    func initiatingCommandInAnInvalidStateIsRefused(_ misuse: Misuse) { misuse.check(in: World(count: 1)) }

    @Test("A cancelled connection is reported as Unknown Connection Identifier, after the answer")
    func cancelledConnectionIsReportedAfterTheAnswer() {
        let world = World(count: 1, masks: .default)
        world.succeed(LECreateConnection(peerAddress: PeerAddress(Self.peer)), at: 0)
        let packets = world.send(LECreateConnectionCancel(), to: 0)
        #expect(packets.count == 2 && packets.first == [0x04, 0x0E, 0x04, 0x01, 0x0E, 0x20, 0x00])
        #expect(packets.last?.prefix(5) == [0x04, 0x3E, 0x13, 0x01, 0x02])
        #expect(world.air.listeners.isEmpty)
        #expect(world.status(of: LECreateConnectionCancel(), to: 0) == .commandDisallowed)
    }

    @Test("A legacy connection is reported to both hosts, with opposite roles and its parameters")
    func legacyConnectionIsReportedToBothHosts() {
        let world = World(count: 2)
        world.connect()
        let (peripheral, central) = (world.connections(at: 0), world.connections(at: 1))
        #expect(peripheral.map(\.role) == [.peripheral] && central.map(\.role) == [.central])
        #expect(peripheral.map(\.peerAddress) == [PeerAddress(World.address(1))])
        #expect(central.map(\.peerAddress) == [PeerAddress(World.address(0))])
        #expect((peripheral + central).allSatisfy { $0.connectionInterval == 0x18 && $0.supervisionTimeout == 0x1F4 })
        #expect(
            (peripheral + central).allSatisfy { $0.status == .success && $0.localResolvablePrivateAddress.value == 0 }
        )
        #expect(!world.controllers[0].advertiser.isAdvertising && world.controllers[1].initiator == nil)
        let again = LECreateConnection(peerAddress: PeerAddress(World.address(0)))
        #expect(world.status(of: again, to: 1) == .connectionAlreadyExists)
    }

    @Test(
        "A connection to an extended advertiser uses its secondary PHY, and ends the set afterwards",
        arguments: [
            PHY.le1M, .le2M, .leCoded,
        ]
    )
    func extendedConnectionUsesTheSecondaryPHYAndEndsTheSet(_ phy: PHY) throws {
        let world = World(count: 2)
        world.succeed(
            ExtendedAdvertisingTests.parameters(.connectable) {
                $0.secondaryAdvertisingPHY = phy
                $0.primaryAdvertisingPHY = phy == .leCoded ? .leCoded : .le1M
            },
            ExtendedAdvertisingTests.enable,
            at: 0
        )
        world.succeed(
            LEExtendedCreateConnection(
                peerAddress: World.address(0),
                le1M: .init(connectionIntervalMin: 0x18, connectionIntervalMax: 0x18),
                le2M: .init(connectionIntervalMin: 0x20, connectionIntervalMax: 0x20),
                leCoded: .init(connectionIntervalMin: 0x28, connectionIntervalMax: 0x28)
            ),
            at: 1
        )
        world.run(.seconds(1))
        let interval: UInt16 = phy == .le1M ? 0x18 : phy == .le2M ? 0x20 : 0x28
        #expect(world.connections(at: 1).map(\.connectionInterval) == [interval])
        let handle = try #require(world.connections(at: 0).first).connectionHandle
        let terminated = try #require(world.terminated(at: 0).first)
        #expect(terminated.status == .success && terminated.advertisingHandle == 3)
        #expect(terminated.connectionHandle == handle)
        let subevents = world.packets[0].map { $0[3] }
        let order = [
            subevents.firstIndex(of: LEEnhancedConnectionComplete.subeventCode),
            subevents.firstIndex(of: LEAdvertisingSetTerminated.subeventCode),
        ].compactMap(\.self)
        #expect(order.count == 2 && order == order.sorted())
    }

    @Test("Without parameters for the secondary PHY, those of the primary one are used")
    func parametersOfThePrimaryPHYServeForTheSecondaryOne() {
        let world = World(count: 2)
        world.succeed(ExtendedAdvertisingTests.parameters(.connectable), ExtendedAdvertisingTests.enable, at: 0)
        world.succeed(
            LEExtendedCreateConnection(peerAddress: World.address(0), le1M: .init(connectionIntervalMin: 0x19)),
            at: 1
        )
        world.run(.seconds(1))
        #expect(world.connections(at: 1).map(\.connectionInterval) == [0x19])
    }

    @Test("A legacy initiator does not connect to extended advertising")
    func legacyInitiatorDoesNotConnectToExtendedAdvertising() {
        let world = World(count: 2)
        world.succeed(ExtendedAdvertisingTests.parameters(.connectable), ExtendedAdvertisingTests.enable, at: 0)
        world.succeed(LECreateConnection(peerAddress: PeerAddress(World.address(0))), at: 1)
        world.run(.seconds(3))
        #expect(world.packets[1].isEmpty)
    }

    @Test("With the accept list, only a listed advertiser is connected")
    func onlyAListedAdvertiserIsConnectedByTheAcceptList() {
        let world = World(count: 3)
        for index in [0, 2] { world.succeed(LESetAdvertisingEnable(advertisingEnable: true), at: index) }
        world.succeed(
            LEAddDeviceToFilterAcceptList(address: PeerAddress(World.address(2))),
            LECreateConnection(initiatorFilterPolicy: .filterAcceptList),
            at: 1
        )
        world.run(.seconds(3))
        #expect(world.connections(at: 1).map(\.peerAddress) == [PeerAddress(World.address(2))])
        #expect(world.packets[0].isEmpty)
    }

    @Test("An advertiser with an accept list is connected by listed devices only")
    func advertiserWithAnAcceptListIsConnectedByListedDevicesOnly() {
        let world = World(count: 3)
        world.succeed(LEAddDeviceToFilterAcceptList(address: PeerAddress(World.address(2))), at: 0)
        ScanningTests.advertise(in: world, filter: .connectionRequestsFromFilterAcceptList)
        for index in 1...2 {
            world.succeed(LECreateConnection(peerAddress: PeerAddress(World.address(0))), at: index)
        }
        world.run(.seconds(1))
        #expect(world.connections(at: 0).map(\.peerAddress) == [PeerAddress(World.address(2))])
        #expect(world.packets[1].isEmpty)
    }

    @Test("Directed advertising is for one device, and not for scanners")
    func directedAdvertisingIsForOneDeviceOnly() {
        let world = World(count: 3)
        for index in 1...2 {
            world.succeed(LECreateConnection(peerAddress: PeerAddress(World.address(0))), at: index)
        }
        ScanningTests.advertise(in: world, .connectableLowDutyCycleDirected)
        world.run(.seconds(1))
        #expect(world.connections(at: 0).map(\.peerAddress) == [PeerAddress(World.address(1))])
        #expect(world.packets[2].isEmpty)
    }

    @Test("High duty cycle directed advertising ends after 1.28 s")
    func highDutyCycleAdvertisingEndsAfter1280Milliseconds() {
        let world = World(count: 2)
        world.succeed(LESetScanEnable(leScanEnable: true), at: 1)
        ScanningTests.advertise(in: world, .connectableHighDutyCycleDirected)
        world.run(.milliseconds(1279))
        #expect(world.packets[0].isEmpty)
        world.run(.milliseconds(1))
        #expect(world.connections(at: 0).map(\.status) == [.advertisingTimeout])
        #expect(world.connections(at: 0).map(\.role) == [.peripheral])
        // At most 3.75 ms apart.
        #expect(world.packets[1].count >= 1270 * 4 / 15)
        world.forget()
        world.run(.seconds(1))
        #expect(world.packets[1].isEmpty)
    }

    @Test("After a lost connection request, the next advertising event causes another")
    func nextAdvertisingEventRepeatsALostConnectionRequest() {
        let world = World(count: 2, seed: 3)
        world.air.conditions = RadioConditions(loss: 0.9)
        ScanningTests.advertise(in: world)
        world.succeed(
            LECreateConnection(peerAddress: PeerAddress(World.address(0)), supervisionTimeout: 0x0C80),
            at: 1
        )
        world.run(.seconds(300))
        #expect(world.connections(at: 1).count == 1 && world.connections(at: 0).count == 1)
    }

    @Test("A controller without room for a link makes none, and its peer continues")
    func controllerWithoutRoomForALinkMakesNone() {
        let world = World(count: 4) { if $0.address == World.address(1) { $0.maximumLinks = 1 } }
        world.connect()
        let more = LECreateConnection(peerAddress: PeerAddress(World.address(2)))
        #expect(world.status(of: more, to: 1) == .connectionLimitExceeded)
        world.succeed(LESetAdvertisingEnable(advertisingEnable: true), at: 1)
        world.succeed(LECreateConnection(peerAddress: PeerAddress(World.address(1))), at: 2)
        world.run(.seconds(3))
        #expect(world.connections(at: 2).isEmpty && world.controllers[1].advertiser.isAdvertising)
    }
}
