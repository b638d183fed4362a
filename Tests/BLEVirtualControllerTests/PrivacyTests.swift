import BLECryptography
import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

@testable import BLEVirtualController

@Suite("Private addresses")
struct PrivacyTests {
    static let advertiserIRK: UInt128 = 0xec02_34a3_57c8_ad05_3410_10a6_0a39_7d9b
    static let scannerIRK: UInt128 = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef

    private static func add(
        _ index: Int,
        peerIRK: UInt128 = advertiserIRK,
        localIRK: UInt128 = 0
    ) -> LEAddDeviceToResolvingList {
        LEAddDeviceToResolvingList(peerIdentityAddress: World.address(index), peerIRK: peerIRK, localIRK: localIRK)
    }

    private static let resolve = LESetAddressResolutionEnable(addressResolutionEnable: true)

    static let misuses: [Misuse] = [
        Misuse("the same identity twice", [add(1), add(1, peerIRK: 5)], .invalidHCICommandParameters),
        Misuse("the same key twice", [add(1), add(2)], .invalidHCICommandParameters),
        Misuse("no key twice", [add(1, peerIRK: 0), add(2, peerIRK: 0)], .success),
        Misuse("more than the list holds", (0..<17).map { add($0, peerIRK: UInt128($0) + 1) }, .memoryCapacityExceeded),
        Misuse(
            "removing who is not there",
            [LERemoveDeviceFromResolvingList(peerIdentityAddress: World.address(1))],
            .unknownConnectionIdentifier
        ),
        Misuse(
            "the peer's address of who is not there",
            [LEReadPeerResolvableAddress(peerIdentityAddress: World.address(1))],
            .unknownConnectionIdentifier
        ),
        Misuse(
            "the local address for who is not there",
            [LEReadLocalResolvableAddress(peerIdentityAddress: World.address(1))],
            .unknownConnectionIdentifier
        ),
        Misuse(
            "mode of who is not there",
            [LESetPrivacyMode(peerIdentityAddress: World.address(1), privacyMode: .device)],
            .unknownConnectionIdentifier
        ),
        Misuse("no timeout", [LESetResolvablePrivateAddressTimeout(rpaTimeout: 0)], .invalidHCICommandParameters),
        Misuse(
            "timeout too long",
            [LESetResolvablePrivateAddressTimeout(rpaTimeout: 0x0E11)],
            .invalidHCICommandParameters
        ),
        Misuse("resolving while scanning", [LESetScanEnable(leScanEnable: true), resolve], .commandDisallowed),
        Misuse(
            "adding while scanning and resolving",
            [resolve, LESetScanEnable(leScanEnable: true), add(1)],
            .commandDisallowed
        ),
        Misuse(
            "clearing while advertising and resolving",
            [resolve, LESetAdvertisingEnable(advertisingEnable: true), LEClearResolvingList()],
            .commandDisallowed
        ),
        Misuse(
            "removing while initiating and resolving",
            [
                add(1), resolve, LECreateConnection(),
                LERemoveDeviceFromResolvingList(peerIdentityAddress: World.address(1)),
            ],
            .commandDisallowed
        ),
        Misuse("adding while scanning without resolving", [LESetScanEnable(leScanEnable: true), add(1)], .success),
    ]

    @Test(arguments: misuses)
    func privacyCommandInAnInvalidStateIsRefused(_ misuse: Misuse) { misuse.check(in: World(count: 1)) }

    /// Controller 0 advertises with private addresses to controller 1.
    private static func advertise(in world: World, _ type: AdvertisingType = .connectableScannableUndirected) {
        world.succeed(
            LEAddDeviceToResolvingList(
                peerIdentityAddress: World.address(1),
                peerIRK: scannerIRK,
                localIRK: advertiserIRK
            ),
            resolve,
            LESetAdvertisingParameters(
                advertisingIntervalMin: 160,
                advertisingIntervalMax: 160,
                advertisingType: type,
                ownAddressType: .resolvableOrPublic,
                peerAddress: World.address(1)
            ),
            LESetAdvertisingEnable(advertisingEnable: true),
            at: 0
        )
    }

    private static func addresses(_ world: World, at index: Int) -> [PeerAddress] {
        world.events(LEAdvertisingReport.subeventCode, at: index).map { report in
            PeerAddress(
                type: AddressType(rawValue: report[2]),
                value: report[3..<9].reversed().reduce(0) { $0 << 8 | UInt64($1) }
            )
        }
    }

    @Test("A host with the key gets the identity, others the private address, which changes")
    func hostWithTheKeyGetsTheIdentityAndOthersThePrivateAddress() throws {
        let world = World(count: 3)
        world.succeed(
            Self.add(0, localIRK: Self.scannerIRK),
            Self.resolve,
            LESetScanEnable(leScanEnable: true, filterDuplicates: true),
            at: 1
        )
        world.succeed(LESetScanEnable(leScanEnable: true, filterDuplicates: true), at: 2)
        world.succeed(LESetResolvablePrivateAddressTimeout(rpaTimeout: 10), at: 0)
        Self.advertise(in: world)
        world.run(.seconds(25))
        #expect(Self.addresses(world, at: 1) == [PeerAddress(type: .publicIdentity, value: World.address(0).value)])
        let seen = Self.addresses(world, at: 2)
        #expect(seen.count == 3 && Set(seen).count == 3)
        #expect(seen.compactMap(\.deviceAddress).allSatisfy { $0.isMade(with: Self.advertiserIRK) })
        let local = try #require(
            world.send(LEReadLocalResolvableAddress(peerIdentityAddress: World.address(1)), to: 0).first
        )
        let peer = try #require(
            world.send(LEReadPeerResolvableAddress(peerIdentityAddress: World.address(0)), to: 1).first
        )
        #expect(local.dropFirst(7) == peer.dropFirst(7) && local.count == 13)
        #expect(seen.last?.value == local.dropFirst(7).reversed().reduce(0) { $0 << 8 | UInt64($1) })
    }

    @Test("A connection of two private devices is reported with identities and used addresses")
    func connectionOfPrivateDevicesIsReportedWithIdentities() throws {
        let world = World(count: 2)
        world.succeed(
            Self.add(0, localIRK: Self.scannerIRK),
            Self.resolve,
            LECreateConnection(
                peerAddress: PeerAddress(type: .publicIdentity, value: World.address(0).value),
                ownAddressType: .resolvableOrPublic
            ),
            at: 1
        )
        Self.advertise(in: world)
        world.run(.seconds(1))
        let peripheral = try #require(world.connections(at: 0).first)
        let central = try #require(world.connections(at: 1).first)
        #expect(central.peerAddress == PeerAddress(type: .publicIdentity, value: World.address(0).value))
        #expect(peripheral.peerAddress == PeerAddress(type: .publicIdentity, value: World.address(1).value))
        #expect(central.localResolvablePrivateAddress.isMade(with: Self.scannerIRK))
        #expect(central.peerResolvablePrivateAddress.isMade(with: Self.advertiserIRK))
        #expect(peripheral.localResolvablePrivateAddress == central.peerResolvablePrivateAddress)
        #expect(peripheral.peerResolvablePrivateAddress == central.localResolvablePrivateAddress)
    }

    @Test("The accept list contains private devices by their identities", arguments: [true, false])
    func acceptListContainsPrivateDevicesByTheirIdentities(_ isListed: Bool) {
        let world = World(count: 2)
        world.succeed(
            Self.add(0, localIRK: Self.scannerIRK),
            Self.resolve,
            LEAddDeviceToFilterAcceptList(address: PeerAddress(World.address(isListed ? 0 : 5))),
            LECreateConnection(initiatorFilterPolicy: .filterAcceptList, ownAddressType: .resolvableOrPublic),
            at: 1
        )
        Self.advertise(in: world)
        world.run(.seconds(1))
        #expect(world.connections(at: 1).count == (isListed ? 1 : 0))
    }

    @Test(
        "A device with a key that uses its identity address is ignored in network privacy mode only",
        arguments: [
            PrivacyMode.network, .device,
        ]
    )
    func identityAddressIsIgnoredInNetworkPrivacyModeOnly(_ mode: PrivacyMode) {
        let world = World(count: 2)
        world.succeed(
            Self.add(0),
            LESetPrivacyMode(peerIdentityAddress: World.address(0), privacyMode: mode),
            Self.resolve,
            LESetScanEnable(leScanEnable: true, filterDuplicates: true),
            at: 1
        )
        ScanningTests.advertise(in: world)
        world.run(.seconds(1))
        #expect(Self.addresses(world, at: 1) == (mode == .device ? [PeerAddress(World.address(0))] : []))
    }

    @Test("Advertising directed to a private address is received by the key's owner, or on request")
    func directedPrivateAdvertisingIsReceivedByTheOwnerOfTheKey() {
        let world = World(count: 4)
        world.succeed(
            Self.add(0, localIRK: Self.scannerIRK),
            Self.resolve,
            LESetScanEnable(leScanEnable: true, filterDuplicates: true),
            at: 1
        )
        world.succeed(LESetScanEnable(leScanEnable: true, filterDuplicates: true), at: 2)
        world.succeed(
            LESetScanParameters(scanningFilterPolicy: .extendedUnfiltered),
            LESetScanEnable(leScanEnable: true, filterDuplicates: true),
            at: 3
        )
        Self.advertise(in: world, .connectableLowDutyCycleDirected)
        world.run(.seconds(1))
        #expect(Self.addresses(world, at: 1) == [PeerAddress(type: .publicIdentity, value: World.address(0).value)])
        #expect(world.packets[2].isEmpty)
        let reports = world.events(LEDirectedAdvertisingReport.subeventCode, at: 3).compactMap { parameters in
            let event = try? LEDirectedAdvertisingReport(decoding: parameters.rawSpan)
            var reports = event?.reports
            return reports?.next()
        }
        #expect(reports.map(\.address.type) == [.random] && reports.map(\.directAddress.type) == [.unresolved])
        let target = reports.first?.directAddress.deviceAddress
        #expect(target?.isMade(with: Self.scannerIRK) == true)
    }

    @Test("Directed private advertising is connected by its target, with private addresses")
    func directedPrivateAdvertisingIsConnectedByItsTarget() {
        let world = World(count: 2)
        world.succeed(
            Self.add(0, localIRK: Self.scannerIRK),
            Self.resolve,
            LECreateConnection(
                peerAddress: PeerAddress(World.address(0)),
                ownAddressType: .resolvableOrPublic
            ),
            at: 1
        )
        Self.advertise(in: world, .connectableHighDutyCycleDirected)
        world.run(.seconds(1))
        #expect(world.connections(at: 0).map(\.status) == [.success])
        #expect(world.connections(at: 1).map(\.peerAddress.type) == [.publicIdentity])
    }

    @Test("Without address resolution no address is resolved")
    func noAddressIsResolvedWithoutAddressResolution() {
        let world = World(count: 2)
        world.succeed(Self.add(0), LESetScanEnable(leScanEnable: true, filterDuplicates: true), at: 1)
        Self.advertise(in: world)
        world.run(.seconds(1))
        #expect(Self.addresses(world, at: 1).map(\.type) == [.random])
    }
}

extension DeviceAddress {
    fileprivate func isMade(with irk: UInt128) -> Bool {
        Toolbox(SwiftCryptography()).resolves(self, irk: irk)
    }
}
