import BLE
import Testing

@testable import GatewayCore

/// Commands that pair and unpair, and commands for a device that has lost the key of its bond.
@Suite(.timeLimit(.minutes(2)))
struct PairingCommandTests {
    private static let path = DeviceCommand.Path(characteristic: "2A6E")
    private static let otherActions: [DeviceCommand.Action] = [
        .services, .read(path), .write(path, [1], withResponse: true), .write(path, [1], withResponse: false),
        .subscribe(path),
    ]

    /// Pairs the first device, and returns the identity address in the result.
    private func pair(_ world: World) async throws -> DeviceAddress? {
        let outcome = try await world.perform(.pair).get()
        if case .paired(let identity) = outcome { return identity }
        return nil
    }

    private func read(_ world: World) async throws -> [UInt8]? {
        let outcome = try await world.perform(.read(Self.path)).get()
        if case .value(let value, of: _) = outcome { return value }
        return nil
    }

    private func failure(_ action: DeviceCommand.Action, _ world: World) async -> DeviceCommandError? {
        if case .failure(let error) = await world.perform(action) { return error }
        return nil
    }

    /// Pairs the first device, which is reset after the connection.
    private func pairAndReset(_ world: World) async throws -> Device {
        await world.waitForAdapters()
        let device = world.devices[0]
        #expect(try await pair(world) == device.address)
        while await device.adapter.bonds().isEmpty { await Task.yield() }
        _ = try await world.perform(.disconnect).get()
        await device.forgetBonds()
        return device
    }

    @Test func pairReplacesTheBondWhoseKeyTheDeviceHasLost() async throws {
        try await withGateway { world in
            let device = try await pairAndReset(world)
            #expect(try await pair(world) == device.address)
            #expect(try await read(world) == [7])
            #expect(await device.adapter.bonds().count == 1)
            let bonds = await world.adapter.bonds()
            #expect(bonds.map(\.identity) == [device.address] && bonds.map(\.isPrivileged) == [true])
        }
    }

    @Test(arguments: otherActions)
    func otherCommandsKeepTheBondAndSayWhatToDo(action: DeviceCommand.Action) async throws {
        try await withGateway { world in
            let device = try await pairAndReset(world)
            for _ in 1...2 {
                let error = try #require(await failure(action, world))
                #expect(error.code == .keyMissing)
                #expect(error.text.contains("has lost the key of its bond"), "\(error.text)")
                #expect(error.text.contains("send the command pair"), "\(error.text)")
                #expect(error.text.contains("or unpair"), "\(error.text)")
                #expect(!error.text.contains("\n"))
            }
            #expect(await world.adapter.bonds().map(\.identity) == [device.address])
            #expect(await device.adapter.peripheral.value(of: AttributeHandle(rawValue: device.value)) == [7])
            // The command works on the same connection.
            #expect(try await pair(world) == device.address)
            #expect(try await read(world) == [7])
        }
    }

    /// A device may request a pairing itself. Commands keep such a bond as well.
    @Test func bondThatNoCommandHasRequestedStaysIfItsKeyIsLost() async throws {
        try await withGateway { world in
            let device = try await pairAndReset(world)
            await world.adapter.setBondPrivileged(false, for: device.address)
            #expect(await failure(.read(Self.path), world)?.code == .keyMissing)
            #expect(await world.adapter.bonds().count == 1)
        }
    }

    @Test(arguments: [true, false])
    func unpairRemovesTheBond(isConnected: Bool) async throws {
        try await withGateway { world in
            let device = try await pairAndReset(world)
            if isConnected { _ = try await world.perform(.connect).get() }
            _ = try await world.perform(.unpair).get()
            #expect(await world.adapter.bonds().isEmpty)
            #expect(await world.connectionCounts == [0])
            let error = try #require(await failure(.unpair, world))
            #expect(error.code == .notPaired)
            // Without the bond, the device is used as a new one.
            #expect(try await read(world) == [7])
            #expect(try await pair(world) == device.address)
        }
    }

    @Test func unpairIsRefusedWhileAClientHasTheDevice() async throws {
        try await withGateway { world in
            let device = try await pairAndReset(world)
            let client = try await world.client()
            _ = try await client.requestConnection(device.address.value)
            #expect(await failure(.unpair, world)?.code == .busy)
            #expect(await failure(.pair, world)?.code == .busy)
            #expect(await world.adapter.bonds().count == 1)
        }
    }
}
