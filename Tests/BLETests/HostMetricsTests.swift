import BLESMP
import BluetoothTesting
import Metrics
import MetricsTestKit
import Testing

@testable import BLE
@testable import BluetoothHost

extension BluetoothHost {
    /// Handles a frame as if the controller had received it.
    fileprivate func receive(_ payload: [UInt8], on channel: UInt16, handle: UInt16) {
        func bytes(_ number: UInt16) -> [UInt8] { [UInt8(number & 0xFF), UInt8(number >> 8)] }
        let length = UInt16(payload.count)
        // The packet starts a frame (Vol 4, Part E, 5.4.2).
        let packet = bytes(handle | 0x2000) + bytes(length + 4) + bytes(length) + bytes(channel) + payload
        receiveACL(packet.span.bytes)
        endInput()
    }
}

extension Adapter {
    /// Passes a frame to the host as if the controller had received it.
    ///
    /// - Parameter link: the link; nil for a handle that is not one of a link.
    fileprivate func receive(_ payload: [UInt8], on channel: UInt16, _ link: LinkIdentifier?) async {
        await host.receive(payload, on: channel, handle: link?.handle.rawValue ?? 0x0123)
    }
}

@Suite("The metrics of a host")
struct HostMetricsTests {
    private static let attribute: UInt16 = 0x0004
    private static let signaling: UInt16 = 0x0005

    /// Runs `body` in a world whose hosts count with the given metrics.
    private func run(_ body: @escaping @Sendable (World, TestMetrics) async throws -> Void) throws {
        try World.run { world in
            let metrics = TestMetrics()
            try await withMetricsFactory(metrics) { try await body(world, metrics) }
        }
    }

    @Test func linksAndFreeBuffersAreGauges() throws {
        try run { world, metrics in
            let server = try await world.device("server") { $0.aclPacketCount = 3 }.openAdapter()
            let client = try await world.device("client") { $0.aclPacketCount = 3 }.openAdapter()
            let advertising = try await server.peripheral.startAdvertising(AdvertisementConfiguration())
            let peer = try await client.central.connect(to: server.information.identityAddress)
            _ = try await peer.discoverAll()
            try await world.sleep(for: .seconds(2))
            #expect(try metrics.expectGauge("swift_ble_links").lastValue == 1)
            #expect(try metrics.expectGauge("swift_ble_acl_credits_available").lastValue == 3)
            await peer.disconnect()
            try await world.sleep(for: .seconds(2))
            #expect(try metrics.expectGauge("swift_ble_links").lastValue == 0)
            await advertising.stop()
        }
    }

    @Test func recoveriesAreCounted() throws {
        try run { world, metrics in
            let device = world.device("device")
            let adapter = try await device.openAdapter()
            for count in 1...2 {
                device.failWithHardwareError(code: 1)
                try await world.sleep(for: .seconds(30))
                #expect(await adapter.host.inspect().isOn)
                #expect(metrics.counterTotal(label: "swift_ble_controller_recoveries_total") == Int64(count))
            }
        }
    }

    @Test func failedCommandsAreCounted() throws {
        try run { world, metrics in
            let fixture = try await ChannelFixture(in: world)
            try await world.sleep(for: .seconds(2))
            let before = metrics.counterTotal(label: "swift_ble_hci_command_failures_total")
            _ = try await fixture.peer.readRSSI()
            #expect(metrics.counterTotal(label: "swift_ble_hci_command_failures_total") == before)
            let near = try #require(world.devices.last)
            near.faults.refusal = 1
            await #expect(throws: BLEError.self) { _ = try await fixture.peer.readRSSI() }
            #expect(metrics.counterTotal(label: "swift_ble_hci_command_failures_total") == before + 1)
        }
    }

    @Test func dataOfUnknownLinksIsCounted() throws {
        try run { world, metrics in
            let adapter = try await world.device("device").openAdapter()
            #expect(metrics.counterTotal(label: "swift_ble_hci_stray_packets_total") == 0)
            await adapter.receive([0x0A, 1, 0], on: Self.attribute, nil)
            #expect(metrics.counterTotal(label: "swift_ble_hci_stray_packets_total") == 1)
        }
    }

    @Test func framesForUnknownChannelsAreCounted() throws {
        try run { world, metrics in
            let fixture = try await ChannelFixture(in: world)
            let label = "swift_ble_l2cap_unknown_channel_frames_total"
            #expect(metrics.counterTotal(label: label) == 0)
            // A fixed channel that LE does not have, and a dynamic one that is not open.
            for channel in [0x0030, 0x0070] as [UInt16] {
                await fixture.near.receive([1, 2, 3], on: channel, fixture.peer.link)
            }
            #expect(metrics.counterTotal(label: label) == 2)
        }
    }

    @Test func framesForAClosingChannelAreCounted() throws {
        try run { world, metrics in
            let fixture = try await ChannelFixture(in: world)
            let (near, far) = try await fixture.open()
            await near.close()
            let label = "swift_ble_l2cap_dropped_channel_frames_total"
            #expect(metrics.counterTotal(label: label) == 0)
            let channel = near.identifier.channel.rawValue
            await fixture.near.receive([1, 0, 7], on: channel, near.link)
            #expect(metrics.counterTotal(label: label) == 1)
            withExtendedLifetime(far) {}
        }
    }

    /// The controller has one buffer, so it has the first answer, and eight others wait.
    @Test func requestsOfAPeerThatTakesNoAnswersAreCounted() throws {
        try run { world, metrics in
            let server = try await world.device("server") { $0.aclPacketCount = 1 }.openAdapter()
            let client = try await world.device("client").openAdapter()
            let advertising = try await server.peripheral.startAdvertising(AdvertisementConfiguration())
            let peer = try await client.central.connect(to: server.information.identityAddress)
            try await world.sleep(for: .seconds(2))
            let link = await server.peripheral.clients.first?.id
            for identifier in UInt8(1)...11 {
                // LE Credit Based Connection Request to a service that there is not.
                let request = [0x14, identifier, 10, 0, 0x99, 0, 0x40, 0, 100, 0, 50, 0, 1, 0]
                await server.receive(request, on: Self.signaling, link)
            }
            #expect(metrics.counterTotal(label: "swift_ble_flooding_pdus_total") == 2)
            await peer.disconnect()
            await advertising.stop()
        }
    }

    /// The phone has a bond with the lamp's address, but the lamp does not have the key.
    @Test func valuesAndKeysOfAnUnverifiedPeerAreCounted() throws {
        try run { world, metrics in
            let lamp = try await world.device("lamp").openAdapter()
            let phone = try await world.device("phone").openAdapter()
            let address = try await lamp.information.identityAddress
            var bond = Bond(identity: address)
            bond.centralKey = LongTermKey(
                value: 1,
                strength: KeyStrength(isAuthenticated: true, isSecureConnections: true, keySize: 16)
            )
            bond.peripheralKey = bond.centralKey
            try await phone.host.importBond(BondRecord(bond: bond))
            let advertising = try await lamp.peripheral.startAdvertising(AdvertisementConfiguration())
            let peer = try await phone.central.connect(to: address)
            #expect(metrics.counterTotal(label: "swift_ble_unverified_values_total") == 0)
            await phone.receive([0x1B, 3, 0, 9], on: Self.attribute, peer.link)
            #expect(metrics.counterTotal(label: "swift_ble_unverified_values_total") == 1)
            try await world.sleep(for: .seconds(2))
            #expect(metrics.counterTotal(label: "swift_ble_unknown_key_requests_total") == 1)
            await advertising.stop()
        }
    }

    /// The link of the slow client stays, but no packet reaches it.
    @Test func notificationsThatASlowClientMissesAreCounted() throws {
        try run { world, metrics in
            let server = world.device("server")
            let peripheral = try await server.openAdapter().peripheral
            let sensor = ServiceDefinition(
                uuid: "A740",
                characteristics: [
                    CharacteristicDefinition(uuid: "A741", properties: .notify, permissions: [], value: .stored([]))
                ]
            )
            let handle = try await peripheral.publish([sensor])[0].characteristics[0].valueHandle
            let advertising = try await peripheral.startAdvertising(AdvertisementConfiguration())
            let devices = [world.device("fast"), world.device("slow")]
            var subscriptions: [Subscription] = []
            for device in devices {
                let peer = try await device.openAdapter().central.connect(
                    to: server.address,
                    parameters: ConnectionParameters(supervisionTimeout: .seconds(30))
                )
                let characteristics = try await peer.discoverAll().flatMap(\.characteristics)
                let notified = try #require(characteristics.first { $0.valueHandle == handle })
                subscriptions.append(try await peer.subscribe(to: notified))
            }
            try await world.sleep(for: .seconds(2))
            let slow = Log<[UInt8]>()
            let reading = Task(executorPreference: world.taskExecutor) { [subscription = subscriptions[1]] in
                for try await value in subscription { slow.append(value.value) }
            }
            world.setConditions(RadioConditions(isDead: true), between: server, and: devices[1])
            for _ in 1...600 { try await peripheral.notify([1], of: handle) }
            let dropped = Int(metrics.counterTotal(label: "swift_ble_dropped_notifications_total"))
            #expect(dropped > 0)
            world.setConditions(nil, between: server, and: devices[1])
            while slow.all.count + dropped < 600 { try await world.sleep(for: .seconds(1)) }
            try await world.sleep(for: .seconds(5))
            #expect(slow.all.count + dropped == 600)
            reading.cancel()
            _ = await reading.result
            await advertising.stop()
        }
    }
}
