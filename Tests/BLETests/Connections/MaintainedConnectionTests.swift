import BLE
import BluetoothTesting
import Testing

private let scripted = ScriptedService(
    "A800",
    [ScriptedCharacteristic("A801", properties: [.read], value: [7])]
)

@Suite("A maintained connection")
struct MaintainedConnectionTests {
    /// The states of a maintained connection as text, with the peripheral that was reported last.
    private final class Watcher: Sendable {
        let states = Log<MaintainedConnection.State>()
        let end = Log<BLEError?>()

        func watch(_ connection: MaintainedConnection, _ world: World) -> Task<Void, Never> {
            Task(executorPreference: world.taskExecutor) {
                do throws(BLEError) {
                    for try await state in connection { self.states.append(state) }
                    self.end.append(nil)
                } catch {
                    self.end.append(error)
                }
            }
        }

        var names: [String] { states.all.map(\.name) }

        var delays: [Duration] {
            states.all.compactMap { if case .failed(_, _, let delay) = $0 { delay } else { nil } }
        }

        var peripherals: [RemotePeripheral] {
            states.all.compactMap { if case .connected(let peripheral) = $0 { peripheral } else { nil } }
        }
    }

    @Test("Attempts are counted, delays grow to their maximum, and a peripheral that is back is connected")
    func lostPeripheralIsConnectedAgain() throws {
        try World.run(limit: .seconds(7200)) { world in
            let lamp = try await world.peripheral("lamp", services: [scripted])
            let central = try await world.device("gateway").openAdapter().central
            let watcher = Watcher()
            let backoff = ReconnectionBackoff(maximumDelay: .seconds(8), jitterFraction: 0.25)
            let task = watcher.watch(
                central.maintain(lamp.address, backoff: backoff, attemptTimeout: .seconds(5)),
                world
            )
            try await world.sleep(for: .seconds(60))
            #expect(watcher.names == ["connecting 1", "connected"])
            lamp.vanish()
            try await world.sleep(for: .seconds(120))
            #expect(
                watcher.names.prefix(7) == [
                    "connecting 1", "connected", "disconnected", "connecting 1", "failed 1", "connecting 2", "failed 2",
                ]
            )
            // A stable connection is replaced without a delay.
            #expect(watcher.states.all.contains { $0.nextAttempt == .zero })
            #expect(watcher.delays.count > 5)
            for (index, delay) in watcher.delays.enumerated() {
                let longest = min(.milliseconds(500 << min(index, 10)), Duration.seconds(8))
                #expect(delay <= longest && delay >= longest * 0.75, "delay \(index)")
            }
            #expect(Set(watcher.delays.map { $0 / .milliseconds(1) }).count == watcher.delays.count)
            lamp.comeBack()
            try await world.sleep(for: .seconds(30))
            #expect(watcher.names.last == "connected")
            task.cancel()
            await task.value
            #expect(watcher.end.all == [.cancelled])
        }
    }

    @Test("Cancelling the task ends it at once, also while it waits, and ends its link")
    func cancellationEndsAMaintainedConnectionAndItsLink() throws {
        try World.run(limit: .seconds(3600)) { world in
            let lamp = try await world.peripheral("lamp", services: [scripted])
            let adapter = try await world.device("gateway").openAdapter()
            let watcher = Watcher()
            let task = watcher.watch(adapter.central.maintain(lamp.address), world)
            try await world.sleep(for: .seconds(20))
            let start = world.elapsed
            task.cancel()
            await task.value
            #expect(world.elapsed == start)
            try await world.sleep(for: .seconds(2))
            #expect(await adapter.links == 0)
            lamp.vanish()
            let backoff = ReconnectionBackoff(initialDelay: .seconds(1000), maximumDelay: .seconds(1000))
            let waiting = watcher.watch(
                adapter.central.maintain(lamp.address, backoff: backoff, attemptTimeout: .seconds(1)),
                world
            )
            try await world.sleep(for: .seconds(20))
            #expect(watcher.names.last == "failed 1")
            let second = world.elapsed
            waiting.cancel()
            await waiting.value
            #expect(world.elapsed == second)
            #expect(watcher.end.all == [.cancelled, .cancelled])
        }
    }

    @Test func closingTheAdapterEndsAMaintainedConnection() throws {
        try World.run(limit: .seconds(3600)) { world in
            let lamp = try await world.peripheral("lamp", services: [scripted])
            let adapter = try await world.device("gateway").openAdapter()
            let watcher = Watcher()
            let task = watcher.watch(adapter.central.maintain(lamp.address), world)
            try await world.sleep(for: .seconds(20))
            await adapter.close()
            await task.value
            #expect(watcher.end.all == [.closed])
        }
    }

    @Test("A maintained connection connects again after disconnect() of the peripheral that it reports")
    func maintainedConnectionConnectsAgainAfterDisconnect() throws {
        try World.run(limit: .seconds(3600)) { world in
            let lamp = try await world.peripheral("lamp", services: [scripted])
            let adapter = try await world.device("gateway").openAdapter()
            let watcher = Watcher()
            let task = watcher.watch(adapter.central.maintain(lamp.address), world)
            try await world.sleep(for: .seconds(60))
            await watcher.peripherals.first?.disconnect()
            try await world.sleep(for: .seconds(60))
            #expect(watcher.names == ["connecting 1", "connected", "disconnected", "connecting 1", "connected"])
            task.cancel()
            await task.value
        }
    }

    @Test("The end of a connection that was not stable counts as a failure")
    func endOfAConnectionThatWasNotStableCountsAsAFailure() throws {
        try World.run(limit: .seconds(3600)) { world in
            let lamp = try await world.peripheral("lamp", services: [scripted])
            let adapter = try await world.device("gateway").openAdapter()
            let watcher = Watcher()
            let backoff = ReconnectionBackoff(
                initialDelay: .seconds(1),
                jitterFraction: 0,
                stableDuration: .seconds(30)
            )
            let task = watcher.watch(adapter.central.maintain(lamp.address, backoff: backoff), world)
            // The third connection is stable.
            for (number, time) in [20, 20, 60].enumerated() {
                try await world.sleep(for: .seconds(time))
                #expect(watcher.peripherals.count == number + 1)
                await watcher.peripherals.last?.disconnect()
            }
            try await world.sleep(for: .seconds(20))
            #expect(watcher.names.last == "connected")
            #expect(watcher.states.all.compactMap(\.nextAttempt) == [.seconds(1), .seconds(2), .zero])
            task.cancel()
            await task.value
        }
    }

    @Test("The duration and the reason of a connection are those of its end, also if the reader asks later")
    func endThatIsReadLateCountsAsItsLinkEnded() throws {
        try World.run(limit: .seconds(3600)) { world in
            let lamp = try await world.peripheral("lamp", services: [scripted])
            let central = try await world.device("gateway").openAdapter().central
            let backoff = ReconnectionBackoff(
                initialDelay: .seconds(1),
                jitterFraction: 0,
                stableDuration: .seconds(30)
            )
            var states = central.maintain(lamp.address, backoff: backoff).makeAsyncIterator()
            var peripheral: RemotePeripheral?
            while peripheral == nil {
                if case .connected(let connected) = try await states.next() { peripheral = connected }
            }
            try await world.sleep(for: .seconds(5))
            lamp.vanish()
            try await world.sleep(for: .seconds(60))
            await peripheral?.disconnect()
            guard case .disconnected(let reason, let delay) = try await states.next() else {
                Issue.record("the connection has not ended")
                return
            }
            #expect(reason == .controller(.connectionTimeout))
            #expect(delay == .seconds(1))
        }
    }

    private enum Moment: CaseIterable {
        case beforeTheFirstAttempt
        case afterTheEnd
    }

    @Test("A cancelled task gets no further state", arguments: Moment.allCases)
    private func cancelledTaskGetsNoState(moment: Moment) throws {
        try World.run(limit: .seconds(3600)) { world in
            let lamp = try await world.peripheral("lamp", services: [scripted])
            let adapter = try await world.device("gateway").openAdapter()
            let connection = adapter.central.maintain(lamp.address)
            let task = Task(executorPreference: world.taskExecutor) {
                var states = connection.makeAsyncIterator()
                if moment == .afterTheEnd {
                    while true {
                        guard case .connected = try await states.next() else { continue }
                        lamp.vanish()
                        while await adapter.links > 0 { try await world.sleep(for: .seconds(1)) }
                        break
                    }
                }
                withUnsafeCurrentTask { $0?.cancel() }
                return try await states.next()?.name
            }
            await #expect(throws: BLEError.cancelled) { _ = try await task.value }
        }
    }

    @Test("A handler is called for each connection, is cancelled when its link is lost, and may throw")
    func handlerIsCalledForEachConnection() throws {
        struct Failure: Error {}
        try World.run(limit: .seconds(3600)) { world in
            let lamp = try await world.peripheral("lamp", services: [scripted])
            let handle = try #require(lamp.valueHandle(of: "A801"))
            let central = try await world.device("gateway").openAdapter().central
            let log = Log<String>()
            let task = Task(executorPreference: world.taskExecutor) {
                try await central.maintain(lamp.address) { peer in
                    log.append("read \(try await peer.read(handle))")
                    switch log.all.count {
                    case 1:
                        // Until the link is lost.
                        do {
                            try await world.sleep(for: .seconds(100_000))
                        } catch {
                            log.append("cancelled")
                        }
                    case 3: throw Failure()
                    default: break
                    }
                }
            }
            try await world.sleep(for: .seconds(60))
            #expect(log.all == ["read [7]"])
            lamp.vanish()
            try await world.sleep(for: .seconds(20))
            #expect(log.all == ["read [7]", "cancelled"])
            lamp.comeBack()
            try await world.sleep(for: .seconds(120))
            #expect(log.all == ["read [7]", "cancelled", "read [7]", "read [7]"])
            task.cancel()
            await #expect(throws: BLEError.cancelled) { try await task.value }
        }
    }

    @Test("The gateway in the documentation reconnects to each sensor after lost links")
    func documentedGatewayFollowsItsSensors() throws {
        try World.run(limit: .seconds(3600)) { world in
            let service = ScriptedService(
                "180D",
                [
                    ScriptedCharacteristic(
                        "2A37",
                        properties: .notify,
                        schedule: .every(.seconds(1)) { [UInt8(truncatingIfNeeded: $0)] }
                    )
                ]
            )
            let sensors = [
                try await world.peripheral("one", services: [service]),
                try await world.peripheral("two", services: [service]),
            ]
            let adapter = try await world.device("gateway").openAdapter()
            let beats = Log<DeviceAddress>()
            let gateway = Task(executorPreference: world.taskExecutor) {
                let central = adapter.central
                try await withThrowingDiscardingTaskGroup { group in
                    var known: Set<DeviceAddress> = []
                    for try await found in central.scan(ScanOptions(serviceUUIDs: ["180D"]))
                    where known.insert(found.address).inserted {
                        group.addTask {
                            try await central.maintain(found.address) { peer in
                                let services = try await peer.discoverAll()
                                guard
                                    let rate = services.flatMap(\.characteristics).first(where: { $0.uuid == "2A37" })
                                else { return }
                                for try await _ in try await peer.subscribe(to: rate) { beats.append(found.address) }
                            }
                        }
                    }
                }
            }
            try await world.sleep(for: .seconds(60))
            #expect(Set(beats.all) == Set(sensors.map(\.address)))
            sensors[0].vanish()
            try await world.sleep(for: .seconds(60))
            sensors[0].comeBack()
            try await world.sleep(for: .seconds(120))
            let before = beats.all.count { $0 == sensors[0].address }
            try await world.sleep(for: .seconds(20))
            #expect(beats.all.count { $0 == sensors[0].address } >= before + 15)
            gateway.cancel()
            _ = await gateway.result
        }
    }

    @Test("The random part of a delay is bounded for all options")
    func delaysAreBounded() {
        let backoff = ReconnectionBackoff(initialDelay: .seconds(1), maximumDelay: .seconds(10), jitterFraction: 0.5)
        #expect(backoff.delay(afterFailures: 0, random: 0) == .zero)
        #expect(
            (1...6).map { backoff.delay(afterFailures: $0, random: 0) } == [1, 2, 4, 8, 10, 10].map { .seconds($0) }
        )
        #expect(backoff.delay(afterFailures: 4, random: 1) == .seconds(4))
        #expect(backoff.delay(afterFailures: .max, random: 0) == .seconds(10))
        let odd = ReconnectionBackoff(
            initialDelay: .seconds(-1),
            maximumDelay: .seconds(-5),
            multiplier: .nan,
            jitterFraction: .infinity,
            stableDuration: .zero
        )
        #expect(odd.delay(afterFailures: 1000, random: .nan) == .zero)
    }
}

extension MaintainedConnection.State {
    fileprivate var name: String {
        switch self {
        case .connecting(let attempt): "connecting \(attempt)"
        case .connected: "connected"
        case .disconnected: "disconnected"
        case .failed(_, let attempt, _): "failed \(attempt)"
        }
    }

    fileprivate var nextAttempt: Duration? {
        if case .disconnected(_, let delay) = self { delay } else { nil }
    }
}
