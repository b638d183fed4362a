import BLE
import BluetoothHost
import BluetoothTesting
import BluetoothTypes
import Foundation
import Testing

@testable import CoreBluetooth

@Suite("Connection events on a host")
struct ConnectionEventTests {
    @Test func connectionEventsReportConnectionsToPeersWithTheService() throws {
        try World.run(seed: 24) { world in
            let pair = try await LampAndPhone(world)
            let watcher = await pair.phoneDevice.central()
            let stranger = await pair.phoneDevice.central()
            watcher.backend.registerForConnectionEvents(ConnectionEventFilter(services: [Lamp.service]))
            stranger.backend.registerForConnectionEvents(
                ConnectionEventFilter(services: ["AAAA"], peripherals: [UUID()])
            )
            let peripheral = await pair.connect()
            pair.phone.backend.cancelConnection(peripheral)
            _ = await pair.phone.disconnected(peripheral)
            for expected in [CBConnectionEvent.peerConnected, .peerDisconnected] {
                let (known, event) = await watcher.events.next {
                    if case .connectionEvent(let known, let event) = $0 { (known, event) } else { nil }
                }
                #expect(known.identifier == peripheral)
                #expect(event == expected)
            }
            #expect(stranger.events.waiting.isEmpty)
        }
    }

    @Test("A connection is reported when discovery has found a service that the peripheral does not advertise")
    func connectionEventsReportDiscoveredServices() throws {
        try World.run(seed: 25) { world in
            let pair = try await LampAndPhone(world)
            _ = try await pair.lamp.publish(ServiceDefinition(uuid: "FFD0"))
            let watcher = await pair.phoneDevice.central()
            let stranger = await pair.phoneDevice.central()
            watcher.backend.registerForConnectionEvents(ConnectionEventFilter(services: ["FFD0"]))
            stranger.backend.registerForConnectionEvents(ConnectionEventFilter(services: ["AAAA"]))
            let peripheral = await pair.connect()
            #expect(watcher.events.waiting.isEmpty)
            for _ in 1...2 { #expect(try await pair.phone.services(["FFD0"], of: peripheral).count == 1) }
            // Another app begins to observe while the peripheral is connected.
            let late = await pair.phoneDevice.central()
            late.backend.registerForConnectionEvents(ConnectionEventFilter(services: ["FFD0"]))
            pair.phone.backend.cancelConnection(peripheral)
            _ = await pair.phone.disconnected(peripheral)
            #expect(await nextConnectionEvent(of: watcher) == .peerConnected)
            #expect(await nextConnectionEvent(of: watcher) == .peerDisconnected)
            #expect(await nextConnectionEvent(of: late) == .peerDisconnected)
            for central in [watcher, late, stranger] { #expect(central.events.waiting.isEmpty) }
        }
    }

    @Test("A connection that was not reported is not forgotten when the app registers again, unless it has stopped")
    func registeringAgainKeepsConnectionsThatWereNotReported() throws {
        try World.run(seed: 64) { world in
            let pair = try await LampAndPhone(world)
            _ = try await pair.lamp.publish(ServiceDefinition(uuid: "FFD0"))
            let watcher = await pair.phoneDevice.central()
            let stopped = await pair.phoneDevice.central()
            for central in [watcher, stopped] {
                central.backend.registerForConnectionEvents(ConnectionEventFilter(services: ["FFD0"]))
            }
            let peripheral = await pair.connect()
            watcher.backend.registerForConnectionEvents(ConnectionEventFilter(services: ["FFD0", "AAAA"]))
            stopped.backend.registerForConnectionEvents(nil)
            stopped.backend.registerForConnectionEvents(ConnectionEventFilter(services: ["FFD0"]))
            #expect(try await pair.phone.services(["FFD0"], of: peripheral).count == 1)
            pair.phone.backend.cancelConnection(peripheral)
            _ = await pair.phone.disconnected(peripheral)
            #expect(await nextConnectionEvent(of: watcher) == .peerConnected)
            #expect(await nextConnectionEvent(of: watcher) == .peerDisconnected)
            #expect(await nextConnectionEvent(of: stopped) == .peerDisconnected)
            for central in [watcher, stopped] { #expect(central.events.waiting.isEmpty) }
        }
    }

    private func nextConnectionEvent(of central: TestCentral) async -> CBConnectionEvent {
        await central.events.next { if case .connectionEvent(_, let event) = $0 { event } else { nil } }
    }
}
