import BluetoothTesting
import Dispatch
import Synchronization
import Testing

@testable import BLE

private let scripted = ScriptedService(
    "A800",
    [ScriptedCharacteristic("A801", properties: [.read], value: [7])]
)

/// Runs the first job of its tasks at once, and the later ones after ``resume()``.
private final class HoldingExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "held")
    private let holds = Atomic(false)

    /// Whether the first job has run.
    var isHolding: Bool { holds.load(ordering: .sequentiallyConsistent) }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async {
            unsafe job.runSynchronously(on: self.asUnownedTaskExecutor())
            guard !self.isHolding else { return }
            self.queue.suspend()
            self.holds.store(true, ordering: .sequentiallyConsistent)
        }
    }

    /// Runs the jobs that wait. Called once, after ``isHolding``.
    func resume() { queue.resume() }
}

@Suite("Two connections to one peripheral")
struct SharedLinkTests {
    @Test("Two connections share the link, which ends with the last disconnect()")
    func sharedLinkEndsWithTheLastDisconnect() throws {
        try World.run { world in
            let lamp = try await world.peripheral("lamp", services: [scripted])
            let handle = try #require(lamp.valueHandle(of: "A801"))
            let adapter = try await world.device("gateway").openAdapter()
            let first = try await adapter.central.connect(to: lamp.address)
            let second = try await adapter.central.connect(to: lamp.address)
            #expect(await adapter.links == 1)
            await first.disconnect()
            let reason = DisconnectionReason.controller(.connectionTerminatedByLocalHost)
            await #expect(throws: BLEError.disconnected(reason)) { _ = try await first.read(handle) }
            await #expect(throws: BLEError.disconnected(reason)) { try await first.write([1], to: handle) }
            #expect(await !first.isConnected)
            #expect(try await first.disconnection() == reason)
            #expect(try await second.read(handle) == [7])
            // A second call does not release again.
            await first.disconnect()
            #expect(try await second.read(handle) == [7])
            await second.disconnect()
            #expect(await adapter.links == 0)
            #expect(try await second.disconnection() == reason)
        }
    }

    @Test("disconnect() of one connection ends its subscriptions and not those of the other")
    func disconnectEndsItsOwnSubscriptions() throws {
        try World.run { world in
            let sensor = ScriptedCharacteristic(
                "A802",
                properties: .notify,
                schedule: .every(.seconds(1)) { [UInt8(truncatingIfNeeded: $0)] }
            )
            let lamp = try await world.peripheral("lamp", services: [ScriptedService("A800", [sensor])])
            let adapter = try await world.device("gateway").openAdapter()
            let peers = [
                try await adapter.central.connect(to: lamp.address),
                try await adapter.central.connect(to: lamp.address),
            ]
            let services = try await peers[0].discoverAll()
            let characteristic = try #require(services.last?.characteristics.first)
            let logs = [Log<[UInt8]>(), Log<[UInt8]>()]
            let errors = Log<BLEError>()
            let tasks = zip(peers, logs).map { peer, log in
                Task(executorPreference: world.taskExecutor) {
                    do {
                        for try await value in try await peer.subscribe(to: characteristic) { log.append(value.value) }
                    } catch let error as BLEError {
                        errors.append(error)
                    }
                }
            }
            try await world.sleep(for: .seconds(10))
            await peers[0].disconnect()
            _ = await tasks[0].result
            #expect(errors.all == [.disconnected(.controller(.connectionTerminatedByLocalHost))])
            let counts = logs.map(\.all.count)
            #expect(counts.allSatisfy { $0 >= 8 })
            try await world.sleep(for: .seconds(10))
            #expect(logs[0].all.count == counts[0] && logs[1].all.count >= counts[1] + 8)
            await peers[1].disconnect()
            _ = await tasks[1].result
            #expect(errors.all.count == 2)
        }
    }

    @Test("disconnect() of one connection ends its subscriptions in the order in which they began")
    func disconnectEndsSubscriptionsInOrder() throws {
        try World.run { world in
            let notified = (0..<8).map {
                ScriptedCharacteristic(BluetoothUUID(UInt16(0xA810 + $0)), properties: .notify)
            }
            let lamp = try await world.peripheral("lamp", services: [ScriptedService("A800", notified)])
            let adapter = try await world.device("gateway").openAdapter()
            let first = try await adapter.central.connect(to: lamp.address)
            let second = try await adapter.central.connect(to: lamp.address)
            let characteristics = try #require(try await first.discoverAll().last).characteristics
            let ended = Log<Int>()
            var tasks: [Task<Void, Never>] = []
            for (number, characteristic) in characteristics.enumerated() {
                let subscription = try await first.subscribe(to: characteristic)
                tasks.append(
                    Task(executorPreference: world.taskExecutor) {
                        do throws(BLEError) {
                            for try await _ in subscription {}
                        } catch {
                            ended.append(number)
                        }
                    }
                )
            }
            try await world.sleep(for: .seconds(1))
            await first.disconnect()
            for task in tasks { await task.value }
            #expect(ended.all == Array(0..<8))
            await second.disconnect()
        }
    }

    @Test(
        "disconnect() waits for the end of the link, also if an earlier call has not begun to end it",
        .timeLimit(.minutes(10))
    )
    func laterDisconnectWaitsForTheEarlierOne() async throws {
        try await SequenceFixture.run(.threads) { fixture in
            let (peer, adapter) = (fixture.peer, fixture.central)
            let executor = HoldingExecutor()
            // This call stops when the earlier values are sent.
            let first = Task(executorPreference: executor) { await peer.disconnect() }
            while !executor.isHolding { await Task.yield() }
            let hasReturned = Atomic(false)
            let second = Task {
                await peer.disconnect()
                let links = await adapter.links
                hasReturned.store(true, ordering: .sequentiallyConsistent)
                return links
            }
            while peer.ending.count == 0, !hasReturned.load(ordering: .sequentiallyConsistent) { await Task.yield() }
            let cancelled = Task { await peer.disconnect() }
            cancelled.cancel()
            await cancelled.value
            #expect(await adapter.links == 1)
            executor.resume()
            #expect(await second.value == 0)
            await first.value
        }
    }

    @Test("disconnect() after the link was lost keeps the reason of its end")
    func disconnectAfterALostLinkKeepsItsReason() throws {
        try World.run { world in
            let lamp = try await world.peripheral("lamp", services: [scripted])
            let handle = try #require(lamp.valueHandle(of: "A801"))
            let adapter = try await world.device("gateway").openAdapter()
            let peers = [
                try await adapter.central.connect(to: lamp.address),
                try await adapter.central.connect(to: lamp.address),
            ]
            try await world.sleep(for: .seconds(1))
            lamp.vanish()
            while await adapter.links > 0 { try await world.sleep(for: .seconds(1)) }
            let reason = DisconnectionReason.controller(.connectionTimeout)
            for peer in peers {
                await peer.disconnect()
                #expect(try await peer.disconnection() == reason)
                await #expect(throws: BLEError.disconnected(reason)) { _ = try await peer.read(handle) }
            }
        }
    }

    @Test("disconnect() of one connection ends its sequences, also those that are iterated later")
    func sequencesOfDisconnectedConnectionEnd() throws {
        try World.run { world in
            let lamp = try await world.peripheral("lamp", services: [scripted])
            let adapter = try await world.device("gateway").openAdapter()
            let first = try await adapter.central.connect(to: lamp.address)
            let second = try await adapter.central.connect(to: lamp.address)
            let trains = first.transferredTrains()
            await first.disconnect()
            let ended = BLEError.disconnected(.controller(.connectionTerminatedByLocalHost))
            await #expect(throws: ended) { for try await _ in trains {} }
            await #expect(throws: ended) { for try await _ in first.channelSounding() {} }
            await #expect(throws: ended) { for try await _ in first.connection.events() {} }
            #expect(await second.isConnected)
            await second.disconnect()
        }
    }

    @Test("A connection that is discarded no longer counts, and does not end the link")
    func discardedConnectionDoesNotCount() throws {
        try World.run { world in
            let lamp = try await world.peripheral("lamp", services: [scripted])
            let adapter = try await world.device("gateway").openAdapter()
            _ = try await adapter.central.connect(to: lamp.address)
            try await world.sleep(for: .seconds(1))
            #expect(await adapter.links == 1)
            let peer = try await adapter.central.connect(to: lamp.address)
            await peer.disconnect()
            #expect(await adapter.links == 0)
        }
    }

    @Test("A maintained connection shares the link as well")
    func maintainedConnectionSharesTheLink() throws {
        try World.run { world in
            let lamp = try await world.peripheral("lamp", services: [scripted])
            let handle = try #require(lamp.valueHandle(of: "A801"))
            let adapter = try await world.device("gateway").openAdapter()
            let task = Task(executorPreference: world.taskExecutor) {
                try await adapter.central.maintain(lamp.address) { _ in }
            }
            try await world.sleep(for: .seconds(20))
            let peer = try await adapter.central.connect(to: lamp.address)
            task.cancel()
            _ = await task.result
            try await world.sleep(for: .seconds(20))
            #expect(try await peer.read(handle) == [7])
            await peer.disconnect()
            #expect(await adapter.links == 0)
        }
    }
}
