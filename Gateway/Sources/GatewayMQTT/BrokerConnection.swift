import CMosquitto
import Foundation
import Synchronization

/// One connection to a broker, by libmosquitto. It is not made again: libmosquitto would send unconfirmed messages
/// again by itself, in an order that later messages do not respect.
final class BrokerConnection: Sendable {
    enum Event: Sendable {
        /// The broker has accepted the connection.
        case accepted
        /// The broker has refused the connection.
        case refused(reason: String)
        /// The broker has taken the message with this number.
        case delivered(Int32)
        /// The broker has answered the subscription with this number.
        case subscribed(Int32, isGranted: Bool)
        case received(MQTTReception)
    }

    private static let keepAliveInSeconds: Int32 = 30
    /// How long the thread waits for packets before it looks at the time. Messages to send end the wait.
    private static let turnInMilliseconds: Int32 = 1000
    private static let initialized = mosquitto_lib_init()

    // libmosquitto locks its connections.
    nonisolated(unsafe) private let connection: OpaquePointer
    private let broker: BrokerAddress
    private let handle: @Sendable (Event) -> Void

    /// - Parameters:
    ///   - session: the name of a session that the broker keeps; nil for one that ends with the connection.
    ///   - will: the message that the broker publishes when the connection is lost; nil for none.
    ///   - handle: is called on the thread of ``loop()``.
    init(
        _ configuration: MQTTConfiguration,
        session: String? = nil,
        will: MQTTMessage?,
        handle: @escaping @Sendable (Event) -> Void
    ) throws(MQTTError) {
        _ = Self.initialized
        let identifier = session ?? "ble-gateway-\(configuration.gateway)-\(UInt32.random(in: 0...UInt32.max))"
        guard let connection = mosquitto_new(identifier, session == nil, nil) else {
            throw MQTTError("MQTT: there is no memory")
        }
        self.connection = connection
        self.handle = handle
        broker = configuration.broker
        mosquitto_threaded_set(connection, true)
        // The outbox bounds the messages that are sent and not confirmed.
        mosquitto_max_inflight_messages_set(connection, 0)
        if let will {
            try Self.check(
                mosquitto_will_set(connection, will.topic, Int32(will.payload.utf8.count), will.payload, 1, true),
                "the topic \"\(will.topic)\" cannot be used"
            )
        }
        if let user = configuration.broker.user {
            try Self.check(
                mosquitto_username_pw_set(connection, user, configuration.password),
                "the user's name cannot be used"
            )
        }
        if configuration.broker.usesTLS { try setTLS(configuration) }
        setCallbacks()
    }

    deinit { mosquitto_destroy(connection) }

    private func setTLS(_ configuration: MQTTConfiguration) throws(MQTTError) {
        for path in [configuration.authorityPath, configuration.certificatePath, configuration.privateKeyPath] {
            if let path, !FileManager.default.isReadableFile(atPath: path) {
                throw MQTTError("MQTT: \(path) cannot be read; name a file that this user can read")
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
        // Callbacks come from `loop()` only, whose caller has a reference.
        mosquitto_user_data_set(connection, Unmanaged.passUnretained(self).toOpaque())
        mosquitto_connect_callback_set(connection) { _, pointer, code in
            let reason = code == 0 ? nil : String(cString: mosquitto_connack_string(code))
            BrokerConnection.of(pointer)?.handle(reason.map { .refused(reason: $0) } ?? .accepted)
        }
        mosquitto_publish_callback_set(connection) { _, pointer, number in
            BrokerConnection.of(pointer)?.handle(.delivered(number))
        }
        mosquitto_subscribe_callback_set(connection) { _, pointer, number, count, levels in
            // A refusal is the level 128.
            let isGranted = (0..<Int(max(0, count))).allSatisfy { (levels?[$0] ?? 128) <= 2 }
            BrokerConnection.of(pointer)?.handle(.subscribed(number, isGranted: isGranted))
        }
        mosquitto_message_callback_set(connection) { _, pointer, message in
            guard let message = message?.pointee, let reception = MQTTReception(message) else { return }
            BrokerConnection.of(pointer)?.handle(.received(reception))
        }
    }

    private static func of(_ pointer: UnsafeMutableRawPointer?) -> BrokerConnection? {
        pointer.map { Unmanaged<BrokerConnection>.fromOpaque($0).takeUnretainedValue() }
    }

    // MARK: Packets

    /// Connects. It may wait for the network for minutes.
    ///
    /// - Returns: the reason of a failure.
    func connect() -> String? {
        let code = mosquitto_connect(connection, broker.host, Int32(broker.port), Self.keepAliveInSeconds)
        return code == MOSQ_ERR_SUCCESS.code ? nil : Self.text(of: code)
    }

    /// Receives and sends packets for about a second at most.
    ///
    /// - Returns: the reason why the connection has ended; nil if it has not.
    func loop() -> String? {
        let code = mosquitto_loop(connection, Self.turnInMilliseconds, 1)
        return code == MOSQ_ERR_SUCCESS.code ? nil : Self.text(of: code)
    }

    /// Disconnects after the messages that were given before.
    func disconnect() {
        mosquitto_disconnect(connection)
    }

    /// Ends the connection at once. Confirmations that were not sent yet are not sent: libmosquitto sends that of a
    /// message after the handler has returned, on the thread of ``loop()``.
    func abort() {
        let socket = mosquitto_socket(connection)
        if socket >= 0 { shutdown(socket, Int32(SHUT_RDWR)) }
    }

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
        // A message that cannot be sent because the connection was lost is in libmosquitto's queue, which ends with it.
        let isTaken = [MOSQ_ERR_SUCCESS.code, MOSQ_ERR_NO_CONN.code, MOSQ_ERR_CONN_LOST.code].contains(code)
        return isTaken && number != 0 ? number : nil
    }

    /// Receives the messages of a topic.
    ///
    /// - Returns: the number with which the answer is reported; nil if the connection does not take the subscription.
    func subscribe(to topic: String) -> Int32? {
        var number: Int32 = 0
        return mosquitto_subscribe(connection, &number, topic, 1) == MOSQ_ERR_SUCCESS.code ? number : nil
    }

    /// Ends the subscription to a topic.
    func unsubscribe(from topic: String) { mosquitto_unsubscribe(connection, nil, topic) }
}

/// A message from the broker.
struct MQTTReception: Sendable {
    /// The greatest size of a message that is looked at, in bytes.
    static let sizeLimit = 16_384

    let topic: String
    /// The content; nil if it is larger than ``sizeLimit``.
    let payload: [UInt8]?
    /// Whether the broker had kept the message from before.
    let isRetained: Bool

    init(topic: String, payload: [UInt8]?, isRetained: Bool) {
        self.topic = topic
        self.payload = payload
        self.isRetained = isRetained
    }

    fileprivate init?(_ message: mosquitto_message) {
        guard let topic = message.topic else { return nil }
        self.topic = String(cString: topic)
        let count = Int(message.payloadlen)
        payload =
            count <= Self.sizeLimit ? Array(UnsafeRawBufferPointer(start: message.payload, count: count)) : nil
        isRetained = message.retain
    }
}

extension mosq_err_t {
    fileprivate var code: Int32 { Int32(rawValue) }
}
