import BLE
import BLECryptography
import BLEHCI
import BLESMP
import BLEVirtualController
import BluetoothTesting
import Synchronization
import Testing

@testable import BluetoothHost

/// The abilities of a controller concerning private addresses.
enum ControllerKind: CaseIterable, CustomTestStringConvertible {
    case extendedWithList
    case legacyWithList
    case extendedWithoutList
    case legacyWithoutList

    var features: LEFeatures {
        switch self {
        case .extendedWithList: .all
        case .legacyWithList: .bluetooth42
        case .extendedWithoutList: .all.subtracting(.llPrivacy)
        case .legacyWithoutList: .bluetooth42.subtracting(.llPrivacy)
        }
    }

    var hasList: Bool { features.contains(.llPrivacy) }

    var testDescription: String {
        switch self {
        case .extendedWithList: "extended advertising and a resolving list"
        case .legacyWithList: "legacy advertising and a resolving list"
        case .extendedWithoutList: "extended advertising only"
        case .legacyWithoutList: "legacy advertising only"
        }
    }
}

extension Adapter {
    /// Makes this adapter recognize another by its private addresses, as after pairing.
    func bond(with other: Adapter) async throws {
        var bond = Bond(identity: try await other.information.identityAddress)
        bond.identityResolvingKey = await other.host.bonds.identity.resolvingKey
        try await host.importBond(BondRecord(bond: bond))
    }
}

/// A device and its adapter, with or without private addresses.
struct Party: Sendable {
    let device: Device
    let adapter: Adapter
    let identity: DeviceAddress
    let key: UInt128

    init(
        _ name: String,
        in world: World,
        _ kind: ControllerKind = .extendedWithList,
        isPrivate: Bool = true,
        timeout: Duration = .seconds(60),
        listSize: UInt8 = 16
    ) async throws {
        device = world.device(name) {
            $0.features = kind.features
            $0.resolvingListSize = listSize
        }
        adapter = try await device.openAdapter {
            $0.usesPrivateAddresses = isPrivate
            $0.privateAddressTimeout = timeout
        }
        identity = try await adapter.information.identityAddress
        key = await adapter.host.bonds.identity.resolvingKey
    }

    /// Adds a peripheral and a central with private addresses to a world.
    static func pair(
        in world: World,
        _ kind: ControllerKind,
        _ centralKind: ControllerKind,
        areBonded: Bool = false
    ) async throws -> (peripheral: Party, central: Party) {
        let peripheral = try await Party("peripheral", in: world, kind)
        let central = try await Party("central", in: world, centralKind)
        if areBonded {
            try await central.bond(with: peripheral)
            try await peripheral.bond(with: central)
        }
        return (peripheral, central)
    }

    /// Makes this party recognize another, as after pairing.
    func bond(with other: Party) async throws {
        try await adapter.bond(with: other.adapter)
    }

    func advertise(to peer: DeviceAddress? = nil) async throws -> AdvertisementIdentifier {
        let data = AdvertisingData([.completeLocalName("private")])
        return try await adapter.host.startAdvertising(
            AdvertisementConfiguration(advertisingData: peer == nil ? data : AdvertisingData(), peer: peer)
        )
    }

    /// Waits for the first link.
    func link(_ world: World) async throws -> LinkInformation {
        for _ in 0..<200 {
            if let link = await adapter.host.linkIdentifiers().first {
                return try await adapter.host.information(on: link)
            }
            try await world.sleep(for: .milliseconds(50))
        }
        throw BLEError.timedOut("waiting for a link")
    }

    func resolves(_ address: DeviceAddress) -> Bool {
        Toolbox(SwiftCryptography()).resolves(address, irk: key)
    }
}

/// Collects the reports of scans.
final class Sightings: Sendable {
    private let reports = Mutex<[Advertisement]>([])

    var all: [Advertisement] { reports.withLock { $0 } }

    /// Scans with an adapter until the world ends.
    init(by party: Party) async {
        _ = await party.adapter.host.startScan(ScanOptions(isActive: false, reportsDuplicates: true)) { [self] event in
            if case .advertisement(let advertisement) = event { reports.withLock { $0.append(advertisement) } }
        }
    }

    var addresses: [DeviceAddress] { all.map(\.address).withoutRepeats }
    func forget() { reports.withLock { $0 = [] } }
}

extension [DeviceAddress] {
    /// Returns the addresses without any that equals its predecessor.
    fileprivate var withoutRepeats: [DeviceAddress] {
        var result: [DeviceAddress] = []
        for address in self where address != result.last { result.append(address) }
        return result
    }
}

/// The errors with which controllers answered, from captures.
struct Refusals {
    /// The opcodes of refused commands.
    let opcodes: [HCIOpcode]

    /// - Parameter capture: btsnoop with H4 packets.
    init(in capture: [UInt8]) {
        var opcodes: [HCIOpcode] = []
        var rest = capture.dropFirst(16)
        while rest.count >= 24 {
            let length = rest.dropFirst(4).prefix(4).reduce(0) { $0 << 8 | Int($1) }
            let packet = Array(rest.dropFirst(24).prefix(length))
            rest = rest.dropFirst(24 + length)
            guard packet.count >= 7, packet[0] == 0x04 else { continue }
            switch packet[1] {
            case 0x0E where packet[6] != 0:
                opcodes.append(HCIOpcode(rawValue: UInt16(packet[4]) | UInt16(packet[5]) << 8))
            case 0x0F where packet[3] != 0:
                opcodes.append(HCIOpcode(rawValue: UInt16(packet[5]) | UInt16(packet[6]) << 8))
            default: break
            }
        }
        self.opcodes = opcodes
    }
}

@Suite("Private addresses")
struct PrivacyTests {
    @Test(
        "An advertiser has a new address after each period, which its key resolves",
        arguments: ControllerKind.allCases
    )
    func advertiserHasANewResolvableAddressAfterEachPeriod(kind: ControllerKind) throws {
        try LeakCheck.run(seed: 1) { world in
            let advertiser = try await Party("advertiser", in: world, kind)
            let observer = try await Party("observer", in: world, isPrivate: false)
            let sightings = await Sightings(by: observer)
            _ = try await advertiser.advertise()
            try await world.sleep(for: .seconds(290))
            let addresses = sightings.addresses
            #expect((5...6).contains(addresses.count))
            #expect(Set(addresses).count == addresses.count)
            #expect(addresses.allSatisfy { advertiser.resolves($0) })
        }
    }

    @Test("Without private addresses the identity address is used", arguments: ControllerKind.allCases)
    func identityAddressIsUsedWithoutPrivacy(kind: ControllerKind) throws {
        try LeakCheck.run(seed: 1) { world in
            let advertiser = try await Party("advertiser", in: world, kind, isPrivate: false)
            let observer = try await Party("observer", in: world, isPrivate: false)
            let sightings = await Sightings(by: observer)
            _ = try await advertiser.advertise()
            try await world.sleep(for: .seconds(200))
            #expect(sightings.addresses == [advertiser.identity])
        }
    }

    @Test(
        "Addresses and bonds change during all activities, and the controller refuses no command",
        arguments: ControllerKind.allCases
    )
    func controllerRefusesNoCommandWhileAddressesAndBondsChange(kind: ControllerKind) throws {
        let world = World(seed: 13, recordsCaptures: true)
        defer { world.close() }
        let capture = try world.run {
            let party = try await Party("party", in: world, kind, timeout: .seconds(5))
            let observer = try await Party("observer", in: world, isPrivate: false)
            let absent = DeviceAddress(0xC0FF_EE00_0001, isRandom: true)
            let sightings = await Sightings(by: observer)
            _ = await Sightings(by: party)
            _ = try await party.advertise()
            async let connecting = party.adapter.central.connect(to: absent, timeout: .seconds(60))
            for index in 0..<8 {
                try await world.sleep(for: .seconds(6))
                let other = try await Party("other\(index)", in: world)
                try await party.bond(with: other)
                if index > 3 { await party.adapter.host.removeBond(other.identity) }
            }
            let link = try? await connecting
            #expect(link == nil)
            try await world.sleep(for: .seconds(20))
            let addresses = sightings.all.filter { $0.localName == "private" }.map(\.address)
            #expect(Set(addresses).count > 12)
            #expect(addresses.allSatisfy { party.resolves($0) })
            return party.device.capture
        }
        #expect(!capture.isEmpty)
        #expect(Refusals(in: capture).opcodes.isEmpty)
    }

    @Test(
        "A scan reports a bonded advertiser by its identity address, whoever resolves it",
        arguments: ControllerKind.allCases,
        ControllerKind.allCases
    )
    func scanReportsABondedAdvertiserByItsIdentity(kind: ControllerKind, scannerKind: ControllerKind) throws {
        try LeakCheck.run(seed: 2) { world in
            let advertiser = try await Party("advertiser", in: world, kind)
            let scanner = try await Party("scanner", in: world, scannerKind)
            try await scanner.bond(with: advertiser)
            let sightings = await Sightings(by: scanner)
            _ = try await advertiser.advertise()
            try await world.sleep(for: .seconds(200))
            #expect(sightings.addresses == [advertiser.identity])
            let received = Set(sightings.all.compactMap(\.privateAddress))
            #expect(received.isEmpty == scannerKind.hasList)
            #expect(received.allSatisfy { advertiser.resolves($0) })
        }
    }

    @Test("Bonds beyond the controller's list are resolved by the host")
    func bondsBeyondTheListOfTheControllerAreResolvedByTheHost() throws {
        try LeakCheck.run(seed: 3) { world in
            let scanner = try await Party("scanner", in: world, listSize: 2)
            var advertisers: [Party] = []
            for index in 0..<5 {
                let advertiser = try await Party("advertiser\(index)", in: world)
                try await scanner.bond(with: advertiser)
                _ = try await advertiser.advertise()
                advertisers.append(advertiser)
            }
            let sightings = await Sightings(by: scanner)
            try await world.sleep(for: .seconds(100))
            #expect(Set(sightings.all.map(\.address)) == Set(advertisers.map(\.identity)))
            #expect(Set(sightings.all.filter { $0.privateAddress == nil }.map(\.address)).count == 1)
            for advertiser in advertisers {
                let peer = try await scanner.adapter.central.connect(to: advertiser.identity)
                #expect(peer.address == advertiser.identity)
                await peer.disconnect()
            }
        }
    }

    @Test("A scan reports the identity from the start of the bond to its end")
    func scanReportsTheIdentityFromStartToEndOfTheBond() throws {
        try LeakCheck.run(seed: 4) { world in
            let advertiser = try await Party("advertiser", in: world, timeout: .seconds(3600))
            let scanner = try await Party("scanner", in: world)
            let sightings = await Sightings(by: scanner)
            _ = try await advertiser.advertise()
            try await world.sleep(for: .seconds(5))
            #expect(sightings.addresses.count == 1 && sightings.addresses.allSatisfy { advertiser.resolves($0) })
            try await scanner.bond(with: advertiser)
            try await world.sleep(for: .seconds(1))
            sightings.forget()
            try await world.sleep(for: .seconds(5))
            #expect(sightings.addresses == [advertiser.identity])
            await scanner.adapter.host.removeBond(advertiser.identity)
            try await world.sleep(for: .seconds(1))
            sightings.forget()
            try await world.sleep(for: .seconds(5))
            #expect(sightings.addresses.count == 1 && sightings.addresses.allSatisfy { advertiser.resolves($0) })
        }
    }

    @Test(
        "A bonded peripheral is connected by its identity, and both ends know the addresses used",
        arguments: ControllerKind.allCases,
        ControllerKind.allCases
    )
    func bondedPeripheralIsConnectedByItsIdentity(kind: ControllerKind, centralKind: ControllerKind) throws {
        try LeakCheck.run(seed: 5) { world in
            let (peripheral, central) = try await Party.pair(in: world, kind, centralKind, areBonded: true)
            _ = try await peripheral.advertise()
            for _ in 0..<2 {
                try await world.sleep(for: .seconds(70))
                let peer = try await central.adapter.central.connect(to: peripheral.identity)
                #expect(peer.address == peripheral.identity)
                let here = try await central.link(world)
                let there = try await peripheral.link(world)
                #expect(there.peer == central.identity)
                #expect(central.resolves(here.ownAddress) && peripheral.resolves(here.peerAddress))
                #expect(there.ownAddress == here.peerAddress && there.peerAddress == here.ownAddress)
                await peer.disconnect()
            }
        }
    }

    @Test(
        "Strangers identify each other by their current private addresses",
        arguments: ControllerKind.allCases,
        ControllerKind.allCases
    )
    func strangersIdentifyEachOtherByTheirPrivateAddresses(kind: ControllerKind, centralKind: ControllerKind) throws {
        try LeakCheck.run(seed: 6) { world in
            let (peripheral, central) = try await Party.pair(in: world, kind, centralKind)
            _ = try await peripheral.advertise()
            let sightings = await Sightings(by: central)
            try await world.sleep(for: .seconds(70))
            let address = try #require(sightings.addresses.last)
            let peer = try await central.adapter.central.connect(to: address)
            #expect(peer.address == address)
            let here = try await central.link(world)
            let there = try await peripheral.link(world)
            #expect(here.peerAddress == address && there.ownAddress == address)
            #expect(central.resolves(here.ownAddress) && there.peerAddress == here.ownAddress)
            #expect(there.peer == here.ownAddress)
            await peer.disconnect()
        }
    }

    @Test(
        "A peripheral that uses its identity address although it has a key is connected",
        arguments: ControllerKind.allCases
    )
    func peripheralWithAKeyThatUsesItsIdentityAddressIsConnected(centralKind: ControllerKind) throws {
        try LeakCheck.run(seed: 7) { world in
            let peripheral = try await Party("peripheral", in: world, isPrivate: false)
            let central = try await Party("central", in: world, centralKind)
            try await central.bond(with: peripheral)
            _ = try await peripheral.advertise()
            let peer = try await central.adapter.central.connect(to: peripheral.identity)
            #expect(peer.address == peripheral.identity)
            await peer.disconnect()
        }
    }

    @Test(
        "An attempt that began before the peer appeared continues over changes of its address",
        arguments: ControllerKind.allCases
    )
    func attemptContinuesOverAddressChanges(centralKind: ControllerKind) throws {
        try LeakCheck.run(seed: 8) { world in
            let peripheral = try await Party("peripheral", in: world, timeout: .seconds(10))
            let central = try await Party("central", in: world, centralKind, timeout: .seconds(7))
            try await central.bond(with: peripheral)
            async let connecting = central.adapter.central.connect(to: peripheral.identity, timeout: nil)
            try await world.sleep(for: .seconds(35))
            _ = try await peripheral.advertise()
            let peer = try await connecting
            #expect(peer.address == peripheral.identity)
            await peer.disconnect()
        }
    }

    @Test("Central Address Resolution shows if the controller resolves", arguments: ControllerKind.allCases)
    func centralAddressResolutionShowsIfTheControllerResolves(kind: ControllerKind) throws {
        try LeakCheck.run(seed: 14) { world in
            let peripheral = try await Party("peripheral", in: world, kind, isPrivate: false)
            let central = try await Party("central", in: world)
            _ = try await peripheral.advertise()
            let peer = try await central.adapter.central.connect(to: peripheral.identity)
            let characteristics = try await peer.discoverAll().flatMap(\.characteristics)
            let characteristic = try #require(characteristics.first { $0.uuid == .centralAddressResolution })
            #expect(try await peer.read(characteristic.valueHandle) == [kind.hasList ? 1 : 0])
            await peer.disconnect()
        }
    }

    @Test("Of several bonded peers the present one is connected", arguments: ControllerKind.allCases)
    func presentOneOfSeveralBondedPeersIsConnected(centralKind: ControllerKind) throws {
        try LeakCheck.run(seed: 9) { world in
            let central = try await Party("central", in: world, centralKind)
            var peers: [Party] = []
            for index in 0..<3 {
                let peer = try await Party("peer\(index)", in: world)
                try await central.bond(with: peer)
                peers.append(peer)
            }
            _ = try await peers[1].advertise()
            let peer = try await central.adapter.central.connect(toAnyOf: peers.map(\.identity))
            #expect(peer.address == peers[1].identity)
            await peer.disconnect()
        }
    }

    @Test(
        "Directed advertising reaches the bonded peer, and no other",
        arguments: [ControllerKind.extendedWithList, .legacyWithList],
        [ControllerKind.extendedWithList, .legacyWithList]
    )
    func directedAdvertisingReachesTheBondedPeerOnly(kind: ControllerKind, centralKind: ControllerKind) throws {
        try LeakCheck.run(seed: 10) { world in
            let (peripheral, central) = try await Party.pair(in: world, kind, centralKind)
            let other = try await Party("other", in: world)
            for party in [central, other] {
                try await party.bond(with: peripheral)
                try await peripheral.bond(with: party)
            }
            _ = try await peripheral.advertise(to: central.identity)
            await #expect(throws: BLEError.self) {
                try await other.adapter.central.connect(to: peripheral.identity, timeout: .seconds(10))
            }
            let peer = try await central.adapter.central.connect(to: peripheral.identity)
            #expect(peer.address == peripheral.identity)
            #expect(try await peripheral.link(world).peer == central.identity)
            await peer.disconnect()
        }
    }

    @Test(
        "Without resolving lists, advertising is directed to the peer's last address",
        arguments: [ControllerKind.extendedWithoutList, .legacyWithoutList],
        [ControllerKind.extendedWithoutList, .legacyWithoutList]
    )
    func advertisingIsDirectedToTheLastAddressWithoutAList(kind: ControllerKind, centralKind: ControllerKind) throws {
        try LeakCheck.run(seed: 12) { world in
            let peripheral = try await Party("peripheral", in: world, kind)
            let central = try await Party("central", in: world, centralKind, timeout: .seconds(3600))
            try await central.bond(with: peripheral)
            try await peripheral.bond(with: central)
            let advertisement = try await peripheral.advertise()
            let first = try await central.adapter.central.connect(to: peripheral.identity)
            _ = try await peripheral.link(world)
            await first.disconnect()
            await peripheral.adapter.host.stopAdvertising(advertisement)
            _ = try await peripheral.advertise(to: central.identity)
            let second = try await central.adapter.central.connect(to: peripheral.identity)
            #expect(second.address == peripheral.identity)
            await second.disconnect()
        }
    }

    @Test(
        "Strangers pair under private addresses and find each other by identity after changes",
        arguments: ControllerKind.allCases,
        ControllerKind.allCases
    )
    func strangersPairAndFindEachOtherByIdentityAfterChanges(kind: ControllerKind, centralKind: ControllerKind) throws {
        try LeakCheck.run(seed: 15) { world in
            let (peripheral, central) = try await Party.pair(in: world, kind, centralKind)
            var policy = SecurityPolicy()
            policy.justWorks = .always
            await peripheral.adapter.host.setSecurityPolicy(policy)
            _ = try await peripheral.advertise()
            let sightings = await Sightings(by: central)
            try await world.sleep(for: .seconds(5))
            let stranger = try #require(sightings.addresses.last)
            let first = try await central.adapter.central.connect(to: stranger)
            let link = try await central.link(world)
            #expect(link.peerAddress == stranger)
            let strength = try await central.adapter.host.secure(link.identifier)
            try await world.sleep(for: .seconds(5))
            await first.disconnect()
            try await world.sleep(for: .seconds(120))

            let second = try await central.adapter.central.connect(to: peripheral.identity)
            let here = try await central.link(world)
            let there = try await peripheral.link(world)
            #expect(here.peerAddress != stranger && second.address == peripheral.identity)
            #expect(there.peer == central.identity)
            #expect(there.ownAddress == here.peerAddress && there.peerAddress == here.ownAddress)
            // With the key of the bond: the policy does not let a bonded peer pair again without a request.
            #expect(try await central.adapter.host.secure(here.identifier) == strength)
            #expect(await central.adapter.host.bondRecords().map(\.bond.identity) == [peripheral.identity])
            #expect(await peripheral.adapter.host.bondRecords().map(\.bond.identity) == [central.identity])
            await second.disconnect()
        }
    }

    @Test(
        "After a reset of the controllers everything works as before",
        arguments: ControllerKind.allCases,
        ControllerKind.allCases
    )
    func everythingWorksAsBeforeAfterAResetOfTheControllers(kind: ControllerKind, centralKind: ControllerKind) throws {
        try LeakCheck.run(seed: 11) { world in
            let (peripheral, central) = try await Party.pair(in: world, kind, centralKind, areBonded: true)
            let sightings = await Sightings(by: central)
            _ = try await peripheral.advertise()
            try await world.sleep(for: .seconds(5))
            peripheral.device.failWithHardwareError()
            central.device.failWithHardwareError()
            try await world.sleep(for: .seconds(5))
            sightings.forget()
            try await world.sleep(for: .seconds(130))
            #expect(sightings.addresses == [peripheral.identity])
            let peer = try await central.adapter.central.connect(to: peripheral.identity)
            let here = try await central.link(world)
            let there = try await peripheral.link(world)
            #expect(there.peer == central.identity)
            #expect(central.resolves(here.ownAddress) && peripheral.resolves(here.peerAddress))
            #expect(there.ownAddress == here.peerAddress && there.peerAddress == here.ownAddress)
            await peer.disconnect()
        }
    }
}
