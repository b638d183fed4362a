import BLE
import Testing

@testable import GatewayCore

/// A bonded device with private addresses that was reset. It keeps its identity address, and makes its private
/// addresses with another key, so no bond resolves them.
@Suite(.timeLimit(.minutes(2)))
struct ResetDeviceTests {
    /// Pairs a device, reads its value and disconnects it.
    ///
    /// - Parameter address: the address under which the device is received.
    private func pair(
        _ device: Device,
        at address: DeviceAddress,
        _ world: World,
        by client: APIClient,
        usesCommands: Bool
    ) async throws {
        if usesCommands {
            guard case .paired(let identity) = try await world.perform(.pair, at: address).get() else {
                Issue.record("no result of a pairing")
                return
            }
            #expect(identity == device.address)
        } else {
            try await client.connect(address.value)
            try #require(try await client.pair(address.value))
        }
        while await device.adapter.bonds().isEmpty { await Task.yield() }
        try await read(address, of: device, world, by: client, usesCommands: usesCommands)
    }

    /// Reads the value of a device, and disconnects it.
    private func read(
        _ address: DeviceAddress,
        of device: Device,
        _ world: World,
        by client: APIClient,
        usesCommands: Bool
    ) async throws {
        if usesCommands {
            let path = DeviceCommand.Path(characteristic: "2A6E")
            guard case .value(let value, of: _) = try await world.perform(.read(path), at: address).get() else {
                Issue.record("no value")
                return
            }
            #expect(value == [7])
            _ = try await world.perform(.disconnect, at: address).get()
        } else {
            #expect(try await client.read(address.value, device.value) == [7])
            try await client.disconnect(address.value)
        }
    }

    @Test(arguments: [false, true])
    func requestedPairingReplacesTheBond(usesCommands: Bool) async throws {
        let received = ReceivedDevices()
        try await withGateway(usesPrivateAddresses: true, received: received) { world in
            await world.waitForAdapters()
            let client = try await world.client()
            // The gateway scans.
            try await client.send(.subscribeAdvertisementsRequest, [8, 1])
            let lamp = world.devices[0]
            let first = try await lamp.privateAddress(receivedBy: world.adapter)
            try await pair(lamp, at: first, world, by: client, usesCommands: usesCommands)
            #expect(await world.adapter.bonds().map(\.identity) == [lamp.address])
            await lamp.adapter.close()

            let reset = try await Device(1, air: world.air, usesPrivateAddresses: true)
            try #require(reset.address == lamp.address)
            let second = try await reset.privateAddress(receivedBy: world.adapter)
            try await pair(reset, at: second, world, by: client, usesCommands: usesCommands)
            let bonds = await world.adapter.bonds()
            #expect(bonds.map(\.identity) == [reset.address] && bonds.map(\.isPrivileged) == [true])
            #expect(await reset.adapter.bonds().count == 1)

            // The gateway receives, lists and connects it under its identity address.
            #expect(try await reset.advertisedAddress(receivedBy: world.adapter) == reset.address)
            func receptionCount() -> UInt64 {
                let devices = received.snapshot(slotCount: 1).devices
                return devices.first { $0.address == reset.address }?.advertisementCount ?? 0
            }
            let count = receptionCount()
            while receptionCount() == count { await Task.yield() }
            if !usesCommands { try await client.connect(reset.address.value) }
            try await read(reset.address, of: reset, world, by: client, usesCommands: usesCommands)
            #expect(await world.adapter.bonds().map(\.identity) == [reset.address])
        }
    }

    /// The device requests the pairing itself, and no client does.
    @Test func unrequestedPairingReplacesNoBond() async throws {
        try await withGateway(usesPrivateAddresses: true) { world in
            await world.waitForAdapters()
            var policy = SecurityPolicy()
            policy.justWorks = .always
            await world.adapter.setSecurityPolicy(policy)
            let client = try await world.client()
            let lamp = world.devices[0]
            let first = try await lamp.privateAddress(receivedBy: world.adapter)
            try await pair(lamp, at: first, world, by: client, usesCommands: false)
            let bonds = await world.adapter.bonds()
            await lamp.adapter.close()

            let reset = try await Device(1, air: world.air, usesPrivateAddresses: true)
            let second = try await reset.privateAddress(receivedBy: world.adapter)
            try await client.connect(second.value)
            let clients = await reset.adapter.peripheral.clients
            let link = try #require(clients.first).id
            // The gateway refuses the keys at the end, and ends the link.
            _ = try? await reset.adapter.peripheral.requestSecurity(of: link)
            _ = try await client.connectionResponse { $0.address == second.value && !$0.connected }
            #expect(await world.adapter.bonds() == bonds)
        }
    }
}
