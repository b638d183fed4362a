import BLE
import BluetoothTesting
import Testing

@testable import BLETool

@Suite("ble pair")
struct PairTests {
    @Test("A peer without a key for advertising data is paired nevertheless")
    func missingKeyDoesNotHideThePairing() throws {
        let command = try Pair.parse(["Lamp", "--advertising-key"])
        try World.run { world in
            let lamp = try await world.device("lamp").openAdapter { $0.security.justWorks = .always }
            let advertising = try await lamp.peripheral.startAdvertising(AdvertisementConfiguration())
            defer { withExtendedLifetime(advertising) {} }
            let ble = try await world.device("ble").openAdapter { $0.security.justWorks = .always }
            let peer = try await ble.central.connect(to: try await lamp.information.identityAddress)
            let outcome = try await command.pair(with: peer, on: ble)
            #expect(outcome.keyProblem is BLEError)
            #expect(outcome.address == peer.address && outcome.strength.isSecureConnections)
            #expect(await ble.bonds().count == 1)
        }
    }
}
