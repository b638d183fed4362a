import BLE
import BluetoothHost
import BluetoothTesting
import BluetoothTypes
import Foundation
import Testing

@testable import CoreBluetooth

@Suite("The ends of connections on a host")
struct ConnectionEndTests {
    @Test("A peer that vanishes causes a connection timeout; waiting calls are answered after it")
    func vanishedPeerCausesAConnectionTimeout() throws {
        try World.run(seed: 20) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let (backend, events) = (pair.phone.backend, pair.phone.events)
            pair.lampDevice.device.vanish()
            let isAfterEnd = await withCheckedContinuation { continuation in
                backend.read(pair.handle(2), of: peripheral) { result in
                    #expect(result == .failure(.core(.connectionTimeout)))
                    let isAfterEnd = events.waiting.contains { if case .disconnected = $0 { true } else { false } }
                    continuation.resume(returning: isAfterEnd)
                }
            }
            #expect(isAfterEnd)
            let disconnection = await pair.phone.disconnected(peripheral)
            #expect(disconnection.error == .core(.connectionTimeout))
            #expect(!disconnection.isReconnecting)
            #expect(disconnection.time > 600_000_000)
        }
    }

    @Test("A disconnection by the peer is reported as such")
    func disconnectionByThePeerIsReportedAsSuch() throws {
        try World.run(seed: 21) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            let host = pair.lampDevice.adapter.host
            for link in await host.linkIdentifiers() { await host.disconnect(link) }
            #expect(await pair.phone.disconnected(peripheral).error == .core(.peripheralDisconnected))
        }
    }

    @Test("A connection that is to be made again is, until the app cancels it")
    func connectionIsMadeAgainUntilTheAppCancelsIt() throws {
        try World.run(seed: 22) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect(ConnectionRequest(reconnects: true))
            for _ in 1...3 {
                let host = pair.lampDevice.adapter.host
                for link in await host.linkIdentifiers() { await host.disconnect(link) }
                let disconnection = await pair.phone.disconnected(peripheral)
                #expect(disconnection.error == .core(.peripheralDisconnected))
                #expect(disconnection.isReconnecting)
                await pair.phone.connected(peripheral)
            }
            pair.phone.backend.cancelConnection(peripheral)
            let last = await pair.phone.disconnected(peripheral)
            #expect(last.error == nil && !last.isReconnecting)
            pair.phone.events.removeAll()
            try await world.sleep(for: .seconds(10))
            #expect(pair.phone.events.waiting.isEmpty)
        }
    }

    @Test("A command for a link that has ended is not carried out on the link of the reconnection")
    func commandForAnEndedLinkIsNotCarriedOutOnTheNext() throws {
        try World.run(seed: 62) { world in
            let pair = try await LampAndPhone(world)
            let backend = pair.phone.backend
            let peripheral = await pair.phone.find([Lamp.service]).identifier
            backend.connect(peripheral, ConnectionRequest(reconnects: true))
            let former = ConnectedPeripheral(identifier: peripheral, link: await pair.phone.connected(peripheral))
            let brightness = try await pair.characteristics(of: peripheral)[0]
            let host = pair.lampDevice.adapter.host
            for link in await host.linkIdentifiers() { await host.disconnect(link) }
            #expect(await pair.phone.disconnected(peripheral).isReconnecting)
            let present = ConnectedPeripheral(identifier: peripheral, link: await pair.phone.connected(peripheral))
            pair.lamp.events.removeAll()

            let handle = brightness.valueHandle
            var failures: [BackendError?] = []
            failures.append(await outcome { backend.discoverServices(nil, of: former, $0) }.failure)
            failures.append(await outcome { backend.read(pair.handle(2), of: former, $0) }.failure)
            failures.append(await outcome { backend.write([1], to: handle, of: former, $0) }.failure)
            failures.append(await outcome { backend.writeWithoutResponse([1], to: handle, of: former, $0) }.failure)
            failures.append(
                await outcome { backend.setConfiguration(.notification, of: brightness, on: former, $0) }.failure
            )
            failures.append(await outcome { backend.readRSSI(of: former, $0) }.failure)
            failures.append(await outcome { backend.openChannel(0x80, to: former, $0) }.failure)
            #expect(failures.count == 7 && failures.allSatisfy { $0 == .core(.notConnected) })
            let version = await outcome { backend.read(pair.handle(2), of: present, $0) }
            #expect(version == .success(Array("1.0".utf8)))
            let reached = pair.lamp.events.waiting.filter { event in
                switch event {
                case .access, .configured: true
                default: false
                }
            }
            #expect(reached.isEmpty)
        }
    }

    @Test("A failing controller: disconnections, resetting, poweredOn; nothing is resumed")
    func failingControllerResumesNothing() throws {
        try World.run(seed: 23) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect(ConnectionRequest(reconnects: true))
            pair.phone.backend.scan(ScanRequest())
            _ = await pair.phone.discovery()
            pair.phoneDevice.device.vanish()
            #expect(await pair.phone.disconnected(peripheral).error == .core(.connectionFailed))
            await pair.phone.events.next { if case .stateChanged(.resetting) = $0 { () } else { nil } }
            pair.phone.events.removeAll()
            pair.phoneDevice.device.comeBack()
            await pair.phone.events.next { if case .stateChanged(.poweredOn) = $0 { () } else { nil } }
            try await world.sleep(for: .seconds(10))
            #expect(pair.phone.events.waiting.isEmpty)
            await pair.phone.connect(peripheral)
        }
    }
}
