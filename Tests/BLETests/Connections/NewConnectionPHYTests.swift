import BLE
import BLEHCI
import BluetoothTesting
import Testing

@Suite("The PHYs of a new connection")
struct NewConnectionPHYTests {
    @Test(
        "Both hosts know the PHYs of a connection that is made on another PHY than LE 1M",
        arguments: [AdvertisingPHYs.coded(), AdvertisingPHYs(secondary: .le2M)]
    )
    func bothHostsKnowThePHYs(phys: AdvertisingPHYs) throws {
        try World.run { world in
            let central = try await world.device("central").openAdapter()
            let peripheral = try await world.device("peripheral", at: Position(x: 3, y: 0)).openAdapter()
            let address = try await peripheral.information.identityAddress
            let events = await peripheral.peripheral.events()
            let advertising = try await peripheral.peripheral.startAdvertising(AdvertisementConfiguration(phys: phys))
            defer { withExtendedLifetime(advertising) {} }
            for try await advertisement in central.central.scan(ScanOptions(phys: [.le1M, .leCoded])) {
                if advertisement.address == address { break }
            }
            let link = try await central.central.connect(to: address)
            for await event in events {
                guard case .connected(let client, _) = event else { continue }
                for connection in [link.connection, peripheral.peripheral.connection(to: client)] {
                    // The controller answers commands in their order.
                    _ = try await connection.readTransmitPower(on: .le1M)
                    let information = try await connection.information
                    #expect(information.transmitPHY == phys.secondary && information.receivePHY == phys.secondary)
                }
                break
            }
        }
    }

    @Test func reconnectionWithoutANewReportHasTheSamePHYs() throws {
        try World.run { world in
            let central = try await world.device("central").openAdapter()
            let peripheral = try await world.device("peripheral", at: Position(x: 3, y: 0)).openAdapter()
            let address = try await peripheral.information.identityAddress
            let phys = AdvertisingPHYs(secondary: .le2M)
            let advertising = try await peripheral.peripheral.startAdvertising(AdvertisementConfiguration(phys: phys))
            defer { withExtendedLifetime(advertising) {} }
            // This scan continues and does not receive the peer, whose primary PHY is LE 1M. While a scan runs, the end
            // of a link makes the host forget the peer's reports.
            _ = await central.host.startScan(ScanOptions(phys: .leCoded)) { _ in }
            for try await advertisement in central.central.scan(ScanOptions(phys: .le1M)) {
                if advertisement.address == address { break }
            }
            for _ in 0..<2 {
                let link = try await central.central.connect(to: address)
                // The controller answers commands in their order.
                _ = try await link.connection.readTransmitPower(on: .le1M)
                let information = try await link.connection.information
                #expect(information.transmitPHY == .le2M && information.receivePHY == .le2M)
                await link.disconnect()
            }
        }
    }
}
