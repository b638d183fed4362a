import BLE
import Testing

@testable import GatewayCore

/// Commands for a device whose services change while it is connected.
@Suite(.timeLimit(.minutes(2)))
struct CommandSessionTests {
    private static let uuid: BluetoothUUID = "2A6F"

    private static func service(_ value: [UInt8]) -> ServiceDefinition {
        ServiceDefinition(
            uuid: "9F3D0003-5C3A-4F8E-9A52-0D4A1E6C7B11",
            characteristics: [
                CharacteristicDefinition(uuid: uuid, properties: .read, permissions: .read, value: .stored(value))
            ]
        )
    }

    /// Reads the value by a command; nil if the device refuses.
    private func read(in world: World) async throws -> [UInt8]? {
        switch await world.perform(.read(DeviceCommand.Path(characteristic: Self.uuid))) {
        case .success(.value(let value, of: _)): return value
        case .success: return nil
        case .failure(let error):
            guard error.code == .attribute else { throw error }
            return nil
        }
    }

    /// Replaces a service by another one with the same characteristic, which has another handle.
    private func replace(_ service: PublishedService, on peripheral: Peripheral) async throws {
        // Published while the old one is there, so it gets other handles.
        _ = try await peripheral.publish([Self.service([2])])
        await peripheral.remove(service)
    }

    @Test func servicesAreDiscoveredAgainAfterTheyHaveChanged() async throws {
        try await withGateway { world in
            await world.waitForAdapters()
            let peripheral = world.devices[0].adapter.peripheral
            let published = try await peripheral.publish([Self.service([1])])
            #expect(try await read(in: world) == [1])
            try await replace(published[0], on: peripheral)
            #expect(try await read(in: world) == nil)
            #expect(try await read(in: world) == [2])
            #expect(world.events.count(of: .deviceDisconnected) == 0)
        }
    }

    @Test func subscriptionsEndAfterServicesHaveChanged() async throws {
        try await withGateway { world in
            await world.waitForAdapters()
            let peripheral = world.devices[0].adapter.peripheral
            let published = try await peripheral.publish([Self.service([1])])
            #expect(try await read(in: world) == [1])
            let (notifications, continuation) = AsyncStream.makeStream(of: DeviceNotification.self)
            let path = DeviceCommand.Path(characteristic: "9F3D0002-5C3A-4F8E-9A52-0D4A1E6C7B11")
            _ = try await world.perform(.subscribe(path)) { continuation.yield($0) }.get()
            try await replace(published[0], on: peripheral)
            #expect(try await read(in: world) == nil)
            let notification = await notifications.first { _ in true }
            var hasEnded = false
            if case .ended? = notification?.content { hasEnded = true }
            #expect(hasEnded)
            #expect(try await read(in: world) == [2])
        }
    }
}
