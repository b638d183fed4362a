import Synchronization

/// A session at a broker, for programs that receive messages or publish their own.
///
/// With a name, the broker keeps the session: messages that arrive while the program is away wait for it.
package final class MQTTSession: Sendable {
    /// What happens to a session.
    package enum Event: Sendable {
        /// The broker can be used. Subscriptions must be made again; retained messages come again then.
        case connected
        /// The connection was lost or could not be made. It is made again. Messages that were published and not
        /// delivered are forgotten.
        case disconnected(reason: String)
        /// The broker has taken the message with this number.
        case delivered(Int32)
        /// The broker has answered the subscription with this number.
        case subscribed(Int32, isGranted: Bool)
    }

    /// A message from the broker.
    package struct Reception: Sendable {
        /// The greatest size of a payload, in bytes.
        package static var sizeLimit: Int { MQTTReception.sizeLimit }

        /// The topic.
        package let topic: String
        /// The content; nil if it is larger than ``sizeLimit``.
        package let payload: [UInt8]?
        /// Whether the broker had kept the message from before the subscription.
        package let isRetained: Bool
    }

    private struct Current {
        /// The connection; nil while the session is not connected.
        var connection: BrokerConnection?
        /// The number of connections that were made.
        var number: UInt64 = 0
    }

    /// The longest time that ``stop()`` takes.
    package static let longestEnd = Duration.seconds(MQTTClient.stopTimeout)

    private let receive: @Sendable (Reception) -> Bool
    private let handle: @Sendable (Event) -> Void
    private let client = Mutex<MQTTClient?>(nil)
    private let current = Mutex(Current())

    /// Creates a session.
    ///
    /// - Parameters:
    ///   - configuration: the broker. The topics and the store of the configuration are not used.
    ///   - name: the name by which the broker knows the session, which one program at a time can use; nil for a session
    ///     that ends with the connection.
    ///   - receive: is called on the session's thread with each message. The broker is told that the message has
    ///     arrived after it has returned true. If it returns false, the connection ends, and the message comes again.
    ///   - handle: is called on the session's thread with each event.
    /// - Throws: ``MQTTError`` if the configuration cannot be used.
    package init(
        _ configuration: MQTTConfiguration,
        name: String?,
        receive: @escaping @Sendable (Reception) -> Bool,
        handle: @escaping @Sendable (Event) -> Void
    ) throws(MQTTError) {
        self.receive = receive
        self.handle = handle
        let client = try MQTTClient(configuration, session: name, will: nil) { [weak self] event in self?.pass(event) }
        self.client.withLock { $0 = client }
    }

    private func pass(_ event: MQTTClient.Event) {
        switch event {
        case .connected(let new):
            current.withLock { current in
                current.connection = new
                current.number += 1
            }
            handle(.connected)
        case .disconnected(let reason):
            current.withLock { $0.connection = nil }
            handle(.disconnected(reason: reason))
        case .delivered(let number): handle(.delivered(number))
        case .subscribed(let number, let isGranted): handle(.subscribed(number, isGranted: isGranted))
        case .received(let reception):
            let reception = Reception(
                topic: reception.topic,
                payload: reception.payload,
                isRetained: reception.isRetained
            )
            guard !receive(reception) else { return }
            client.withLock { $0 }?.abortConnection()
        }
    }

    /// Connects, and connects again whenever the connection is lost, until ``stop()``. To be called once.
    package func start() { client.withLock { $0 }?.start() }

    /// Disconnects after the messages that are being sent. Blocks for up to ``longestEnd``.
    package func stop() { client.withLock { $0 }?.stop() }

    /// Ends the connection at once, and makes a new one after a pause.
    package func reconnect() { client.withLock { $0 }?.abortConnection() }

    /// Subscribes to topics with at-least-once delivery (QoS 1). The filter may have wildcards.
    ///
    /// - Returns: the number with which the answer is reported; nil if the session is not connected.
    package func subscribe(to filter: String) -> Int32? { current.withLock(\.connection)?.subscribe(to: filter) }

    /// The number of the last connection: that of the first is 1; 0 if there was none. During the call with
    /// ``Event/connected``, it is the number of that connection.
    package var connectionNumber: UInt64 { current.withLock(\.number) }

    /// Publishes a message with at-least-once delivery (QoS 1) on a connection, and on no later one.
    ///
    /// - Parameters:
    ///   - message: the message to publish.
    ///   - number: the number of the connection; see ``connectionNumber``.
    /// - Returns: the number with which the delivery is reported; nil if the session has lost the connection.
    package func publish(_ message: MQTTMessage, on number: UInt64) -> Int32? {
        current.withLock { $0.number == number ? $0.connection : nil }?.publish(message)
    }
}
