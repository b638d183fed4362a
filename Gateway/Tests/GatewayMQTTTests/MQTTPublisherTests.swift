import BLE
import BluetoothSensors
import Foundation
import GatewayCore
import GatewayTestSupport
import Synchronization
import Testing

@testable import GatewayMQTT

/// A publisher without a broker, and with one that misbehaves.
struct MQTTPublisherTests {
    private func observation(_ number: UInt64) -> SensorObservation {
        SensorObservation(
            time: Date(timeIntervalSince1970: 0),
            gateway: "hall",
            address: DeviceAddress(0xC0DE_0000_0000 + number, isRandom: true),
            report: SensorReport(format: .bthome, readings: [])
        )
    }

    @Test func observationsBeforeTheEndAreStored() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "publisher-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let path = directory.appending(path: "mqtt.sqlite").path
        // Port 1 of this machine has no listener.
        var configuration = MQTTConfiguration(
            broker: try #require(BrokerAddress(parsing: "mqtt://127.0.0.1:1")),
            gateway: "hall",
            logger: LogRecorder().logger
        )
        configuration.storePath = path
        let publisher = try MQTTPublisher(configuration)
        for number in UInt64(0)..<4000 { publisher.publish(observation(number)) }
        let run = Task { try await publisher.run() }
        run.cancel()
        try await run.value
        let store = try MessageStore(path: path)
        let entries = try store.entries(after: 0, limit: 5000)
        #expect(entries.count == 4000)
        let addresses = entries.map { $0.message.topic.split(separator: "/").dropLast().last ?? "" }
        #expect(addresses == addresses.sorted())
    }

    /// The announcement whose device is silent is removed, also if the connection ends at its removal.
    @Test(.timeLimit(.minutes(5)), arguments: [false, true])
    func silentDeviceIsRemovedAlthoughNoOtherReadingComes(isConnectionLost: Bool) async throws {
        let isRefused = Atomic(isConnectionLost)
        let broker = try SocketBroker { message in
            guard message.payload.isEmpty else { return .confirm }
            return isRefused.exchange(false, ordering: .relaxed) ? .endConnection : .confirm
        }
        defer { broker.stop() }
        let time = Mutex(Duration.zero)
        let publisher = try makePublisher(broker) { time.withLock { $0 } }
        var observation = observation(1)
        observation.report.readings = [SensorReading(.temperature, .number(21.5), unit: "°C")]
        let topic = "homeassistant/sensor/ble_C0DE00000001_temperature/config"
        var isPublished = false
        try await run(publisher) {
            guard publisher.status.isConnected else { return false }
            if !isPublished { publisher.publish(observation) }
            isPublished = true
            // Later, a reading without a confirmation would end the connection.
            guard publisher.status.deliveredCount == 1 else { return false }
            time.withLock { $0 = max($0 + .seconds(600), .seconds(86_400)) }
            return broker.messages.contains(SocketBroker.Message(topic: topic, payload: ""))
        }
        let announcements = broker.messages.filter { $0.topic == topic }
        #expect(announcements.map(\.payload.isEmpty) == [false, true])
        #expect(broker.connectionCount == (isConnectionLost ? 2 : 1))
    }

    /// The broker ends connections at the status until the gateway leaves the status out.
    @Test(.timeLimit(.minutes(5)))
    func stateThatWasLeftOutIsSentAfterItsPause() async throws {
        let topic = "ble/gateways/hall/status"
        let refusalCount = Mutex(0)
        let broker = try SocketBroker { message in
            guard message.topic == topic else { return .confirm }
            let count = refusalCount.withLock { count in
                count += 1
                return count
            }
            return count <= AnnouncementProgress.refusalLimit ? .endConnection : .confirm
        }
        defer { broker.stop() }
        let time = Mutex(Duration.zero)
        let publisher = try makePublisher(broker) { time.withLock { $0 } }
        func states() -> [String] { broker.messages.filter { $0.topic == topic }.map(\.payload) }
        try await run(publisher) {
            guard broker.connectionCount > AnnouncementProgress.refusalLimit, publisher.status.isConnected else {
                return false
            }
            // The connection was made without the status.
            time.withLock { $0 = AnnouncementProgress.statePause }
            return !states().isEmpty
        }
        #expect(states() == ["online", "offline"])
        #expect(broker.connectionCount == AnnouncementProgress.refusalLimit + 1)
    }

    @Test(.timeLimit(.minutes(5)))
    func onlyTheLastNotificationsWaitForABlockedQueue() async throws {
        struct Notification: Decodable { var sequence: Int }
        let broker = try SocketBroker { _ in .confirm }
        defer { broker.stop() }
        let (block, log) = (QueueBlock(), LogRecorder())
        let publisher = try makePublisher(broker, log) { block.time() }
        var gatewayConfiguration = GatewayConfiguration(name: "hall")
        gatewayConfiguration.servesAPI = false
        let gateway = Gateway(configuration: gatewayConfiguration)
        publisher.takeCommands(gateway.commands)
        func payloads() -> [String] {
            broker.messages.filter { $0.topic == "ble/gateways/hall/notifications" }.map(\.payload)
        }
        try await run(publisher, block) {
            for number in 0..<10_000 {
                let value = [UInt8(number & 0xFF), UInt8(number >> 8)]
                publisher.publish(
                    DeviceNotification(address: 0xC0DE_0000_0001, characteristic: "2A6E", content: .value(value))
                )
            }
        } until: {
            payloads().count >= 1024
        }
        let numbers = try payloads().map { try JSONDecoder().decode(Notification.self, from: Data($0.utf8)).sequence }
        #expect(numbers == Array(8977...10_000))
        #expect(publisher.status.droppedCount == 8976)
        #expect(log.messages(.warning).count { $0.hasPrefix("notifications of devices are dropped") } == 1)
        // Ends the thread of the gateway.
        let end = Task { try await gateway.run() }
        end.cancel()
        try await end.value
    }

    @Test(.timeLimit(.minutes(5)))
    func onlyTheLastFreeConnectionsWaitForABlockedQueue() async throws {
        let broker = try SocketBroker { _ in .confirm }
        defer { broker.stop() }
        let block = QueueBlock()
        let publisher = try makePublisher(broker) { block.time() }
        func payloads() -> [String] {
            broker.messages.filter { $0.topic == "ble/gateways/hall/connections" }.map(\.payload)
        }
        let last = ConnectionSlots(free: 1000, limit: 1000)
        try await run(publisher, block) {
            for free in 0...1000 { publisher.publish(ConnectionSlots(free: free, limit: 1000)) }
        } until: {
            payloads().last == last.json
        }
        #expect(payloads() == [last.json])
    }

    @Test(.timeLimit(.minutes(5)))
    func storeIsTriedAgainAlthoughNoMessageComes() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "publisher-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let path = directory.appending(path: "mqtt.sqlite").path
        let messages = (1...3).map { MQTTMessage(topic: "t", payload: "\($0)") }
        let entries = zip(Int64(1)..., messages).map { MessageStore.Entry(number: $0, message: $1) }
        try MessageStore(path: path).append(entries)
        try execute(refuseRemovals, in: path)
        let broker = try SocketBroker { _ in .confirm }
        defer { broker.stop() }
        let address = try #require(BrokerAddress(parsing: "mqtt://127.0.0.1:\(broker.port)"))
        var configuration = MQTTConfiguration(broker: address, gateway: "hall", logger: LogRecorder().logger)
        configuration.storePath = path
        let publisher = try MQTTPublisher(configuration, checkInterval: .milliseconds(10)) { .zero }
        var isAllowed = false
        try await run(publisher) {
            guard publisher.status.deliveredCount == 3 else { return false }
            guard isAllowed else {
                // The publisher may have locked the file.
                if publisher.status.storeFailure != nil { isAllowed = (try? execute(allowRemovals, in: path)) != nil }
                return false
            }
            return publisher.status.storeFailure == nil && (try? MessageStore(path: path).initialCount) == 0
        }
    }

    @Test func fileThatCannotBeReadIsNamedWithWhatToDo() throws {
        var configuration = MQTTConfiguration(
            broker: try #require(BrokerAddress(parsing: "mqtts://127.0.0.1:1")),
            gateway: "hall",
            logger: LogRecorder().logger
        )
        configuration.authorityPath = "/nowhere/ca.pem"
        let unreadable = configuration
        let error = #expect(throws: MQTTError.self) { _ = try MQTTPublisher(unreadable) }
        #expect(error?.description == "MQTT: /nowhere/ca.pem cannot be read; name a file that this user can read")
    }

    // MARK: Brokers that misbehave

    private func makePublisher(_ broker: SocketBroker, _ log: LogRecorder = LogRecorder()) throws -> MQTTPublisher {
        let address = try #require(BrokerAddress(parsing: "mqtt://127.0.0.1:\(broker.port)"))
        return try MQTTPublisher(MQTTConfiguration(broker: address, gateway: "hall", logger: log.logger))
    }

    /// A publisher that checks often, with a time of its own.
    private func makePublisher(
        _ broker: SocketBroker,
        _ log: LogRecorder = LogRecorder(),
        timeSinceStart: @escaping @Sendable () -> Duration
    ) throws -> MQTTPublisher {
        let address = try #require(BrokerAddress(parsing: "mqtt://127.0.0.1:\(broker.port)"))
        return try MQTTPublisher(
            MQTTConfiguration(broker: address, gateway: "hall", logger: log.logger),
            checkInterval: .milliseconds(10),
            timeSinceStart: timeSinceStart
        )
    }

    /// Publishes until a condition is true. The limit of the test's time ends the wait otherwise.
    private func run(_ publisher: MQTTPublisher, until condition: () -> Bool) async throws {
        let run = Task { try await publisher.run() }
        while !condition() { try await Task.sleep(for: .milliseconds(5)) }
        run.cancel()
        try await run.value
    }

    /// Calls `publish` while the queue is blocked, and then publishes until a condition is true.
    private func run(
        _ publisher: MQTTPublisher,
        _ block: QueueBlock,
        publish: () -> Void,
        until condition: () -> Bool
    ) async throws {
        var (isRequested, isPublished) = (false, false)
        try await run(publisher) {
            guard publisher.status.isConnected else { return false }
            if !isRequested { block.request() }
            isRequested = true
            guard block.isBlocked else { return false }
            if !isPublished {
                publish()
                block.end()
            }
            isPublished = true
            return condition()
        }
    }

    /// The broker notices that an earlier connection was lost, and publishes its will.
    @Test(.timeLimit(.minutes(5)))
    func willOfAnEarlierConnectionIsCorrected() async throws {
        let topic = "ble/gateways/hall/status"
        let isFirst = Atomic(true)
        let broker = try SocketBroker { message in
            guard message.topic == topic, isFirst.exchange(false, ordering: .relaxed) else { return .confirm }
            return .confirmAndSend(SocketBroker.Message(topic: topic, payload: "offline"))
        }
        defer { broker.stop() }
        func states() -> [String] { broker.messages.filter { $0.topic == topic }.map(\.payload) }
        try await run(makePublisher(broker)) { states().count >= 2 }
        // The gateway does not answer its own last message.
        #expect(states() == ["online", "online", "offline"])
    }

    @Test(.timeLimit(.minutes(5)), arguments: ["ble/gateways/hall/status", "homeassistant/status"])
    func refusedSubscriptionIsNamedInTheLog(topic: String) async throws {
        let broker = try SocketBroker(refusedTopic: topic) { _ in .confirm }
        defer { broker.stop() }
        let log = LogRecorder()
        func refusals() -> [String] { log.messages(.warning).filter { $0.contains("refuses the subscription") } }
        try await run(makePublisher(broker, log)) { !refusals().isEmpty }
        #expect(
            refusals() == ["the broker refuses the subscription to \(topic); allow this user to read the topic"]
        )
    }

    @Test(.timeLimit(.minutes(5)))
    func messageThatTheBrokerRefusesDoesNotBlockLaterOnes() async throws {
        let broker = try SocketBroker { $0.payload.utf8.count > 10_000 ? .endConnection : .confirm }
        defer { broker.stop() }
        let log = LogRecorder()
        let publisher = try makePublisher(broker, log)
        var large = observation(0)
        large.name = String(repeating: "x", count: 10_000)
        publisher.publish(large)
        for number in UInt64(1)..<100 { publisher.publish(observation(number)) }
        func readings() -> [String] { broker.messages.map(\.topic).filter { $0.hasPrefix("ble/sensors/") } }
        try await run(publisher) { readings().count >= 99 }
        #expect(readings().count == 99 && readings() == readings().sorted())
        #expect(publisher.status.droppedCount == 1)
        #expect(log.lines.count { $0.hasPrefix("error: a message is dropped") } == 1)
    }

    @Test(.timeLimit(.minutes(5)))
    func announcementThatTheBrokerRefusesDoesNotBlockReadings() async throws {
        let broker = try SocketBroker { $0.topic.hasPrefix("homeassistant/") ? .endConnection : .confirm }
        defer { broker.stop() }
        let log = LogRecorder()
        let publisher = try makePublisher(broker, log)
        func readings() -> [String] { broker.messages.map(\.topic).filter { $0.hasPrefix("ble/sensors/") } }
        func hasGivenUp() -> Bool { log.lines.contains { $0.contains("Home Assistant, which are not sent for a day") } }
        var polls: UInt64 = 0
        try await run(publisher) {
            // The gateway keeps 4,096 readings while it is not connected.
            if polls.isMultiple(of: 10) {
                var next = observation(polls)
                next.report.readings = [SensorReading(.temperature, .number(21.5), unit: "°C")]
                publisher.publish(next)
            }
            polls += 1
            return hasGivenUp() && readings().count >= 100
        }
        // A reading whose confirmation was on its way when the connection ended comes twice.
        var known: Set<String> = []
        let first = readings().filter { known.insert($0).inserted }
        #expect(first == first.sorted())
        #expect(publisher.status.droppedCount == 0)
    }
}
