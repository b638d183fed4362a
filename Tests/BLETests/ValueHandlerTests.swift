import BLE
import BLEATT
import BluetoothTesting
import Logging
import Synchronization
import Testing

private let service = ServiceDefinition(
    uuid: "A700",
    characteristics: [
        CharacteristicDefinition(
            uuid: "A701",
            properties: [.read, .write, .writeWithoutResponse],
            permissions: [.read, .write],
            value: .handled
        )
    ]
)

/// A failure that is no error of the Attribute Protocol.
private struct SensorFailure: Error {}

/// Collects the messages of a logger.
private struct CollectingHandler: LogHandler {
    let messages: Log<String>
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.warning

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        messages.append("\(event.message)")
    }
}

/// A server whose value has a handler, and connections to it.
private final class Fixture: Sendable {
    let world: World
    let server: Adapter
    let handle: AttributeHandle
    /// The warnings of the server.
    let messages = Log<String>()
    private let advertising: AdvertisingSet

    init(_ world: World, handler: @escaping Peripheral.ValueHandler) async throws {
        self.world = world
        let messages = messages
        server = try await world.device("server").openAdapter {
            $0.logger = Logger(label: "server") { _ in CollectingHandler(messages: messages) }
        }
        let published = try await server.peripheral.publish([service], handler: handler)
        handle = published[0].characteristics[0].valueHandle
        advertising = try await server.peripheral.startAdvertising(
            AdvertisementConfiguration(interval: .milliseconds(20))
        )
    }

    /// Publishes a value, 1, that only authorized clients may read.
    func publishAuthorized() async throws -> AttributeHandle {
        let value = CharacteristicDefinition(
            uuid: "A711",
            properties: .read,
            permissions: [.read, .readAuthorized],
            value: .stored([1])
        )
        let published = try await server.peripheral.publish([ServiceDefinition(uuid: "A710", characteristics: [value])])
        return published[0].characteristics[0].valueHandle
    }

    /// Connects a further device.
    func connect(_ name: String) async throws -> RemotePeripheral {
        let client = try await world.device(name).openAdapter()
        return try await client.central.connect(to: server.information.identityAddress)
    }

    /// Starts a call in the world.
    func start<Value: Sendable>(_ call: @escaping @Sendable () async throws -> Value) -> Task<Value, any Error> {
        Task(executorPreference: world.taskExecutor, operation: call)
    }

    func wait(until condition: @Sendable () -> Bool) async throws {
        while !condition() { try await world.sleep(for: .milliseconds(10)) }
    }
}

@Suite("Handlers of values")
struct ValueHandlerTests {
    @Test("An ATT error that a handler throws is the error in the response, and is not logged")
    func attErrorIsTheErrorInTheResponse() throws {
        try World.run { world in
            let fixture = try await Fixture(world) { _, access in
                if case .read = access { throw ATTErrorCode(rawValue: 0x80) }
                throw ATTErrorCode.valueNotAllowed
            }
            let peer = try await fixture.connect("client")
            await #expect(throws: BLEError.attribute(ATTErrorCode(rawValue: 0x80), handle: fixture.handle)) {
                _ = try await peer.read(fixture.handle)
            }
            await #expect(throws: BLEError.attribute(.valueNotAllowed, handle: fixture.handle)) {
                try await peer.write([1], to: fixture.handle)
            }
            #expect(fixture.messages.all.filter { $0.contains("handler") } == [])
        }
    }

    @Test("Any other error is answered with Unlikely Error, and logged")
    func otherErrorIsUnlikelyErrorAndLogged() throws {
        try World.run { world in
            let fixture = try await Fixture(world) { _, _ in throw SensorFailure() }
            let peer = try await fixture.connect("client")
            await #expect(throws: BLEError.attribute(.unlikelyError, handle: fixture.handle)) {
                _ = try await peer.read(fixture.handle)
            }
            #expect(fixture.messages.all.filter { $0.contains("SensorFailure") }.count == 1)
        }
    }

    @Test("An error of a command's handler is logged, and later requests are answered")
    func errorOfCommandIsLogged() throws {
        try World.run { world in
            let fixture = try await Fixture(world) { _, access in
                if case .write = access { throw SensorFailure() }
                return [7]
            }
            let peer = try await fixture.connect("client")
            try await peer.write([1], to: fixture.handle, kind: .withoutResponse)
            #expect(try await peer.read(fixture.handle) == [7])
            #expect(fixture.messages.all.filter { $0.contains("SensorFailure") }.count == 1)
        }
    }

    @Test("Of the errors that a client causes, only the first is a warning")
    func onlyTheFirstErrorOfAClientIsAWarning() throws {
        try World.run { world in
            let fixture = try await Fixture(world) { _, access in
                if case .write = access { throw SensorFailure() }
                return [7]
            }
            for (count, name) in [(1, "one"), (2, "another")] {
                let peer = try await fixture.connect(name)
                for number in UInt8(1)...100 {
                    try await peer.write([number], to: fixture.handle, kind: .withoutResponse)
                }
                #expect(try await peer.read(fixture.handle) == [7])
                await #expect(throws: BLEError.attribute(.unlikelyError, handle: fixture.handle)) {
                    try await peer.write([1], to: fixture.handle)
                }
                #expect(fixture.messages.all.filter { $0.contains("SensorFailure") }.count == count)
            }
        }
    }

    @Test("A handler that never returns does not delay another client; its client gives up after 30 s")
    func handlerThatNeverReturnsDelaysOnlyItsClient() throws {
        try World.run { world in
            let cancellations = Log<Duration>()
            let fixture = try await Fixture(world) { _, access in
                guard case .write = access else { return [7] }
                do {
                    while true { try await world.sleep(for: .seconds(3600)) }
                } catch {
                    cancellations.append(world.elapsed)
                    throw error
                }
            }
            let hung = try await fixture.connect("hung")
            let other = try await fixture.connect("other")
            let start = world.elapsed
            let write = fixture.start { try await hung.write([1], to: fixture.handle) }
            for _ in 0..<10 {
                try await world.sleep(for: .seconds(1))
                #expect(try await other.read(fixture.handle) == [7])
            }
            await #expect(throws: BLEError.self) { try await write.value }
            try await fixture.wait { !cancellations.all.isEmpty }
            #expect(cancellations.all.allSatisfy { (.seconds(29)...(.seconds(40))).contains($0 - start) })
            #expect(try await other.read(fixture.handle) == [7])
            // The cancellation is no failure of the handler.
            #expect(fixture.messages.all.filter { $0.contains("handler") } == [])
        }
    }

    @Test("The end of the link cancels the handler of a request; commands are handled to their end")
    func endOfLinkCancelsRequestButNotCommands() throws {
        try World.run { world in
            let log = Log<String>()
            let fixture = try await Fixture(world) { _, access in
                guard case .write(let write, let isCommand) = access else {
                    do {
                        try await world.sleep(for: .seconds(20))
                        log.append("read")
                    } catch {
                        log.append("cancelled read")
                    }
                    return [7]
                }
                do {
                    try await world.sleep(for: .seconds(2))
                    log.append("\(isCommand ? "command" : "request") \(write.value[0])")
                } catch {
                    log.append("cancelled \(isCommand ? "command" : "request") \(write.value[0])")
                }
                return []
            }
            let peer = try await fixture.connect("client")
            try await peer.write([1], to: fixture.handle, kind: .withoutResponse)
            let value = fixture.start { try await peer.read(fixture.handle) }
            try await world.sleep(for: .seconds(4))
            try await peer.write([2], to: fixture.handle, kind: .withoutResponse)
            try await peer.write([3], to: fixture.handle, kind: .withoutResponse)
            try await world.sleep(for: .seconds(1))
            await peer.disconnect()
            await #expect(throws: BLEError.self) { _ = try await value.value }
            try await fixture.wait { log.all.count == 4 }
            #expect(log.all == ["command 1", "cancelled read", "command 2", "command 3"])
            // The server serves the client's next connection.
            let next = try await fixture.connect("next")
            #expect(try await next.read(fixture.handle) == [7])
        }
    }

    @Test("The end of the link cancels the question whether its client is authorized")
    func endOfLinkCancelsAuthorization() throws {
        try World.run { world in
            let fixture = try await Fixture(world) { _, _ in [7] }
            let handle = try await fixture.publishAuthorized()
            let (asked, cancelled) = (Log<ClientID>(), Log<ClientID>())
            await fixture.server.peripheral.setAuthorizer { client, _ in
                asked.append(client)
                do {
                    try await world.sleep(for: .seconds(86_400))
                } catch {
                    cancelled.append(client)
                }
                return false
            }
            let central = try await world.device("client").openAdapter().central
            let address = try await fixture.server.information.identityAddress
            // The server asks about at most 64 clients at one time.
            for number in 1...71 {
                let peer = try await central.connect(to: address)
                let value = fixture.start { try await peer.read(handle) }
                try await fixture.wait { asked.all.count == number }
                #expect(cancelled.all.count == number - 1)
                await peer.disconnect()
                await #expect(throws: BLEError.self) { _ = try await value.value }
                try await fixture.wait { cancelled.all.count == number }
            }
            #expect(cancelled.all == asked.all)
        }
    }

    @Test("A client whose question is answered may read, and the host observes the end of its link no longer")
    func answeredQuestionLeavesNoObserver() throws {
        try World.run { world in
            let fixture = try await Fixture(world) { _, _ in [7] }
            let handle = try await fixture.publishAuthorized()
            let observers = Log<Int>()
            await fixture.server.peripheral.setAuthorizer { _, _ in
                observers.append(await fixture.server.host.inspect().endObservers)
                return true
            }
            let peer = try await fixture.connect("client")
            let before = await fixture.server.host.inspect().endObservers
            #expect(try await peer.read(handle) == [1])
            #expect(observers.all == [before + 1])
            #expect(await fixture.server.host.inspect().endObservers == before)
        }
    }

    @Test("A request that waits behind commands is not handled after the link has ended")
    func waitingRequestIsRemovedAtTheEndOfTheLink() throws {
        try World.run { world in
            let log = Log<String>()
            let fixture = try await Fixture(world) { _, access in
                guard case .write(let write, _) = access else {
                    log.append("read")
                    return [7]
                }
                try await world.sleep(for: .seconds(5))
                log.append("command \(write.value[0])")
                return []
            }
            let peer = try await fixture.connect("client")
            for number in 1...2 { try await peer.write([UInt8(number)], to: fixture.handle, kind: .withoutResponse) }
            let value = fixture.start { try await peer.read(fixture.handle) }
            try await world.sleep(for: .seconds(1))
            await peer.disconnect()
            await #expect(throws: BLEError.self) { _ = try await value.value }
            try await world.sleep(for: .seconds(20))
            #expect(log.all == ["command 1", "command 2"])
        }
    }

    @Test("A handler that ignores its cancellation delays no later client")
    func handlerThatIgnoresCancellationDelaysNoLaterClient() throws {
        try World.run { world in
            let hold = Hold()
            let calls = Atomic(0)
            let fixture = try await Fixture(world) { _, _ in
                calls.add(1, ordering: .relaxed)
                await Task(executorPreference: world.taskExecutor) {
                    while hold.isHeld.load(ordering: .relaxed) { try? await world.sleep(for: .seconds(1)) }
                }.value
                return [7]
            }
            let peer = try await fixture.connect("first")
            let first = fixture.start { try await peer.read(fixture.handle) }
            try await fixture.wait { calls.load(ordering: .relaxed) == 1 }
            await peer.disconnect()
            await #expect(throws: BLEError.self) { _ = try await first.value }
            let next = try await fixture.connect("second")
            let second = fixture.start { try await next.read(fixture.handle) }
            try await fixture.wait { calls.load(ordering: .relaxed) == 2 }
            hold.isHeld.store(false, ordering: .relaxed)
            #expect(try await second.value == [7])
        }
    }
}

/// What a handler waits for that ignores its cancellation.
private final class Hold: Sendable {
    let isHeld = Atomic(true)
}
