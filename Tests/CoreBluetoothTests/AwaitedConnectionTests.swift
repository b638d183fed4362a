import BluetoothTypes
import Foundation
import GATT
import Testing

@testable import CoreBluetooth

@Suite("Connections that are awaited")
struct AwaitedConnectionTests {
    private let engine = ScriptedCentralEngine()
    private let manager: CBCentralManager
    private let peripheral: CBPeripheral

    init() async {
        manager = CBCentralManager(delegate: nil, queue: DispatchQueue(label: "awaited"), engine: engine)
        peripheral = manager.peripheral(KnownPeripheral(identifier: UUID(), name: nil))
        say(.stateChanged(.poweredOn))
        await settle()
    }

    private func say(_ event: CentralEvent) { engine.say(event) }

    /// Waits until all that was said has reached the manager.
    private func settle() async {
        await withCheckedContinuation { continuation in
            manager.deliveryQueue.async { continuation.resume() }
        }
    }

    /// Begins to wait for a connection, and returns when the engine has been asked for it or need not be.
    private func begin(until state: CBPeripheralState = .connecting) async -> Task<Void, any Error> {
        let task = Task { [manager, peripheral] in try await manager.linux.connected(peripheral) }
        while peripheral.state != state || manager.connectionChanges.count == 0 { await Task.yield() }
        return task
    }

    @Test(
        "Bluetooth that goes away ends the wait, in whatever way it goes",
        arguments: [CBManagerState.resetting, .poweredOff]
    )
    func goingAway(state: CBManagerState) async throws {
        let task = await begin()
        say(.stateChanged(state))
        let result = await task.result
        #expect(throws: CBError.self) { try result.get() }
        #expect(peripheral.state == .disconnected)
    }

    @Test("The end of an earlier connection is not taken for the new one's")
    func earlierConnection() async throws {
        manager.connect(peripheral)
        say(.connected(peripheral.identifier, mtu: 23))
        await settle()
        manager.cancelPeripheralConnection(peripheral)
        let task = await begin(until: .disconnecting)
        say(.disconnected(peripheral.identifier, Disconnection(error: nil, time: 0)))
        while peripheral.state != .connecting { await Task.yield() }
        say(.connected(peripheral.identifier, mtu: 100))
        try await task.value
        #expect(peripheral.state == .connected && peripheral.linux.mtu == 100)
    }

    @Test("A failure is the wait's error, and a connection that is taken back ends it")
    func failure() async throws {
        let failing = await begin()
        say(.connectionFailed(peripheral.identifier, .core(.connectionTimeout)))
        let failed = await failing.result
        let error = #expect(throws: CBError.self) { try failed.get() }
        #expect(error?.code == .connectionTimeout)
        let ending = await begin()
        manager.cancelPeripheralConnection(peripheral)
        say(.disconnected(peripheral.identifier, Disconnection(error: nil, time: 0)))
        let ended = await ending.result
        #expect(throws: CBError.self) { try ended.get() }
    }

    @Test("What is asked on a connection that ends has an answer, and changes nothing of the next")
    func lateAnswer() async throws {
        manager.connect(peripheral)
        say(.connected(peripheral.identifier, mtu: 23))
        await settle()
        _ = engine.takeCalls()
        let asking = Task { [peripheral] in try await peripheral.linux.discoverServices() }
        var calls: [ScriptedCentralEngine.Call] = []
        while calls.isEmpty {
            calls = engine.takeCalls()
            await Task.yield()
        }
        say(.disconnected(peripheral.identifier, Disconnection(error: .core(.connectionTimeout), time: 0)))
        engine.answer(calls[0], Result<[DiscoveredService], EngineError>.success([]))
        let result = await asking.result
        #expect(throws: CBError.self) { _ = try result.get() }
        #expect(peripheral.services == nil)
    }
}
