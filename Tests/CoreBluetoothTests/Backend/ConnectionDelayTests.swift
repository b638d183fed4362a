import BluetoothTesting
import Foundation
import Testing

@testable import CoreBluetooth

@Suite("Connections with a delay")
struct ConnectionDelayTests {
    @Test("The delay of the last request counts, from that request", arguments: [0, 2, 20])
    func delayOfTheLastRequestCounts(delay: Int) throws {
        try World.run(seed: 151) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.phone.find().identifier
            pair.phone.backend.connect(peripheral, ConnectionRequest(delay: .seconds(10)))
            try await world.sleep(for: .seconds(1))
            let start = world.elapsed
            pair.phone.backend.connect(peripheral, ConnectionRequest(delay: .seconds(delay)))
            await pair.phone.connected(peripheral)
            #expect(world.elapsed - start >= .seconds(delay))
            #expect(world.elapsed - start < .seconds(delay + 3))
            try await world.sleep(for: .seconds(30))
            #expect(await pair.phoneDevice.adapter.host.linkIdentifiers().count == 1)
        }
    }

    @Test("A request with the same delay does not extend it")
    func sameDelayContinues() throws {
        try World.run(seed: 152) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.phone.find().identifier
            let start = world.elapsed
            for pause in [5, 4] {
                pair.phone.backend.connect(peripheral, ConnectionRequest(delay: .seconds(10)))
                try await world.sleep(for: .seconds(pause))
            }
            #expect(await pair.phoneDevice.adapter.host.linkIdentifiers().isEmpty)
            await pair.phone.connected(peripheral)
            #expect(world.elapsed - start >= .seconds(10))
            #expect(world.elapsed - start < .seconds(13))
        }
    }
}

@Suite("Connections that have failed")
struct FailedConnectionTests {
    @Test("The backend keeps a failed connection until it is released")
    func failedConnectionIsKeptUntilItIsReleased() throws {
        try World.run(seed: 153) { world in
            let pair = try await LampAndPhone(world)
            let backend = pair.phone.backend
            var connections: [ConnectionIdentifier] = []
            for _ in 1...3 {
                let connection = ConnectionIdentifier(newTo: UUID())
                backend.connect(connection, ConnectionRequest())
                await pair.phone.events.next { if case .connectionFailed(connection, _) = $0 { () } else { nil } }
                connections.append(connection)
            }
            #expect(backend.state.failed.count == 3)
            for connection in connections { backend.release(connection) }
            try await world.sleep(for: .seconds(1))
            #expect(backend.state.failed.isEmpty)
        }
    }

    @Test("The manager releases a connection whose failure it has handled")
    func managerReleasesAFailedConnection() {
        let fixture = CentralFixture()
        let peripheral = fixture.makePeripheral()
        fixture.manager.connect(peripheral)
        fixture.deliver(.connectionFailed(peripheral.connection, .core(.connectionTimeout)))
        #expect(
            fixture.takeCalls() == [
                .connect(peripheral.identifier, ConnectionRequest()), .release(peripheral.identifier),
            ]
        )
        #expect(fixture.takeTold() == ["failed"])
    }

    @Test("A cancellation before the manager has handled the failure reaches the backend before the release")
    func cancellationReachesTheBackendBeforeTheRelease() {
        let fixture = CentralFixture()
        let peripheral = fixture.makePeripheral()
        fixture.manager.connect(peripheral)
        _ = fixture.takeCalls()
        fixture.manager.deliveryQueue.suspend()
        fixture.backend.deliver(.connectionFailed(peripheral.connection, .core(.connectionTimeout)))
        fixture.manager.cancelPeripheralConnection(peripheral)
        fixture.manager.deliveryQueue.resume()
        #expect(fixture.takeCalls() == [.cancel(peripheral.identifier), .release(peripheral.identifier)])
        fixture.deliver(.disconnected(peripheral.connection, Disconnection(error: nil, time: 1)))
        #expect(fixture.takeTold() == ["disconnected disconnected false"])
    }
}
