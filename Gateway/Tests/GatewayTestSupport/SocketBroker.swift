import Foundation
import Synchronization

/// A broker of MQTT 3.1.1 for one client, which decides about each message.
package final class SocketBroker: Sendable {
    package struct Message: Equatable, Sendable {
        package var topic: String
        package var payload: String

        package init(topic: String, payload: String) {
            self.topic = topic
            self.payload = payload
        }
    }

    /// What the broker does with a message of the client.
    package enum Answer: Sendable {
        case confirm
        /// Takes the message, and never confirms it.
        case ignore
        /// Confirms the message, and sends another one to the client.
        case confirmAndSend(Message)
        case endConnection
    }

    package let port: UInt16
    private let listener: Int32
    private let refusedTopic: String?
    private let answer: @Sendable (Message) -> Answer
    private let confirmed = Mutex<[Message]>([])
    private let connections = Mutex(0)

    /// The messages that were confirmed, in their order.
    package var messages: [Message] { confirmed.withLock { $0 } }
    /// The number of connections that were made.
    package var connectionCount: Int { connections.withLock { $0 } }

    /// - Parameters:
    ///   - refusedTopic: the topic to which no client can subscribe; nil for none.
    ///   - answer: decides about a message.
    package init(refusedTopic: String? = nil, answer: @escaping @Sendable (Message) -> Answer) throws {
        self.refusedTopic = refusedTopic
        self.answer = answer
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        self.listener = listener
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, size) == 0 && listen(listener, 8) == 0
                    && getsockname(listener, address, &size) == 0
            }
        }
        guard isBound else { throw POSIXError(.EADDRNOTAVAIL) }
        port = UInt16(bigEndian: address.sin_port)
        Thread { [self] in
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else { return }
                connections.withLock { $0 += 1 }
                serve(connection)
                close(connection)
            }
        }.start()
    }

    package func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    /// Answers packets until the connection ends.
    private func serve(_ connection: Int32) {
        while let (kind, content) = readPacket(connection) {
            switch kind >> 4 {
            case 1: send([0x20, 2, 0, 0], to: connection)
            case 3 where kind & 0x06 != 0:
                let topicEnd = 2 + (Int(content[0]) << 8 | Int(content[1]))
                let message = Message(
                    topic: String(decoding: content[2..<topicEnd], as: UTF8.self),
                    payload: String(decoding: content[(topicEnd + 2)...], as: UTF8.self)
                )
                let answer = answer(message)
                if case .endConnection = answer { return }
                if case .ignore = answer { continue }
                confirmed.withLock { $0.append(message) }
                send([0x40, 2] + content[topicEnd..<(topicEnd + 2)], to: connection)
                if case .confirmAndSend(let other) = answer { send(packet(other), to: connection) }
            case 8:
                let topicEnd = 4 + (Int(content[2]) << 8 | Int(content[3]))
                let topic = String(decoding: content[4..<topicEnd], as: UTF8.self)
                let code: UInt8 = topic == refusedTopic ? 0x80 : 1
                send([0x90, 3] + content[0..<2] + [code], to: connection)
            case 12: send([0xD0, 0], to: connection)
            default: break
            }
        }
    }

    /// A short message for the client, with at-most-once delivery (QoS 0).
    private func packet(_ message: Message) -> [UInt8] {
        let topic = Array(message.topic.utf8)
        let content = [0, UInt8(topic.count)] + topic + Array(message.payload.utf8)
        return [0x30, UInt8(content.count)] + content
    }

    private func readPacket(_ connection: Int32) -> (kind: UInt8, content: [UInt8])? {
        guard let kind = readBytes(1, connection)?[0] else { return nil }
        var length = 0
        for shift in stride(from: 0, through: 21, by: 7) {
            guard let byte = readBytes(1, connection)?[0] else { return nil }
            length |= Int(byte & 0x7F) << shift
            if byte & 0x80 == 0 { break }
        }
        return readBytes(length, connection).map { (kind, $0) }
    }

    private func readBytes(_ count: Int, _ connection: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var received = 0
        while received < count {
            let size = bytes.withUnsafeMutableBytes {
                recv(connection, $0.baseAddress! + received, count - received, 0)
            }
            guard size > 0 else { return nil }
            received += size
        }
        return bytes
    }

    private func send(_ bytes: [UInt8], to connection: Int32) {
        _ = Foundation.send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }
}
