import BLE
import BluetoothTesting
import Testing

@Suite("The identity address of a link's peer")
struct LinkIdentityTests {
    @Test("It is known once a peer with a private address has paired")
    func identityIsKnownAfterPairing() throws {
        try World.run { world in
            let lamp = try await world.device("lamp").openAdapter {
                $0.usesPrivateAddresses = true
                $0.security.justWorks = .always
            }
            let phone = try await world.device("phone").openAdapter()
            let advertising = try await lamp.peripheral.startAdvertising(AdvertisementConfiguration())
            var advertisements = phone.central.scan().makeAsyncIterator()
            let address = try #require(try await advertisements.next()).address
            try #require(address.kind == .resolvablePrivate)
            let peer = try await phone.central.connect(to: address)
            #expect(try await peer.linkInformation.identity == address)
            try await peer.pair()
            let link = try await peer.linkInformation
            #expect(try await link.identity == lamp.information.identityAddress)
            #expect(link.peer == address)
            await peer.disconnect()
            await advertising.stop()
        }
    }

    @Test("It is known from the beginning if the devices are bonded")
    func identityIsKnownFromTheBeginning() throws {
        try World.run { world in
            let lamp = try await world.device("lamp").openAdapter {
                $0.usesPrivateAddresses = true
                $0.security.justWorks = .always
            }
            let phone = try await world.device("phone").openAdapter()
            let advertising = try await lamp.peripheral.startAdvertising(AdvertisementConfiguration())
            let identity = try await lamp.information.identityAddress
            var advertisements = phone.central.scan().makeAsyncIterator()
            let address = try #require(try await advertisements.next()).address
            let first = try await phone.central.connect(to: address)
            try await first.pair()
            await first.disconnect()
            let second = try await phone.central.connect(to: identity)
            let link = try await second.linkInformation
            #expect(link.identity == identity && link.peer == identity)
            await second.disconnect()
            await advertising.stop()
        }
    }
}
