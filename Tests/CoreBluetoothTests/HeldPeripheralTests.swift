import BLEKeyStore
import BluetoothTesting
import BluetoothTypes
import Foundation
import Testing

@testable import CoreBluetooth

@Suite("Retained peers during a flood of advertisers")
struct HeldPeripheralTests {
    private static let address = DeviceAddress(0x4011_2233_4455, isRandom: true)

    /// Gives a directory the advertisements of many devices.
    ///
    /// - Returns: their identifiers.
    @discardableResult
    private static func flood(_ directory: PeerDirectory, from first: UInt64, count: UInt64 = 1000) -> [UUID] {
        (0..<count).map { number in
            directory.heard(DeviceAddress(first + number, isRandom: true), name: nil, services: []).identifier
        }
    }

    @Test func directoryEvictsNoPeerThatIsHeld() {
        let limit = 64
        let directory = PeerDirectory(store: .inMemory(), limit: limit) { UUID() }
        // More than the directory's capacity.
        var held = (0..<200).map { number in
            directory.heard(DeviceAddress(0x4300_0000_0000 + UInt64(number), isRandom: true), name: nil, services: [])
        }
        let identifiers = held.map(\.identifier)
        let other = directory.heard(Self.address, name: "lamp", services: []).identifier
        let first = Self.flood(directory, from: 0x4100_0000_0000)
        #expect(identifiers.allSatisfy { directory.address(of: $0) != nil })
        #expect(directory.address(of: other) == nil)
        #expect(first.count { directory.address(of: $0) != nil } <= limit)
        #expect(directory.use(identifiers[0]))
        withExtendedLifetime(held) {}
        held = []
        let second = Self.flood(directory, from: 0x4200_0000_0000)
        #expect(identifiers.dropFirst().allSatisfy { directory.address(of: $0) == nil })
        #expect((first + second).count { directory.address(of: $0) != nil } <= limit)
    }

    @Test func peerIsHeldFromTheOperationThatIdentifiesIt() {
        let directory = PeerDirectory(store: .inMemory(), limit: 64) { UUID() }
        let other = directory.identifier(of: DeviceAddress(0x4300_0000_0000, isRandom: true))
        let peer = directory.heldPeer(at: Self.address)
        Self.flood(directory, from: 0x4100_0000_0000)
        #expect(directory.address(of: peer.identifier) == Self.address)
        #expect(directory.heldPeer(at: Self.address).identifier == peer.identifier)
        #expect(directory.address(of: other) == nil)
        withExtendedLifetime(peer) {}
    }

    @Test func savedPeersAreBounded() async {
        let path = FileManager.default.temporaryDirectory.path + "/held-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        func open() async -> KeyStore {
            await KeyStore.open(adapter: "A", in: path, writeDelay: .seconds(3600)) { Issue.record("\($0)") }
        }
        let store = await open()
        let directory = PeerDirectory(store: store, limit: 8) { UUID() }
        let bonded = DeviceAddress(0x0011_2233_4455, isRandom: false)
        let first = directory.identifier(of: bonded)
        directory.setBonded([bonded])
        let held = (0..<100).map { number in
            directory.heard(DeviceAddress(0x0200_0000 + number, isRandom: false), name: nil, services: [])
        }
        let identifiers = held.map(\.identifier)
        #expect(identifiers.allSatisfy { directory.use($0) })
        #expect(directory.known(identifiers).count == 100)
        await store.close()
        let again = PeerDirectory(store: await open(), limit: 8) { UUID() }
        #expect(again.known([first] + identifiers).map(\.identifier) == [first] + identifiers.suffix(8))
        withExtendedLifetime(held) {}
    }

    @Test func peripheralIsHeldAsLongAsItsObjectLives() {
        let fixture = CentralFixture()
        let directory = PeerDirectory(store: .inMemory(), limit: 8) { UUID() }
        var peripheral: CBPeripheral? = fixture.manager.peripheral(
            directory.heard(Self.address, name: nil, services: [])
        )
        let identifier = peripheral?.identifier ?? UUID()
        Self.flood(directory, from: 0x4100_0000_0000)
        #expect(directory.address(of: identifier) == Self.address)
        withExtendedLifetime(peripheral) {}
        peripheral = nil
        Self.flood(directory, from: 0x4200_0000_0000)
        #expect(directory.address(of: identifier) == nil)
    }

    @Test func discoveredPeripheralCanBeConnectedAfterAFlood() throws {
        try World.run(seed: 26) { world in
            let pair = try await LampAndPhone(world)
            let discovery = await pair.phone.find([Lamp.service])
            Self.flood(pair.phoneDevice.open.peers, from: 0x4100_0000_0000, count: 5000)
            await pair.phone.connect(discovery.identifier)
            withExtendedLifetime(discovery) {}
        }
    }

    @Test func connectedCentralKeepsItsIdentifierInAFlood() throws {
        try World.run(seed: 27) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let central = await pair.lamp.connected()
            Self.flood(pair.lampDevice.open.peers, from: 0x4100_0000_0000, count: 5000)
            let handle = pair.handle(0)
            async let read = pair.phone.read(handle, of: peripheral)
            let (reader, request) = await pair.lamp.access()
            #expect(reader.identifier == central.identifier)
            pair.lamp.backend.answer(request.identifier, on: reader.link, .success([1]))
            #expect(await read == .success([1]))
        }
    }
}
