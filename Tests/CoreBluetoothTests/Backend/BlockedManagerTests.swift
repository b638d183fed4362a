import BLE
import BLEATT
import BLEGATT
import BLESMP
import BluetoothHost
import BluetoothTesting
import BluetoothTypes
import Foundation
import Metrics
import MetricsTestKit
import Synchronization
import Testing

@testable import CoreBluetooth

/// How a host handles events that a manager does not take because the app's queue is blocked.
@Suite("Managers that do not take events")
struct BlockedManagerTests {
    /// Counts the events that it refuses while it is closed.
    private final class Gate: Sendable {
        private let state = Mutex((isClosed: true, refused: 0))

        var refused: Int { state.withLock { $0.refused } }

        func open() { state.withLock { $0.isClosed = false } }

        /// Returns whether an event is taken. Only events that match are refused.
        func take(_ isMatch: Bool) -> Bool {
            state.withLock { state in
                guard isMatch, state.isClosed else { return true }
                state.refused += 1
                return false
            }
        }
    }

    /// Runs `body` in a world whose hosts count with the given metrics.
    private func run(
        seed: UInt64,
        _ body: @escaping @Sendable (World, TestMetrics) async throws -> Void
    ) throws {
        try World.run(seed: seed) { world in
            let metrics = TestMetrics()
            try await withMetricsFactory(metrics) { try await body(world, metrics) }
        }
    }

    /// A service in addition to that of the lamp.
    private static var otherService: ServiceDefinition {
        var definition = Lamp.definition
        definition.uuid = "FFD0"
        return definition
    }

    /// Another manager on the lamp's host, which refuses some events.
    private func blockedLamp(
        _ pair: LampAndPhone,
        _ gate: Gate,
        refuses: @escaping @Sendable (CoreBluetooth.PeripheralEvent) -> Bool
    ) async -> TestPeripheral {
        let blocked = TestPeripheral(HostPeripheral(pair.lampDevice.shared), accept: { gate.take(refuses($0)) })
        await blocked.events.next { if case .stateChanged(.poweredOn) = $0 { true } else { nil } }
        return blocked
    }

    /// Another manager on the phone's host, which refuses some events.
    private func blockedPhone(
        _ pair: LampAndPhone,
        _ gate: Gate,
        refuses: @escaping @Sendable (CentralEvent) -> Bool
    ) async -> TestCentral {
        let blocked = TestCentral(HostCentral(pair.phoneDevice.shared), accept: { gate.take(refuses($0)) })
        await blocked.events.next { if case .stateChanged(.poweredOn) = $0 { true } else { nil } }
        return blocked
    }

    // MARK: The peripheral role

    @Test("Commands are dropped and counted, and the link stays")
    func droppedCommandsDoNotEndTheLink() throws {
        try run(seed: 91) { world, metrics in
            let pair = try await LampAndPhone(world)
            let gate = Gate()
            let blocked = await blockedLamp(pair, gate) { if case .access = $0 { true } else { false } }
            _ = try await blocked.publish(Self.otherService)
            let peripheral = await pair.connect()
            let value = try await pair.phone.characteristics(of: "FFD0", on: peripheral)[0]
            for number in UInt8(0)..<3 {
                let result = await outcome {
                    pair.phone.backend.writeWithoutResponse([number], to: value.valueHandle, of: peripheral, $0)
                }
                #expect(result.failure == nil)
            }
            // The host itself answers reads of the version.
            let version = try await pair.phone.characteristics(of: Lamp.service, on: peripheral)[2]
            #expect(try await pair.phone.read(version.valueHandle, of: peripheral).get() == Array("1.0".utf8))
            #expect(gate.refused == 3)
            #expect(metrics.counterTotal(label: "swift_ble_dropped_write_commands_total") == 3)
            gate.open()
            pair.phone.backend.writeWithoutResponse([9], to: value.valueHandle, of: peripheral) { _ in }
            guard case .write(let write, isCommand: true) = await blocked.access().1.kind else {
                Issue.record("another access was delivered")
                return
            }
            #expect(write.value == [9])
        }
    }

    @Test("A client that changes its subscriptions again and again is disconnected")
    func floodOfChangesEndsTheLink() throws {
        try run(seed: 93) { world, _ in
            let pair = try await LampAndPhone(world)
            let gate = Gate()
            let blocked = await blockedLamp(pair, gate) { if case .configured = $0 { true } else { false } }
            _ = try await blocked.publish(Self.otherService)
            let peripheral = await pair.connect()
            let value = try await pair.phone.characteristics(of: "FFD0", on: peripheral)[0]
            _ = await pair.phone.configure(.notification, of: value, on: peripheral)
            #expect(await pair.phone.disconnected(peripheral).error != nil)
            #expect(gate.refused == 1)
        }
    }

    @Test("A central whose connection event is refused is disconnected")
    func refusedCentralIsDisconnected() throws {
        try run(seed: 94) { world, _ in
            let pair = try await LampAndPhone(world)
            let gate = Gate()
            let blocked = await blockedLamp(pair, gate) { if case .connected = $0 { true } else { false } }
            let peripheral = await pair.phone.find([Lamp.service]).identifier
            pair.phone.backend.connect(peripheral, ConnectionRequest())
            #expect(await pair.phone.disconnected(peripheral).error != nil)
            try await world.sleep(for: .seconds(10))
            #expect(await pair.lampDevice.adapter.host.linkIdentifiers().isEmpty)
            #expect(gate.refused == 1)
            #expect(blocked.events.waiting.isEmpty, "the manager does not know the central")
        }
    }

    @Test("A channel whose event is refused is closed, and the link stays")
    func refusedChannelIsClosed() throws {
        try run(seed: 95) { world, _ in
            let pair = try await LampAndPhone(world)
            let gate = Gate()
            let blocked = await blockedLamp(pair, gate) { if case .channelOpened = $0 { true } else { false } }
            let psm = try await outcome { blocked.backend.publishChannel(requiresEncryption: false, $0) }.get()
            let peripheral = await pair.connect()
            let channel = try await outcome { pair.phone.backend.openChannel(psm, to: peripheral, $0) }.get()
            for stream in [channel.input, channel.output] as [Stream] { stream.open() }
            try await world.sleep(for: .seconds(5))
            #expect(gate.refused == 1)
            #expect(channel.input.streamStatus == .atEnd && channel.output.streamStatus == .atEnd)
            #expect(await pair.phoneDevice.adapter.host.linkIdentifiers().count == 1)
        }
    }

    @Test("A central whose new identifier is refused is disconnected under its old one")
    func refusedIdentifierIsNotUsed() throws {
        try run(seed: 96) { world, _ in
            let pair = try await LampAndPhone(world)
            let gate = Gate()
            let blocked = await blockedLamp(pair, gate) { if case .identified = $0 { true } else { false } }
            let peripheral = await pair.connect()
            let known = await blocked.connected()
            // A bond with the phone's address makes its identity unverified.
            let bond = Bond(identity: pair.phoneDevice.device.address)
            try await pair.lampDevice.adapter.host.importBond(BondRecord(bond: bond))
            #expect(await pair.phone.disconnected(peripheral).error != nil)
            let gone = await blocked.events.next { if case .disconnected(let gone) = $0 { gone } else { nil } }
            #expect(gone.link == known.link && gone.identifier == known.identifier)
            #expect(gate.refused == 1)
        }
    }

    // MARK: The central role

    @Test("Values are dropped and counted, and the link stays")
    func droppedValuesDoNotEndTheLink() throws {
        try run(seed: 92) { world, metrics in
            let pair = try await LampAndPhone(world)
            let gate = Gate()
            let blocked = await blockedPhone(pair, gate) { if case .valueReceived = $0 { true } else { false } }
            let peripheral = await blocked.find([Lamp.service]).identifier
            await blocked.connect(peripheral)
            let characteristics = try await blocked.characteristics(of: Lamp.service, on: peripheral)
            _ = await blocked.configure(.notification, of: characteristics[0], on: peripheral)
            let (central, handle, _) = await pair.lamp.configured()
            for number in UInt8(0)..<3 {
                let result = await outcome { pair.lamp.backend.update([number], of: handle, to: [central.link], $0) }
                #expect(result.failure == nil)
            }
            #expect(
                try await blocked.read(characteristics[2].valueHandle, of: peripheral).get() == Array("1.0".utf8)
            )
            #expect(gate.refused == 3)
            #expect(metrics.counterTotal(label: "swift_ble_dropped_received_values_total") == 3)
            gate.open()
            pair.lamp.backend.update([9], of: handle, to: [central.link]) { _ in }
            #expect(await blocked.value(of: handle) == [9])
        }
    }

    @Test("A peripheral that causes a change that is refused is disconnected")
    func refusedChangeEndsTheLink() throws {
        try run(seed: 97) { world, _ in
            let pair = try await LampAndPhone(world)
            let gate = Gate()
            // The Device Name differs from the advertised name, and is reported.
            pair.lamp.backend.stopAdvertising()
            try await pair.lamp.advertise("hall", [Lamp.service])
            let blocked = await blockedPhone(pair, gate) { if case .nameChanged = $0 { true } else { false } }
            let peripheral = await blocked.find([Lamp.service]).identifier
            blocked.backend.connect(peripheral, ConnectionRequest())
            await blocked.connected(peripheral)
            let end = await blocked.disconnected(peripheral)
            #expect(end.error != nil && !end.isReconnecting)
            #expect(gate.refused == 1)
        }
    }

    @Test("A peripheral that reconnects more often than the manager takes is not connected again")
    func refusedReconnectionIsTheLast() throws {
        try run(seed: 98) { world, _ in
            let pair = try await LampAndPhone(world)
            let connections = Mutex(0)
            let gate = Gate()
            let blocked = await blockedPhone(pair, gate) { event in
                guard case .connected = event else { return false }
                return connections.withLock { count in
                    count += 1
                    return count > 2
                }
            }
            let peripheral = await blocked.find([Lamp.service]).identifier
            blocked.backend.connect(peripheral, ConnectionRequest(reconnects: true))
            let host = pair.lampDevice.adapter.host
            for _ in 1...2 {
                await blocked.connected(peripheral)
                for link in await host.linkIdentifiers() { await host.disconnect(link) }
                #expect(await blocked.disconnected(peripheral).isReconnecting)
            }
            let end = await blocked.disconnected(peripheral)
            #expect(end.error != nil && !end.isReconnecting)
            try await world.sleep(for: .seconds(10))
            #expect(await pair.phoneDevice.adapter.host.linkIdentifiers().isEmpty)
            #expect(gate.refused == 1)
            // The app may connect again when its queue runs.
            gate.open()
            await blocked.connect(peripheral)
        }
    }

    @Test("A dropped discovery is counted, and reported again when the manager has room")
    func droppedDiscoveryIsReportedAgain() throws {
        try run(seed: 99) { world, metrics in
            let pair = try await LampAndPhone(world)
            let gate = Gate()
            let blocked = await blockedPhone(pair, gate) { if case .discovered = $0 { true } else { false } }
            pair.phone.backend.scan(ScanRequest())
            blocked.backend.scan(ScanRequest())
            try await world.sleep(for: .seconds(10))
            #expect(gate.refused == 1, "not for each packet")
            #expect(metrics.counterTotal(label: "swift_ble_dropped_advertisements_total") == 1)
            gate.open()
            blocked.backend.reportDroppedDiscoveries()
            #expect(await blocked.discovery().name == "lamp")
            blocked.backend.reportDroppedDiscoveries()
            try await world.sleep(for: .seconds(10))
            #expect(blocked.events.waiting.discoveries.isEmpty, "it was not dropped again")
            #expect(pair.phone.events.waiting.discoveries.count == 1, "another scan took it")
        }
    }

    @Test("All advertisers are reported again when too many were dropped to be recorded")
    func droppedAdvertisersAreBounded() {
        var scan = HostCentral.Scan(request: ScanRequest(), number: 1)
        let addresses = (1...5000).map { DeviceAddress($0, isRandom: true) }
        for address in addresses[..<10] + addresses[..<10] { scan.noteDrop(of: address) }
        #expect(scan.takeDroppedAdvertisers() == Set(addresses[..<10]))
        for address in addresses { scan.noteDrop(of: address) }
        #expect(scan.droppedAdvertisers.count == 4096)
        #expect(scan.takeDroppedAdvertisers() == nil)
        #expect(scan.takeDroppedAdvertisers() == [])
        #expect(scan.dropCount == 5020)
    }
}
