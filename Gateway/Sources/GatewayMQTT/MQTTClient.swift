import CMosquitto
import Foundation
import Synchronization

/// A connection to a broker that is made again whenever it is lost, by libmosquitto on a thread of its own.
final class MQTTClient: Sendable {
    enum Event: Sendable {
        case connected
        /// The connection was lost or could not be made.
        case disconnected(reason: String)
        /// The broker has taken the message with this number.
        case delivered(Int32)
        case received(topic: String, payload: String)
    }

    /// What callbacks of libmosquitto find.
    private final class Receiver: Sendable {
        let handle: @Sendable (Event) -> Void
        init(_ handle: @escaping @Sendable (Event) -> Void) { self.handle = handle }

        static func of(_ pointer: UnsafeMutableRawPointer?) -> Receiver? {
            pointer.map { Unmanaged<Receiver>.fromOpaque($0).takeUnretainedValue() }
        }
    }

    private static let keepAliveInSeconds: Int32 = 30
    /// How long the thread waits for packets before it looks at the time. Messages to send end the wait.
    private static let turnInMilliseconds: Int32 = 1000
    private static let longestPause = 60
    /// How long the last messages may take.
    private static let stopTimeout = DispatchTimeInterval.seconds(2)
    private static let initialized = mosquitto_lib_init()

    // libmosquitto locks its connections.
    nonisolated(unsafe) private let connection: OpaquePointer
    private let receiver: Receiver
    private let connector: Connector
    private let isStarted = Atomic(false)
    private let ended = DispatchSemaphore(value: 0)

    /// - Parameters:
    ///   - will: the message that the broker publishes when the connection is lost.
    ///   - handle: is called on the client's thread with each event.
    init(
        _ configuration: MQTTConfiguration,
        will: MQTTMessage,
        handle: @escaping @Sendable (Event) -> Void
    ) throws(MQTTError) {
        _ = Self.initialized
        receiver = Receiver(handle)
        guard
            let connection = mosquitto_new(
                "ble-gateway-\(configuration.gateway)-\(UInt32.random(in: 0...UInt32.max))",
                true,
                Unmanaged.passUnretained(receiver).toOpaque()
            )
        else { throw MQTTError("MQTT: there is no memory") }
        self.connection = connection
        connector = Connector(connection, configuration.broker, receiver)
        mosquitto_threaded_set(connection, true)
        try Self.check(
            mosquitto_will_set(connection, will.topic, Int32(will.payload.utf8.count), will.payload, 1, true),
            "the topic \"\(will.topic)\" cannot be used"
        )
        if let user = configuration.broker.user {
            try Self.check(
                mosquitto_username_pw_set(connection, user, configuration.password),
                "the user's name cannot be used"
            )
        }
        if configuration.broker.usesTLS { try setTLS(configuration) }
        setCallbacks()
    }

    deinit {
        if isStarted.load(ordering: .acquiring) { stop() }
        mosquitto_destroy(connection)
    }

    private func setTLS(_ configuration: MQTTConfiguration) throws(MQTTError) {
        for path in [configuration.authorityPath, configuration.certificatePath, configuration.privateKeyPath] {
            if let path, !FileManager.default.isReadableFile(atPath: path) {
                throw MQTTError("MQTT: \(path) cannot be read")
            }
        }
        let systemDirectory = configuration.authorityPath == nil ? "/etc/ssl/certs" : nil
        try Self.check(
            mosquitto_tls_set(
                connection,
                configuration.authorityPath,
                systemDirectory,
                configuration.certificatePath,
                configuration.privateKeyPath,
                nil
            ),
            "the certificates cannot be used"
        )
    }

    private static func check(_ code: Int32, _ problem: String) throws(MQTTError) {
        guard code != MOSQ_ERR_SUCCESS.code else { return }
        throw MQTTError("MQTT: \(problem): \(text(of: code))")
    }

    private static func text(of code: Int32) -> String {
        code == MOSQ_ERR_ERRNO.code ? String(cString: strerror(errno)) : String(cString: mosquitto_strerror(code))
    }

    private func setCallbacks() {
        mosquitto_connect_callback_set(connection) { _, receiver, code in
            let event: Event =
                code == 0 ? .connected : .disconnected(reason: String(cString: mosquitto_connack_string(code)))
            Receiver.of(receiver)?.handle(event)
        }
        mosquitto_publish_callback_set(connection) { _, receiver, number in
            Receiver.of(receiver)?.handle(.delivered(number))
        }
        mosquitto_message_callback_set(connection) { _, receiver, message in
            guard let message = message?.pointee, let topic = message.topic else { return }
            let payload = UnsafeRawBufferPointer(start: message.payload, count: Int(message.payloadlen))
            Receiver.of(receiver)?.handle(
                .received(topic: String(cString: topic), payload: String(decoding: payload, as: UTF8.self))
            )
        }
    }

    // MARK: The thread

    /// Connects, and connects again whenever the connection is lost, until ``stop()``. To be called once.
    func start() {
        isStarted.store(true, ordering: .releasing)
        let thread = Thread { [connector, ended] in
            connector.run()
            ended.signal()
        }
        thread.name = "mqtt"
        thread.start()
    }

    /// The work of the thread. It does not keep the client, which waits for its end.
    private final class Connector: Sendable {
        nonisolated(unsafe) private let connection: OpaquePointer
        private let broker: BrokerAddress
        private let receiver: Receiver
        private let isStopping = Atomic(false)
        private let pause = DispatchSemaphore(value: 0)

        init(_ connection: OpaquePointer, _ broker: BrokerAddress, _ receiver: Receiver) {
            self.connection = connection
            self.broker = broker
            self.receiver = receiver
        }

        /// Connects, and again after each loss, until ``stop()``.
        func run() {
            var failureCount = 0
            while !isStopping.load(ordering: .acquiring) {
                var code = mosquitto_connect(connection, broker.host, Int32(broker.port), keepAliveInSeconds)
                var deadline: DispatchTime?
                while code == MOSQ_ERR_SUCCESS.code {
                    if isStopping.load(ordering: .acquiring) {
                        // What was published last is still sent, unless the network holds it up.
                        deadline = deadline ?? .now() + stopTimeout
                        if let deadline, .now() >= deadline { break }
                    }
                    code = mosquitto_loop(connection, turnInMilliseconds, 1)
                    if code == MOSQ_ERR_SUCCESS.code { failureCount = 0 }
                }
                if isStopping.load(ordering: .acquiring) { break }
                receiver.handle(.disconnected(reason: text(of: code)))
                _ = pause.wait(timeout: .now() + .seconds(min(1 << min(failureCount, 6), longestPause)))
                failureCount += 1
            }
        }

        /// Makes ``run()`` end soon.
        ///
        /// - Returns: false if that was already requested.
        func stop() -> Bool {
            guard !isStopping.exchange(true, ordering: .acquiringAndReleasing) else { return false }
            mosquitto_disconnect(connection)
            pause.signal()
            return true
        }
    }

    /// Disconnects after the messages that are being sent, and waits for the end of the thread.
    func stop() {
        guard connector.stop() else { return }
        if isStarted.load(ordering: .acquiring) { ended.wait() }
    }

    // MARK: Messages

    /// Gives a message to the connection with at-least-once delivery (QoS 1).
    ///
    /// - Returns: the number with which the delivery is reported; nil if the connection does not take the message.
    func publish(_ message: MQTTMessage) -> Int32? {
        var number: Int32 = 0
        let count = Int32(message.payload.utf8.count)
        let code = mosquitto_publish(
            connection,
            &number,
            message.topic,
            count,
            message.payload,
            1,
            message.isRetained
        )
        return code == MOSQ_ERR_SUCCESS.code ? number : nil
    }

    func subscribe(to topic: String) {
        mosquitto_subscribe(connection, nil, topic, 1)
    }
}

extension mosq_err_t {
    fileprivate var code: Int32 { Int32(rawValue) }
}
