import BLE
import BLEHCI
import BLESMP
import BLEVirtualController
import BluetoothTesting
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// A bonded device that was reset. It keeps its identity address, and makes its private addresses with another key.
@Suite("A bonded device with private addresses that was reset")
struct ResetDeviceTests {
    /// A host with private addresses and without bonds, which advertises.
    private struct Lamp {
        let adapter: Adapter
        let identity: DeviceAddress
        private let advertising: AdvertisingSet

        init(on device: Device) async throws {
            adapter = try await device.openAdapter {
                $0.usesPrivateAddresses = true
                $0.security.justWorks = .always
            }
            identity = try await adapter.information.identityAddress
            advertising = try await adapter.peripheral.startAdvertising(
                AdvertisementConfiguration(interval: .milliseconds(30))
            )
        }

        var resolvingKey: UInt128 {
            get async { await adapter.host.bonds.identity.resolvingKey }
        }
    }

    /// Returns the private address under which a phone receives the only device in range, which it does not recognize.
    private func privateAddress(receivedBy phone: Adapter) async throws -> DeviceAddress {
        var advertisements = phone.central.scan().makeAsyncIterator()
        while true {
            let address = try #require(try await advertisements.next()).address
            if address.kind == .resolvablePrivate { return address }
        }
    }

    @Test(
        "Its new bond replaces the old one if the app asks for a new pairing",
        arguments: [true, false],
        [true, false]
    )
    func newBondReplacesTheOldOneIfTheAppAsks(pairsAgain: Bool, hasResolvingList: Bool) throws {
        try World.run { world in
            let device = world.device("lamp")
            let phoneDevice = world.device("phone") {
                $0.features = hasResolvingList ? .all : .all.subtracting(.llPrivacy)
            }
            let phone = try await phoneDevice.openAdapter()
            let lamp = try await Lamp(on: device)
            let first = try await phone.central.connect(to: privateAddress(receivedBy: phone))
            try await first.pair()
            await first.disconnect()
            let bonds = await phone.host.bondRecords().map(\.bond)
            try #require(bonds.map(\.identity) == [lamp.identity])
            await lamp.adapter.close()

            let reset = try await Lamp(on: device)
            try #require(reset.identity == lamp.identity)
            let key = await reset.resolvingKey
            try #require(bonds.first?.identityResolvingKey != key)
            let second = try await phone.central.connect(to: privateAddress(receivedBy: phone))
            guard pairsAgain else {
                let nobody = "it would replace a bond, and there is no pairing delegate to consent"
                await #expect(throws: BLEError.security(.refused(nobody))) { try await second.pair() }
                _ = try await second.disconnection()
                #expect(await phone.host.bondRecords().map(\.bond) == bonds)
                return
            }
            try await second.pair(again: true)
            #expect(try await second.linkInformation.identity == reset.identity)
            let newBonds = await phone.host.bondRecords().map(\.bond)
            #expect(newBonds.map(\.identity) == [reset.identity])
            #expect(newBonds.map(\.identityResolvingKey) == [key])
            await second.disconnect()

            // It is recognized by its new key, and encrypts the link without a pairing.
            let third = try await phone.central.connect(to: reset.identity)
            try await third.pair()
            #expect(await phone.host.bondRecords().map(\.bond) == newBonds)
            await third.disconnect()
        }
    }

    @Test("It replaces no bond while the device with its identity is connected")
    func noBondOfAConnectedDeviceIsReplaced() throws {
        try World.run { world in
            let phone = try await world.device("phone").openAdapter()
            let device = world.device("lamp")
            let lamp = try await Lamp(on: device)
            let first = try await phone.central.connect(to: privateAddress(receivedBy: phone))
            try await first.pair()
            let bonds = await phone.host.bondRecords().map(\.bond)
            let address = device.address
            let stranger = try await Lamp(on: world.device("stranger") { $0.address = address })
            try #require(stranger.identity == lamp.identity)
            let second = try await phone.central.connect(to: privateAddress(receivedBy: phone))
            await #expect(throws: BLEError.self) { try await second.pair(again: true) }
            #expect(await phone.host.bondRecords().map(\.bond) == bonds)
            #expect(await first.isConnected)
            await first.disconnect()
        }
    }
}
