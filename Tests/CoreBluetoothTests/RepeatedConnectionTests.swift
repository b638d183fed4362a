import BLE
import BluetoothHost
import BluetoothTesting
import Foundation
import Testing

@testable import CoreBluetooth

/// Requests for connections of peripherals that are connected, or whose connections are discarded.
@Suite("Repeated requests for a connection")
struct RepeatedConnectionTests {
    @Test("Automatic reconnection can be chosen for a connected peripheral", arguments: [true, false])
    func automaticReconnectionCanBeChosenForAConnectedPeripheral(reconnects: Bool) {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        fixture.manager.connect(peripheral, options: [CBConnectPeripheralOptionEnableAutoReconnect: reconnects])
        #expect(fixture.takeTold() == ["connected"])
        #expect(fixture.takeCalls() == [.setReconnects(peripheral.identifier, reconnects)])
    }

    @Test("A connection that another thread requests while connections are discarded is discarded too, or begins")
    func discardOfAConnectionIsOneStep() {
        let fixture = CentralFixture()
        let peripheral = fixture.makePeripheral()
        for _ in 0..<1000 {
            fixture.manager.connect(peripheral)
            fixture.manager.cancelPeripheralConnection(peripheral)
            DispatchQueue.concurrentPerform(iterations: 2) { thread in
                if thread == 0 {
                    _ = peripheral.discardConnection(isInvalidated: false)
                } else {
                    _ = peripheral.wishConnection(ConnectionRequest())
                }
            }
            let isRequested =
                fixture.engine.takeCalls().last == .connect(peripheral.identifier, ConnectionRequest())
            #expect(peripheral.state == (isRequested ? .connecting : .disconnected))
            peripheral.discardConnection(isInvalidated: false)
            _ = fixture.engine.takeCalls()
        }
    }

    @Test("Automatic reconnection can be chosen while the peripheral is connected", arguments: [true, false])
    func reconnectionIsChosenDuringAConnection(reconnects: Bool) throws {
        try World.run(seed: 64) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect(ConnectionRequest(reconnects: !reconnects))
            let connection = ConnectionIdentifier(peripheral: peripheral, number: 0)
            pair.phone.engine.setReconnects(reconnects, of: connection)
            let host = pair.lampDevice.adapter.host
            for link in await host.linkIdentifiers() { await host.disconnect(link) }
            #expect(await pair.phone.disconnected(peripheral).isReconnecting == reconnects)
            if reconnects { await pair.phone.connected(peripheral) }
        }
    }
}
