import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEVirtualController

/// Controller 0, the peripheral, transfers its train to controller 1, the central.
@Suite("Transfer of synchronizations")
struct SyncTransferTests {
    typealias Received = LEPeriodicAdvertisingSyncTransferReceived

    private static let handle = ConnectionHandle(VirtualController.firstHandle)
    private static let transfer = LEPeriodicAdvertisingSetInfoTransfer(
        connectionHandle: handle,
        serviceData: 0x1234,
        advertisingHandle: 3
    )

    /// Two controllers that are connected, the first of which has a train with an interval of 100 ms.
    ///
    /// - Parameters:
    ///   - knowsFeatures: whether the controllers know what the other one supports.
    ///   - features: those of the second controller.
    private static func world(
        knowsFeatures: Bool = true,
        features: LEFeatures = .all
    ) -> World {
        let world = PeriodicAdvertisingTests.world(10, features: features)
        world.succeed(
            ExtendedAdvertisingTests.parameters([.connectable, .scannable, .useLegacyPDUs]) {
                $0.advertisingHandle = 1
            },
            ExtendedEnable(enable: true, sets: [.init(advertisingHandle: 1)]),
            at: 0
        )
        world.succeed(LEExtendedCreateConnection(peerAddress: World.address(0)), at: 1)
        world.run(.seconds(2))
        if knowsFeatures {
            world.succeed(LEReadRemoteFeatures(connectionHandle: handle), at: 0)
            world.run(.seconds(1))
        }
        world.forget()
        return world
    }

    private static func accept(
        _ world: World,
        _ mode: PeriodicAdvertisingSyncTransferMode = .reportingEnabled,
        timeout: UInt16 = 100
    ) {
        world.succeed(
            LESetPeriodicAdvertisingSyncTransferParameters(connectionHandle: handle, mode: mode, syncTimeout: timeout),
            at: 1
        )
    }

    private static func received(_ world: World) -> [Received] {
        world.events(Received.subeventCode, at: 1).compactMap { try? Received(decoding: $0.rawSpan) }
    }

    private static let success = Received(
        connectionHandle: handle,
        serviceData: 0x1234,
        syncHandle: 0,
        advertisingSID: 5,
        advertiserAddress: PeerAddress(World.address(0)),
        advertiserPHY: .le2M,
        periodicAdvertisingInterval: 80,
        advertiserClockAccuracy: 0
    )

    @Test("A transferred train is received without a scan, until it is lost")
    func transferredTrainIsReceived() {
        let world = Self.world()
        Self.accept(world)
        world.succeed(Self.transfer, at: 0)
        world.run(.seconds(1))
        #expect(Self.received(world) == [Self.success])
        #expect((7...10).contains(PeriodicAdvertisingTests.reports(world).count))
        world.succeed(LESetPeriodicAdvertisingEnable(enable: [], advertisingHandle: 3), at: 0)
        world.run(.seconds(2))
        #expect(world.events(LEPeriodicAdvertisingSyncLost.subeventCode, at: 1).count == 1)
    }

    @Test("Transfers are ignored unless the host accepts them, and the default applies to later links")
    func transfersAreIgnoredByDefault() {
        let ignoring = Self.world()
        ignoring.succeed(Self.transfer, at: 0)
        ignoring.run(.seconds(1))
        #expect(Self.received(ignoring).isEmpty)
        ignoring.succeed(
            LESetDefaultPeriodicAdvertisingSyncTransferParameters(mode: .reportingEnabled, syncTimeout: 100),
            at: 1
        )
        ignoring.succeed(Self.transfer, at: 0)
        ignoring.run(.seconds(1))
        #expect(Self.received(ignoring).isEmpty, "the link is older")
        ignoring.succeed(
            Disconnect(connectionHandle: Self.handle, reason: .remoteUserTerminatedConnection),
            at: 1
        )
        ignoring.run(.seconds(1))
        ignoring.succeed(ExtendedEnable(enable: true, sets: [.init(advertisingHandle: 1)]), at: 0)
        ignoring.succeed(LEExtendedCreateConnection(peerAddress: World.address(0)), at: 1)
        ignoring.run(.seconds(2))
        ignoring.succeed(LEReadRemoteFeatures(connectionHandle: Self.handle), at: 0)
        ignoring.run(.seconds(1))
        ignoring.succeed(Self.transfer, at: 0)
        ignoring.run(.seconds(1))
        #expect(Self.received(ignoring) == [Self.success])
    }

    @Test("Reports can be disabled, and enabled later")
    func reportsCanBeDisabled() {
        let world = Self.world()
        Self.accept(world, .reportingDisabled)
        world.succeed(Self.transfer, at: 0)
        world.run(.seconds(1))
        #expect(Self.received(world) == [Self.success])
        #expect(PeriodicAdvertisingTests.reports(world).isEmpty)
        world.succeed(LESetPeriodicAdvertisingReceiveEnable(syncHandle: 0, enable: .reporting), at: 1)
        world.run(.seconds(1))
        #expect((9...11).contains(PeriodicAdvertisingTests.reports(world).count))
        world.succeed(LESetPeriodicAdvertisingReceiveEnable(syncHandle: 0, enable: []), at: 1)
        world.forget()
        world.run(.seconds(1))
        #expect(PeriodicAdvertisingTests.reports(world).isEmpty)
        #expect(
            world.status(of: LESetPeriodicAdvertisingReceiveEnable(syncHandle: 1, enable: []), to: 1)
                == .unknownAdvertisingIdentifier
        )
    }

    @Test("A train that is not heard fails, and one that is received already is ignored")
    func trainThatIsNotHeardFails() {
        let world = Self.world()
        Self.accept(world)
        world.succeed(Self.transfer, at: 0)
        world.run(.milliseconds(20))
        // The train ends before its next event.
        world.succeed(LESetPeriodicAdvertisingEnable(enable: [], advertisingHandle: 3), at: 0)
        world.run(.seconds(1))
        #expect(Self.received(world).map(\.status) == [.connectionFailedToBeEstablished])
        world.succeed(LESetPeriodicAdvertisingEnable(enable: .enabled, advertisingHandle: 3), at: 0)
        world.forget()
        for _ in 0..<3 {
            world.succeed(Self.transfer, at: 0)
            world.run(.seconds(1))
        }
        #expect(Self.received(world) == [Self.success])
    }

    @Test("A synchronization is transferred like the train itself")
    func synchronizationIsTransferred() {
        let world = Self.world()
        // Controller 1 receives the train, and transfers it back to the sender, which does not hear itself.
        PeriodicAdvertisingTests.synchronize(world)
        world.run(.seconds(1))
        world.succeed(LEReadRemoteFeatures(connectionHandle: Self.handle), at: 1)
        world.run(.seconds(1))
        let transfer = LEPeriodicAdvertisingSyncTransfer(
            connectionHandle: Self.handle,
            serviceData: 7,
            syncHandle: 0
        )
        world.succeed(transfer, at: 1)
        let unknown = LEPeriodicAdvertisingSyncTransfer(
            connectionHandle: Self.handle,
            serviceData: 7,
            syncHandle: 1
        )
        #expect(world.status(of: unknown, to: 1) == .unknownAdvertisingIdentifier)
    }

    @Test("A controller transfers only to a peer that has reported that it accepts transfers")
    func peerMustAcceptTransfers() {
        let unaware = Self.world(knowsFeatures: false)
        #expect(unaware.status(of: Self.transfer, to: 0) == .unsupportedRemoteFeature)
        let unable = Self.world(features: LEFeatures.all.subtracting(.periodicAdvertisingSyncTransferRecipient))
        #expect(unable.status(of: Self.transfer, to: 0) == .unsupportedRemoteFeature)
        #expect(
            unable.status(
                of: LESetDefaultPeriodicAdvertisingSyncTransferParameters(mode: .ignore, syncTimeout: 100),
                to: 1
            ) == .unknownHCICommand
        )
    }

    @Test("Invalid commands are refused")
    func invalidCommandsAreRefused() {
        let world = Self.world()
        let commands: [(any Command, HCIErrorCode)] = [
            (
                LEPeriodicAdvertisingSetInfoTransfer(connectionHandle: 0x99, serviceData: 0, advertisingHandle: 3),
                .unknownConnectionIdentifier
            ),
            (
                LEPeriodicAdvertisingSetInfoTransfer(
                    connectionHandle: Self.handle,
                    serviceData: 0,
                    advertisingHandle: 9
                ),
                .unknownAdvertisingIdentifier
            ),
            (
                LEPeriodicAdvertisingSetInfoTransfer(
                    connectionHandle: Self.handle,
                    serviceData: 0,
                    advertisingHandle: 1
                ),
                .commandDisallowed
            ),
            (
                LESetPeriodicAdvertisingSyncTransferParameters(
                    connectionHandle: Self.handle,
                    mode: .ignore,
                    syncTimeout: 9
                ),
                .invalidHCICommandParameters
            ),
            (
                LESetDefaultPeriodicAdvertisingSyncTransferParameters(mode: .ignore, skip: 500, syncTimeout: 100),
                .invalidHCICommandParameters
            ),
            (
                LESetDefaultPeriodicAdvertisingSyncTransferParameters(mode: .duplicateFiltering, syncTimeout: 100),
                .unsupportedFeatureOrParameterValue
            ),
        ]
        for (command, status) in commands { #expect(world.status(of: command, to: 0) == status, "\(command)") }
    }
}

/// Controller 0 has a train that controller 1 wants, by the periodic advertiser list.
@Suite("The periodic advertiser list")
struct PeriodicAdvertiserListTests {
    private static func add(_ sid: UInt8, _ address: DeviceAddress = World.address(0)) -> any Command {
        LEAddDeviceToPeriodicAdvertiserList(advertiserAddress: address, advertisingSID: sid)
    }

    private static func create(sid: UInt8 = 0) -> any Command {
        LEPeriodicAdvertisingCreateSync(
            options: .usePeriodicAdvertiserList,
            advertisingSID: sid,
            advertiserAddress: World.address(9),
            syncTimeout: 100
        )
    }

    @Test("A train on the list is received", arguments: [true, false])
    func trainOnTheListIsReceived(isListed: Bool) {
        let world = PeriodicAdvertisingTests.world(10)
        world.succeed(
            Self.add(1),
            Self.add(isListed ? 5 : 6),
            LESetExtendedScanEnable(enable: true, filterDuplicates: .enabled),
            Self.create(),
            at: 1
        )
        world.run(.seconds(1))
        let established = PeriodicAdvertisingTests.established(world)
        #expect(established.map(\.advertisingSID) == (isListed ? [5] : []))
        #expect(established.map(\.advertiserAddress) == (isListed ? [PeerAddress(World.address(0))] : []))
    }

    @Test func sidIsIgnoredIfTheListIsUsed() {
        let world = PeriodicAdvertisingTests.world(10)
        let withoutList = LEPeriodicAdvertisingCreateSync(
            advertisingSID: 0xFF,
            advertiserAddress: World.address(0),
            syncTimeout: 100
        )
        #expect(world.status(of: withoutList, to: 1) == .invalidHCICommandParameters)
        world.succeed(
            Self.add(5),
            LESetExtendedScanEnable(enable: true, filterDuplicates: .enabled),
            Self.create(sid: 0xFF),
            at: 1
        )
        world.run(.seconds(1))
        #expect(PeriodicAdvertisingTests.established(world).map(\.advertisingSID) == [5])
    }

    @Test("The list has a size, holds each set once, and does not change while a synchronization is created")
    func listIsLimited() throws {
        let world = PeriodicAdvertisingTests.world(10)
        for sid in 0..<PeriodicAdvertiserList.size { world.succeed(Self.add(sid), at: 1) }
        #expect(world.status(of: Self.add(9), to: 1) == .memoryCapacityExceeded)
        #expect(world.status(of: Self.add(2), to: 1) == .invalidHCICommandParameters)
        #expect(world.status(of: Self.add(16), to: 1) == .invalidHCICommandParameters)
        let remove = LERemoveDeviceFromPeriodicAdvertiserList(advertiserAddress: World.address(0), advertisingSID: 2)
        world.succeed(remove, at: 1)
        #expect(world.status(of: remove, to: 1) == .unknownAdvertisingIdentifier)
        let size = world.send(LEReadPeriodicAdvertiserListSize(), to: 1)
        #expect(size.first?.last == PeriodicAdvertiserList.size)
        world.succeed(LEClearPeriodicAdvertiserList(), Self.add(2), Self.create(), at: 1)
        for command in [Self.add(3), remove, LEClearPeriodicAdvertiserList()] {
            #expect(world.status(of: command, to: 1) == .commandDisallowed)
        }
    }
}
