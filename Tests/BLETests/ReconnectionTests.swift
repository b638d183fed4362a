import BLE
import BluetoothTesting
import Synchronization
import Testing

private let scripted = ScriptedService(
    "A800",
    [ScriptedCharacteristic("A801", properties: [.read], value: [7])]
)

/// Collects values in the order in which they were added.
final class Log<Value: Sendable>: Sendable {
    private let values = Mutex<[Value]>([])

    var all: [Value] { values.withLock { $0 } }

    func append(_ value: Value) {
        values.withLock { $0.append(value) }
    }
}

@Suite("A scan that connects to what it reports")
struct RepeatedScanTests {
    /// Starts a task that scans and logs the addresses that are reported.
    private static func scan(_ central: Central, _ world: World) -> (log: Log<DeviceAddress>, task: Task<Void, Never>) {
        let log = Log<DeviceAddress>()
        let task = Task(executorPreference: world.taskExecutor) {
            do {
                for try await advertisement in central.scan(ScanOptions(serviceUUIDs: ["A800"], isActive: false)) {
                    log.append(advertisement.address)
                }
            } catch {}
        }
        return (log, task)
    }

    @Test("A peer is reported again when its link has ended: by itself, by the peer, and lost")
    func scanReportsADisconnectedPeerAgain() throws {
        try World.run(limit: .seconds(3600)) { world in
            let lamp = try await world.peripheral("lamp", services: [scripted])
            let central = try await world.device("gateway").openAdapter().central
            let (log, task) = Self.scan(central, world)
            try await world.sleep(for: .seconds(10))
            #expect(log.all.count == 1)
            let first = try await central.connect(to: lamp.address)
            await first.disconnect()
            try await world.sleep(for: .seconds(10))
            #expect(log.all.count == 2)
            let second = try await central.connect(to: lamp.address)
            await lamp.disconnectClients()
            _ = await second.disconnection()
            try await world.sleep(for: .seconds(10))
            #expect(log.all.count == 3)
            let third = try await central.connect(to: lamp.address)
            lamp.vanish()
            _ = await third.disconnection()
            lamp.comeBack()
            try await world.sleep(for: .seconds(60))
            #expect(log.all == Array(repeating: lamp.address, count: 4))
            task.cancel()
            await task.value
        }
    }

    @Test("A peer is reported again when an attempt to connect to it has failed")
    func scanReportsAPeerAgainAfterAFailedAttempt() throws {
        try World.run(limit: .seconds(3600)) { world in
            let lamp = try await world.peripheral("lamp", services: [scripted])
            let central = try await world.device("gateway").openAdapter().central
            let (log, task) = Self.scan(central, world)
            try await world.sleep(for: .seconds(10))
            lamp.vanish()
            await #expect(throws: BLEError.self) {
                _ = try await central.connect(to: lamp.address, timeout: .seconds(5))
            }
            try await world.sleep(for: .seconds(10))
            #expect(log.all.count == 1)
            lamp.comeBack()
            try await world.sleep(for: .seconds(60))
            #expect(log.all.count == 2)
            task.cancel()
            await task.value
        }
    }

    @Test("Peers are reported again when the controller was restarted, connected ones and others")
    func scanReportsPeersAgainAfterARecovery() throws {
        try World.run(limit: .seconds(3600)) { world in
            let lamps = [
                try await world.peripheral("lamp", services: [scripted]),
                try await world.peripheral("other lamp", services: [scripted]),
            ]
            let gateway = world.device("gateway")
            let central = try await gateway.openAdapter().central
            let (log, task) = Self.scan(central, world)
            try await world.sleep(for: .seconds(10))
            let peer = try await central.connect(to: lamps[0].address)
            gateway.failWithHardwareError()
            _ = await peer.disconnection()
            try await world.sleep(for: .seconds(60))
            #expect(Set(log.all.dropFirst(2)) == Set(lamps.map(\.address)))
            task.cancel()
            await task.value
        }
    }

    @Test("A gateway that connects to each reported peer keeps its 12 links")
    func gatewayThatScansKeepsItsLinks() throws {
        try World.run(limit: .seconds(7200)) { world in
            var lamps: [ScriptedPeripheral] = []
            for number in 1...12 { lamps.append(try await world.peripheral("lamp \(number)", services: [scripted])) }
            let adapter = try await world.device("gateway").openAdapter()
            let task = Task(executorPreference: world.taskExecutor) {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    let options = ScanOptions(serviceUUIDs: ["A800"], isActive: false)
                    for try await advertisement in adapter.central.scan(options) {
                        group.addTask {
                            let peer = try? await adapter.central.connect(
                                to: advertisement.address,
                                parameters: slowParameters
                            )
                            if let peer { _ = await peer.disconnection() }
                        }
                    }
                }
            }
            try await world.sleep(for: .seconds(120))
            #expect(await adapter.links == 12)
            for lamp in lamps { lamp.vanish() }
            try await world.sleep(for: .seconds(60))
            #expect(await adapter.links == 0)
            for lamp in lamps { lamp.comeBack() }
            try await world.sleep(for: .seconds(300))
            #expect(await adapter.links == 12)
            await adapter.close()
            _ = await task.result
        }
    }
}

/// Connection events are rare, so that hours of the world's time take seconds.
private let slowParameters = ConnectionParameters(
    interval: .seconds(1)...(.seconds(1)),
    supervisionTimeout: .seconds(6)
)

extension Adapter {
    /// The number of links that there are now.
    fileprivate var links: Int {
        get async { await host.linkIdentifiers().count }
    }
}

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

    @Test("Attempts are counted, delays grow to their maximum, and the peripheral is connected when it is back")
    func lostPeripheralIsConnectedAgain() throws {
        try World.run(limit: .seconds(7200)) { world in
            let lamp = try await world.peripheral("lamp", services: [scripted])
            let central = try await world.device("gateway").openAdapter().central
            let watcher = Watcher()
            let backoff = ReconnectionBackoff(maximumDelay: .seconds(8), jitter: 0.25)
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

    @Test("Cancellation ends it at once, also while it waits, and ends its link")
    func cancellationEndsIt() throws {
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

    @Test("The end of the adapter ends it")
    func closingTheAdapterEndsIt() throws {
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

    @Test("disconnect() of the peripheral that it reports makes it connect again")
    func disconnectingMakesItConnectAgain() throws {
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

    @Test("A handler is called for each connection, is cancelled when its link is lost, and may fail")
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

    @Test("The random part of a delay has its limits, whatever the options are")
    func delaysAreBounded() {
        let backoff = ReconnectionBackoff(initialDelay: .seconds(1), maximumDelay: .seconds(10), jitter: 0.5)
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
            jitter: .infinity,
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

@Suite("Two connections to one peripheral")
struct SharedLinkTests {
    @Test("They share the link, which ends with the last disconnect()")
    func linkEndsWithTheLastDisconnect() throws {
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
            #expect(await first.disconnection() == reason)
            #expect(try await second.read(handle) == [7])
            // A second call is no second release.
            await first.disconnect()
            #expect(try await second.read(handle) == [7])
            await second.disconnect()
            #expect(await adapter.links == 0)
            #expect(await second.disconnection() == reason)
        }
    }

    @Test("One that is discarded does not count, and keeps the link as it is")
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

    @Test("A maintained connection shares the link, too")
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
