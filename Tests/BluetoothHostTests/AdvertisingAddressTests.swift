import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("A legacy advertisement with an address of its own")
struct AdvertisingAddressTests {
    private let address = DeviceAddress(0xC0FF_EE00_0101, isRandom: true)

    private func fixture() throws -> HostFixture {
        let fixture = HostFixture(profile: .init(usesExtendedCommands: false))
        try fixture.bringUp()
        return fixture
    }

    @Test("The address is set while scanning rests")
    func addressIsSetWhileScanningRests() throws {
        let fixture = try fixture()
        let host = fixture.host
        let configuration = AdvertisementConfiguration(address: address)
        try fixture.run { _ = await host.startScan(ScanOptions()) { _ in } }
        fixture.loop.run(for: .milliseconds(100))
        #expect(fixture.controller.opcodes.contains(LESetScanEnable.opcode))
        fixture.controller.forgetCommands()
        try fixture.run { _ = try await host.startAdvertising(configuration) }
        fixture.loop.run(for: .milliseconds(100))
        var isScanning = true
        var addresses: [DeviceAddress] = []
        for command in fixture.controller.commands {
            if let scan = command.decode(LESetScanEnable.self) { isScanning = scan.leScanEnable }
            guard let random = command.decode(LESetRandomAddress.self) else { continue }
            #expect(!isScanning)
            addresses.append(random.randomAddress)
        }
        #expect(addresses == [address])
        #expect(isScanning)
    }

    @Test("If the controller refuses the address, the start fails")
    func startFailsIfTheControllerRefusesTheAddress() throws {
        let fixture = try fixture()
        let host = fixture.host
        let configuration = AdvertisementConfiguration(address: address)
        fixture.controller.override = { command in
            guard command.opcode == LESetRandomAddress.opcode else { return nil }
            return ScriptedController.complete(LESetRandomAddress.self, .failure(.commandDisallowed))
        }
        #expect(throws: HostError.command(.status(.commandDisallowed, LESetRandomAddress.opcode))) {
            try fixture.run { _ = try await host.startAdvertising(configuration) }
        }
        // Another one with the host's public address needs no random address.
        try fixture.run { _ = try await host.startAdvertising(AdvertisementConfiguration()) }
    }
}
