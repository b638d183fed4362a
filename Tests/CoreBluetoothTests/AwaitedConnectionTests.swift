import BLEGATT
import BluetoothTypes
import Foundation
import Synchronization
import Testing

@testable import CoreBluetooth

@Suite("Awaited connections")
struct AwaitedConnectionTests {
    private let backend = ScriptedCentralBackend()
    private let manager: CBCentralManager
    private let peripheral: CBPeripheral

    init() async {
        manager = CBCentralManager(delegate: nil, queue: DispatchQueue(label: "awaited"), backend: backend)
        peripheral = manager.peripheral(KnownPeripheral(identifier: UUID(), name: nil))
        deliver(.stateChanged(.poweredOn))
        await settle()
    }

    private func deliver(_ event: CentralEvent) { backend.deliver(event) }

    /// Waits until all events have reached the manager.
    private func settle() async {
        await withCheckedContinuation { continuation in
            manager.deliveryQueue.async { continuation.resume() }
        }
    }

    /// Starts to wait for a connection. Returns when the backend was asked for it, or does not need to be.
    private func begin(until state: CBPeripheralState = .connecting) async -> Task<Void, any Error> {
        let task = Task { [manager, peripheral] in try await manager.linux.connected(peripheral) }
        while peripheral.state != state || manager.connectionChanges.count == 0 { await Task.yield() }
        return task
    }

    @Test(
        "Any loss of Bluetooth ends the wait",
        arguments: [CBManagerState.resetting, .poweredOff]
    )
    func lossOfBluetoothEndsTheWait(state: CBManagerState) async throws {
        let task = await begin()
        deliver(.stateChanged(state))
        let result = await task.result
        #expect(throws: CBError.self) { try result.get() }
        #expect(peripheral.state == .disconnected)
    }

    @Test("The end of an earlier connection is not taken as the end of the new one")
    func endOfAnEarlierConnectionIsNotThatOfTheNewOne() async throws {
        manager.connect(peripheral)
        deliver(.connected(peripheral.connection, mtu: 23, on: .placeholder(1)))
        await settle()
        manager.cancelPeripheralConnection(peripheral)
        let task = await begin(until: .disconnecting)
        deliver(.disconnected(peripheral.connection, Disconnection(error: nil, time: 0)))
        while peripheral.state != .connecting { await Task.yield() }
        // The end is reported, and the next connection has begun.
        await settle()
        deliver(.connected(peripheral.connection, mtu: 100, on: .placeholder(1)))
        try await task.value
        #expect(peripheral.state == .connected && peripheral.linux.mtu == 100)
    }

    /// A manager that runs a closure once, between the beginning of a wait and its request to connect.
    private final class InterruptedManager: CBCentralManager, @unchecked Sendable {
        private let interruption = Mutex<(@Sendable () -> Void)?>(nil)

        init(_ backend: ScriptedCentralBackend) {
            super.init(delegate: nil, queue: DispatchQueue(label: "interrupted"), backend: backend)
        }

        func interrupt(_ body: @escaping @Sendable () -> Void) { interruption.withLock { $0 = body } }

        private func takeInterruption() -> (@Sendable () -> Void)? {
            interruption.withLock { interruption in
                defer { interruption = nil }
                return interruption
            }
        }

        /// Read by each command before it is carried out.
        override var state: CBManagerState {
            if connectionChanges.count > 0, let body = takeInterruption() { body() }
            return super.state
        }
    }

    @Test("The end of an earlier connection that is reported just before the request does not end the wait")
    func endThatIsReportedJustBeforeTheRequestDoesNotEndTheWait() async throws {
        let backend = ScriptedCentralBackend()
        let manager = InterruptedManager(backend)
        let queue = manager.deliveryQueue
        let peripheral = manager.peripheral(KnownPeripheral(identifier: UUID(), name: nil))
        backend.deliver(.stateChanged(.poweredOn))
        queue.sync {}
        manager.connect(peripheral)
        backend.deliver(.connected(peripheral.connection, mtu: 23, on: .placeholder(1)))
        queue.sync {}
        manager.cancelPeripheralConnection(peripheral)
        let end = CentralEvent.disconnected(peripheral.connection, Disconnection(error: nil, time: 0))
        manager.interrupt {
            backend.deliver(end)
            queue.sync {}
        }
        let task = Task { try await manager.linux.connected(peripheral) }
        while peripheral.state != .connecting { await Task.yield() }
        backend.deliver(.connected(peripheral.connection, mtu: 100, on: .placeholder(2)))
        try await task.value
        #expect(peripheral.state == .connected && peripheral.linux.mtu == 100)
    }

    /// Connects again within the report of a failure, which ends after the new attempt has begun.
    private final class RetryingDelegate: NSObject, CBCentralManagerDelegate {
        private let retry = Mutex<Task<Void, any Error>?>(nil)

        var task: Task<Void, any Error>? { retry.withLock { $0 } }

        func centralManagerDidUpdateState(_ central: CBCentralManager) {}

        func centralManager(
            _ central: CBCentralManager,
            didFailToConnect peripheral: CBPeripheral,
            error: (any Error)?
        ) {
            let task = Task { try await central.linux.connected(peripheral) }
            retry.withLock { $0 = task }
            while peripheral.state != .connecting { sched_yield() }
        }
    }

    @Test("A failure that is still being reported does not end the wait for the next attempt")
    func failureThatIsStillReportedDoesNotEndTheNextWait() async throws {
        let delegate = RetryingDelegate()
        manager.delegate = delegate
        manager.connect(peripheral)
        deliver(.connectionFailed(peripheral.connection, .core(.connectionTimeout)))
        await settle()
        deliver(.connected(peripheral.connection, mtu: 23, on: .placeholder(1)))
        let task = try #require(delegate.task)
        try await task.value
        #expect(peripheral.state == .connected)
    }

    /// Starts to wait for a connection that begins after the end of the one that the app has cancelled.
    private func beginNext() async -> Task<Void, any Error> {
        let task = Task { [manager, peripheral] in try await manager.linux.connected(peripheral) }
        while peripheral.content.withLock({ $0.nextConnection == nil }) { await Task.yield() }
        return task
    }

    @Test("The end of a cancelled connection ends the wait for it, and not the wait for the next one")
    func endOfACancelledConnectionEndsTheWaitForIt() async throws {
        let cancelled = await begin()
        manager.cancelPeripheralConnection(peripheral)
        let next = await beginNext()
        deliver(.disconnected(peripheral.connection, Disconnection(error: nil, time: 0)))
        await settle()
        deliver(.connected(peripheral.connection, mtu: 23, on: .placeholder(1)))
        let result = await cancelled.result
        let error = #expect(throws: CBError.self) { try result.get() }
        #expect(error?.code == .operationCancelled)
        try await next.value
        #expect(peripheral.state == .connected)
    }

    @Test("Cancelling a connection that waits for the end of an earlier one ends the wait for it")
    func cancellationOfTheNextConnectionEndsTheWaitForIt() async throws {
        manager.connect(peripheral)
        deliver(.connected(peripheral.connection, mtu: 23, on: .placeholder(1)))
        await settle()
        manager.cancelPeripheralConnection(peripheral)
        let next = await beginNext()
        manager.cancelPeripheralConnection(peripheral)
        deliver(.disconnected(peripheral.connection, Disconnection(error: nil, time: 0)))
        let result = await next.result
        let error = #expect(throws: CBError.self) { try result.get() }
        #expect(error?.code == .operationCancelled)
        #expect(peripheral.state == .disconnected)
    }

    /// Runs tasks on a queue, which a test can suspend.
    private final class QueueExecutor: TaskExecutor {
        let queue = DispatchQueue(label: "waiting")

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            queue.async { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        }
    }

    @Test("The failure of a connection is its error, also if the task runs only after an earlier end and the failure")
    func failureAfterAnEarlierEndIsReportedToALateTask() async throws {
        manager.connect(peripheral)
        deliver(.connected(peripheral.connection, mtu: 23, on: .placeholder(1)))
        await settle()
        manager.cancelPeripheralConnection(peripheral)
        let executor = QueueExecutor()
        let task = Task(executorPreference: executor) { [manager, peripheral] in
            try await manager.linux.connected(peripheral)
        }
        while manager.connectionChanges.count == 0 { await Task.yield() }
        // The task waits for changes now.
        await withCheckedContinuation { continuation in executor.queue.async { continuation.resume() } }
        executor.queue.suspend()
        deliver(.disconnected(peripheral.connection, Disconnection(error: nil, time: 0)))
        await settle()
        #expect(peripheral.state == .connecting)
        deliver(.connectionFailed(peripheral.connection, .core(.connectionTimeout)))
        await settle()
        #expect(peripheral.state == .disconnected)
        executor.queue.resume()
        let result = await task.result
        let error = #expect(throws: CBError.self) { try result.get() }
        #expect(error?.code == .connectionTimeout)
    }

    @Test("A failure is the wait's error, and cancelling the connection ends the wait")
    func failureOrCancellationEndsTheWait() async throws {
        let failing = await begin()
        deliver(.connectionFailed(peripheral.connection, .core(.connectionTimeout)))
        let failed = await failing.result
        let error = #expect(throws: CBError.self) { try failed.get() }
        #expect(error?.code == .connectionTimeout)
        let ending = await begin()
        manager.cancelPeripheralConnection(peripheral)
        deliver(.disconnected(peripheral.connection, Disconnection(error: nil, time: 0)))
        let ended = await ending.result
        #expect(throws: CBError.self) { try ended.get() }
    }

    @Test("Requests on a connection that ends are answered, and do not affect the next connection")
    func lateAnswerDoesNotAffectTheNextConnection() async throws {
        manager.connect(peripheral)
        deliver(.connected(peripheral.connection, mtu: 23, on: .placeholder(1)))
        await settle()
        _ = backend.takeCalls()
        let asking = Task { [peripheral] in try await peripheral.linux.discoverServices() }
        var calls: [ScriptedCentralBackend.Call] = []
        while calls.isEmpty {
            calls = backend.takeCalls()
            await Task.yield()
        }
        deliver(.disconnected(peripheral.connection, Disconnection(error: .core(.connectionTimeout), time: 0)))
        backend.answer(calls[0], Result<[DiscoveredService], BackendError>.success([]))
        let result = await asking.result
        #expect(throws: CBError.self) { _ = try result.get() }
        #expect(peripheral.services == nil)
    }
}
