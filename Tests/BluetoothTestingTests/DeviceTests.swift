import BLE
import BluetoothTesting
import Glibc
import Testing

@Suite("A device of a world")
struct DeviceTests {
    @Test("A cancelled opening of an adapter takes no time", arguments: [Duration.zero, .milliseconds(1)])
    func cancelledOpeningTakesNoTime(delay: Duration) throws {
        try World.run { world in
            let device = world.device("phone")
            device.faults = ControllerFaults(isSilent: true)
            let opening = Task(executorPreference: world.taskExecutor) { try await device.openAdapter() }
            // Without a delay, the task is cancelled before it begins.
            if delay > .zero { try await world.sleep(for: delay) }
            opening.cancel()
            await #expect(throws: BLEError.cancelled) { try await opening.value }
            #expect(world.elapsed == delay)
            device.faults = .none
            _ = try await device.openAdapter()
        }
    }

    @Test func controllerIsUsedByOneAdapterAtATime() throws {
        try World.run { world in
            let device = world.device("phone")
            let adapter = try await device.openAdapter()
            await #expect(throws: BLEError.adapter(.connectionFailed("phone", errno: EBUSY))) {
                try await device.openAdapter()
            }
            #expect(try await adapter.information.identityAddress == device.address)
            await adapter.close()
            _ = try await device.openAdapter()
        }
    }

    @Test("A device saves no state, so settings about it are refused", arguments: [false, true])
    func settingsAboutSavedStateAreRefused(isRequired: Bool) throws {
        try World.run { world in
            let device = world.device("phone")
            let error = await #expect(throws: BLEError.self) {
                try await device.openAdapter {
                    if isRequired { $0.requiresState = true } else { $0.stateLocation = .directory("/nowhere") }
                }
            }
            #expect(error.map { "\($0)" }?.contains("saves no state") == true)
            _ = try await device.openAdapter { $0.stateLocation = .nowhere }
        }
    }
}
