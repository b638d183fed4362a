import BLE
import BluetoothHost
import BluetoothTesting
import Foundation
import Testing

@testable import CoreBluetooth

/// Requests for connections of peripherals that are connected, or for which an earlier request has not ended.
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

    @Test("Automatic reconnection can be chosen while the peripheral is connected", arguments: [true, false])
    func reconnectionIsChosenDuringAConnection(reconnects: Bool) throws {
        try World.run(seed: 64) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect(ConnectionRequest(reconnects: !reconnects))
            let connection = ConnectionIdentifier(peripheral: peripheral, number: 0)
            pair.phone.backend.setReconnects(reconnects, of: connection)
            let host = pair.lampDevice.adapter.host
            for link in await host.linkIdentifiers() { await host.disconnect(link) }
            #expect(await pair.phone.disconnected(peripheral).isReconnecting == reconnects)
            if reconnects { await pair.phone.connected(peripheral) }
        }
    }

    @Test("Of the requests during a disconnection, one without the option keeps the choice of the one before it")
    func requestDuringADisconnectionKeepsTheChoice() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        let reconnects: [String: Any] = [CBConnectPeripheralOptionEnableAutoReconnect: true]
        fixture.manager.cancelPeripheralConnection(peripheral)
        fixture.manager.connect(peripheral, options: reconnects)
        fixture.manager.connect(peripheral)
        #expect(fixture.takeCalls() == [.cancel(peripheral.identifier)])
        fixture.deliver(.disconnected(peripheral.connection, Disconnection(error: nil, time: 1)))
        #expect(fixture.takeCalls() == [.connect(peripheral.identifier, ConnectionRequest(reconnects: true))])
        // A cancelled request leaves no choice behind.
        fixture.deliver(.connected(peripheral.connection, mtu: 23, on: .placeholder(2)))
        fixture.manager.cancelPeripheralConnection(peripheral)
        fixture.manager.connect(peripheral, options: reconnects)
        fixture.manager.cancelPeripheralConnection(peripheral)
        fixture.manager.connect(peripheral)
        #expect(fixture.takeCalls() == [.cancel(peripheral.identifier)])
        fixture.deliver(.disconnected(peripheral.connection, Disconnection(error: nil, time: 2)))
        #expect(fixture.takeCalls() == [.connect(peripheral.identifier, ConnectionRequest())])
    }

    @Test("A request without the option keeps automatic reconnection", arguments: [true, false])
    func requestWithoutTheOptionKeepsReconnection(isConnected: Bool) throws {
        try World.run(seed: 65) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.phone.find().identifier
            pair.phone.backend.connect(peripheral, ConnectionRequest(reconnects: true))
            if isConnected { await pair.phone.connected(peripheral) }
            await pair.phone.connect(peripheral, ConnectionRequest())
            let host = pair.lampDevice.adapter.host
            for link in await host.linkIdentifiers() { await host.disconnect(link) }
            #expect(await pair.phone.disconnected(peripheral).isReconnecting)
            await pair.phone.connected(peripheral)
        }
    }
}
