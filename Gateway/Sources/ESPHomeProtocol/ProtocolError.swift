/// The way in which a client broke the protocol. Each one ends its connection.
public enum ProtocolError: Error, Hashable, Sendable {
    /// A frame begins with a byte other than that of the session's kind.
    case wrongIndicator(UInt8)
    /// A number takes more bytes than it may.
    case malformedNumber
    /// A frame is longer than ``FrameLimits/maximumLength``.
    case oversizedFrame(Int)
    /// A message of the handshake is malformed; the text says how.
    case malformedHandshake(String)
    /// The first message of the handshake was not encrypted with the pre-shared key.
    case wrongKey
    /// A frame was not encrypted with the session's key, or is not the next one.
    case failedDecryption
    /// An encrypted frame has no complete header.
    case malformedFrame
    /// The payload of a message is not valid.
    case undecodableMessage(MessageType)
    /// A request came before Hello.
    case requestBeforeHello(MessageType)
}

extension ProtocolError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .wrongIndicator(let byte): "a frame begins with \(byte)"
        case .malformedNumber: "a number in a frame is too long"
        case .oversizedFrame(let length):
            "a frame has \(length) bytes; at most \(FrameLimits.maximumLength) are accepted"
        case .malformedHandshake(let text): "malformed handshake: \(text)"
        case .wrongKey: "the client has another encryption key"
        case .failedDecryption: "a frame could not be decrypted"
        case .malformedFrame: "an encrypted frame has no complete header"
        case .undecodableMessage(let type): "message \(type.rawValue) could not be decoded"
        case .requestBeforeHello(let type): "message \(type.rawValue) came before Hello"
        }
    }
}

/// The lengths that are accepted from clients.
public enum FrameLimits {
    /// The longest frame in bytes, without its header. The longest request of a client writes a value of 512 bytes.
    public static let maximumLength = 32 * 1024
    /// The longest payload that can be sent, in bytes: an encrypted frame has 16 bits for its length, and 4 bytes of
    /// header and 16 bytes of tag in it.
    public static let maximumSentPayload = 65_515
}
