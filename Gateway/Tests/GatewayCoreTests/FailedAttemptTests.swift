import BLE
import Testing

@testable import GatewayCore

/// The choice of the adapter after attempts that have failed.
@Suite(.timeLimit(.minutes(2)))
struct FailedAttemptTests {
    private static let absent: UInt64 = 0xC0DE_0000_FFFF

    private func waitForConnections(of world: World, _ condition: ([Int]) -> Bool) async -> [Int] {
        while true {
            let counts = await world.connectionCounts
            if condition(counts) { return counts }
            await Task.yield()
        }
    }

    /// Performs a command, and returns its result.
    private func perform(
        _ command: DeviceCommand,
        by commands: DeviceCommands
    ) async -> Result<DeviceCommandOutcome, DeviceCommandError> {
        await withCheckedContinuation { waiting in
            commands.perform(command) { waiting.resume(returning: $0) }
        }
    }

    @Test func linkThatEndsBeforeItIsUsedCountsAsAFailedAttempt() async throws {
        try await withGateway(hasSecondAdapter: true) { world in
            let client = try await world.client()
            await world.waitForAdapters()
            let address = world.devices[0].address.value
            // The gateway reads this value first.
            let peripheral = world.devices[0].adapter.peripheral
            let service = ServiceDefinition(
                uuid: "9F3D0003-5C3A-4F8E-9A52-0D4A1E6C7B11",
                characteristics: [
                    CharacteristicDefinition(uuid: "2B3A", properties: .read, permissions: .read, value: .handled)
                ]
            )
            let published = try await peripheral.publish([service]) { client, _ in
                await peripheral.disconnect(client)
                return []
            }
            let response = try await client.requestConnection(address)
            #expect(!response.connected)
            #expect(world.events.count(of: .deviceFailed) == 1)
            #expect(world.events.count(of: .deviceDisconnected) == 0)
            await peripheral.remove(published[0])
            try await client.connect(address)
            #expect(await world.connectionCounts == [0, 1])
        }
    }

    @Test func attemptThatTheClientEndsLateHasFailed() async throws {
        try await withGateway(hasSecondAdapter: true, failedAttemptTime: .zero) { world in
            let client = try await world.client()
            await world.waitForAdapters()
            for expected in [[1, 0], [0, 1], [1, 0]] {
                try await client.send(.deviceRequest, APIClient.request(Self.absent, .connectV3WithoutCache))
                #expect(await waitForConnections(of: world) { $0 != [0, 0] } == expected)
                try await client.disconnect(Self.absent)
            }
        }
    }

    @Test func attemptThatTheClientEndsEarlyHasNotFailed() async throws {
        try await withGateway(hasSecondAdapter: true, failedAttemptTime: .seconds(3600)) { world in
            let client = try await world.client()
            await world.waitForAdapters()
            for _ in 0..<2 {
                try await client.send(.deviceRequest, APIClient.request(Self.absent, .connectV3WithoutCache))
                #expect(await waitForConnections(of: world) { $0 != [0, 0] } == [1, 0])
                try await client.disconnect(Self.absent)
            }
        }
    }

    @Test func attemptOfACommandThatEndsLateHasFailed() async throws {
        try await withGateway(hasSecondAdapter: true, failedAttemptTime: .zero) { world in
            await world.waitForAdapters()
            let commands = world.gateway.commands
            for expected in [[1, 0], [0, 1]] {
                let command = DeviceCommand(.connect, address: Self.absent, isRandom: true, timeout: .seconds(3600))
                commands.perform(command) { _ in }
                #expect(await waitForConnections(of: world) { $0 != [0, 0] } == expected)
                commands.cancelAll(DeviceCommandError(.timeout, "test"))
                _ = await waitForConnections(of: world) { $0 == [0, 0] }
            }
        }
    }

    @Test func connectionsForCommandsAreEvents() async throws {
        try await withGateway { world in
            await world.waitForAdapters()
            let (commands, events) = (world.gateway.commands, world.events)
            let attempt = DeviceCommand(.connect, address: Self.absent, isRandom: true, timeout: .seconds(3600))
            commands.perform(attempt) { _ in }
            _ = await waitForConnections(of: world) { $0 != [0] }
            commands.cancelAll(DeviceCommandError(.timeout, "test"))
            _ = await waitForConnections(of: world) { $0 == [0] }
            #expect(events.count(of: .deviceFailed) == 1)
            #expect(events.count(of: .deviceConnected) == 0)

            let device = world.devices[0].address
            for action in [DeviceCommand.Action.connect, .disconnect] {
                let command = DeviceCommand(action, address: device.value, isRandom: true, timeout: .seconds(60))
                _ = try await perform(command, by: commands).get()
            }
            let found = events.events.filter { $0.subject == "\(device)" }
            #expect(found.map(\.kind) == [.deviceConnected, .deviceDisconnected])
            #expect(found.first?.detail == "for commands over MQTT")
            #expect(events.count(of: .deviceFailed) == 1)
        }
    }

    @Test func latestFailureIsRememberedBeyondTheLimit() async throws {
        try await withTable(adapterCount: 2) { world in
            let table = world.table
            let count = UInt64(FailedAttempts.limit) + 1
            let chosen = table.state.withLock { state -> [Int?] in
                for address in 1...count { table.attemptFailed(address, through: 0, &state) }
                let latest = table.adapter(for: count, &state)?.index
                let forgotten = table.adapter(for: 1, &state)?.index
                return [latest, forgotten]
            }
            #expect(chosen == [1, 0])
        }
    }

    @Test func failureIsForgottenAfterItsLifetime() async throws {
        try await withTable(adapterCount: 2) { world in
            let table = world.table
            let lifetime = FailedAttempts.lifetime
            let chosen = table.state.withLock { state -> [Int?] in
                let time = ContinuousClock.now
                table.attemptFailed(1, through: 0, &state, at: time)
                table.attemptFailed(2, through: 0, &state, at: time)
                let before = table.adapter(for: 1, &state, at: time + (lifetime - .seconds(1)))?.index
                let after = table.adapter(for: 2, &state, at: time + lifetime)?.index
                return [before, after]
            }
            #expect(chosen == [1, 0])
        }
    }

    @Test(
        arguments: [
            (.cancelled, 4, false), (.cancelled, 5, true), (.timedOut("connecting"), 0, true),
        ] as [(BLEError, Int, Bool)]
    )
    func cancelledAttemptHasFailedIfItWasLong(error: BLEError, seconds: Int, isFailed: Bool) {
        let limit = GatewayConfiguration().failedAttemptTime
        #expect(error.isFailedAttempt(after: .seconds(seconds), failedAttemptTime: limit) == isFailed)
    }
}
