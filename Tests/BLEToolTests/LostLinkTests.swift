import BLE
import BluetoothTesting
import Testing

@testable import BLETool

@Suite("A command that waits for its input while the link is lost")
struct LostLinkTests {
    @Test("The end of the link ends the wait")
    func lostLinkEndsTheWait() throws {
        try World.run { world in
            let device = world.device("server")
            let server = try await device.openAdapter()
            let advertising = try await server.peripheral.startAdvertising(AdvertisementConfiguration())
            defer { withExtendedLifetime(advertising) {} }
            let client = try await world.device("ble").openAdapter()
            let peer = try await client.central.connect(to: device.address)
            async let wait: Void = peer.whileConnected { try await world.sleep(for: .seconds(86_400)) }
            device.vanish()
            do {
                try await wait
                Issue.record("the wait has ended without an error")
            } catch {
                guard case .disconnected? = error as? BLEError else { throw error }
            }
        }
    }

    @Test("Work that ends earlier returns its result")
    func workThatEndsEarlierReturnsItsResult() throws {
        try World.run { world in
            let server = try await world.device("server").openAdapter()
            let advertising = try await server.peripheral.startAdvertising(AdvertisementConfiguration())
            defer { withExtendedLifetime(advertising) {} }
            let client = try await world.device("ble").openAdapter()
            let peer = try await client.central.connect(to: try await server.information.identityAddress)
            let result = try await peer.whileConnected { 7 }
            #expect(result == 7)
        }
    }
}
