import NIOCore
import SwiftProtobuf

/// A message with its type, encoded but not framed.
public struct Message: Hashable, Sendable {
    /// The type of the message.
    public let type: MessageType
    /// The message as Protocol Buffers encode it.
    public let payload: ByteBuffer

    /// Creates a message from its encoded form.
    public init(_ type: MessageType, payload: ByteBuffer = ByteBuffer()) {
        self.type = type
        self.payload = payload
    }

    /// Encodes a message.
    public init(_ type: MessageType, _ message: some SwiftProtobuf.Message) {
        // Encoding fails only for proto2 messages without required fields.
        let bytes: [UInt8] = (try? message.serializedBytes()) ?? []
        self.init(type, payload: ByteBuffer(bytes: bytes))
    }

    /// Decodes the message.
    ///
    /// - Throws: ``ProtocolError/undecodableMessage(_:)``.
    public func decode<Decoded: SwiftProtobuf.Message>(as type: Decoded.Type) throws(ProtocolError) -> Decoded {
        do {
            return try Decoded(serializedBytes: Array(payload.readableBytesView))
        } catch {
            throw .undecodableMessage(self.type)
        }
    }
}
