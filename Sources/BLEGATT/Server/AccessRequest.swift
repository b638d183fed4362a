import BLEATT
import BluetoothTypes

/// An access to a value that the app supplies or accepts.
public struct AccessRequest: Hashable, Sendable {
    /// Matches the app's answer to the request.
    public let identifier: UInt64
    /// The access.
    public let kind: Kind

    /// The kind of an access.
    public enum Kind: Hashable, Sendable {
        /// The client reads the value from an offset on. Bytes that do not fit the PDU are left out, and so are those
        /// beyond the first 512 bytes of the value.
        case read(AttributeHandle, offset: Int)
        /// A value is written; a command is not answered.
        case write(AttributeWrite, isCommand: Bool)
        /// Prepared values are written, all or none, in this order.
        case execute([AttributeWrite])
    }
}

/// A value, or a part of one, that a client writes.
public struct AttributeWrite: Hashable, Sendable {
    /// The handle of the attribute.
    public let handle: AttributeHandle
    /// The offset of the part in the value, in bytes.
    public let offset: Int
    /// The bytes.
    public let value: [UInt8]

    /// Creates a write.
    public init(handle: AttributeHandle, offset: Int, value: [UInt8]) {
        self.handle = handle
        self.offset = offset
        self.value = value
    }
}

/// An access that needs the app's consent for its client (Vol 3, Part C, 10.5).
public struct AuthorizationRequest: Hashable, Sendable {
    /// Matches the app's answer to the request.
    public let identifier: UInt64
    /// The handle of the attribute.
    public let handle: AttributeHandle
    /// Whether the client writes. If false, it reads.
    public let isWrite: Bool
}

/// A signed write. Its signature must be verified before the write has any effect (Vol 3, Part H, 2.4.5).
public struct SignedWrite: Hashable, Sendable {
    /// The signed bytes: the PDU up to the signature.
    public let message: [UInt8]
    /// 12 bytes: the sign counter, then the MAC.
    public let signature: [UInt8]
    /// The revision of the database at the arrival of the write.
    let revision: UInt64
}

/// The security level of a valid signature.
public enum SignatureStrength: Hashable, Sendable {
    /// The key was distributed by a pairing without protection against a man in the middle.
    case unauthenticated
    /// The key was distributed by a pairing with protection against a man in the middle.
    case authenticated
}

/// An action of a client that may interest the app.
public enum ServerEvent: Hashable, Sendable {
    /// A value was read, from an offset in bytes.
    case read(AttributeHandle, offset: Int)
    /// A value was written. A command has no response.
    case written(AttributeWrite, isCommand: Bool)
    /// The configuration of the characteristic whose value has this handle has changed.
    case configured(AttributeHandle, from: ClientConfiguration, to: ClientConfiguration)
}

/// An output of a ``ServerSession`` besides its responses; see ``ServerSession/takeOutput()``.
public enum ServerOutput: Hashable, Sendable {
    /// The client did something. The session puts this out only if ``ServerSession/reportsEvents`` is set.
    case event(ServerEvent)
    /// The client has changed ``ServerSession/persistentState``.
    case persistentStateChanged
}

/// The owner's next action after a PDU.
public enum ServerAction: Hashable, Sendable {
    /// Send the response that was written.
    case respond
    /// There is nothing to send.
    case nothing
    /// Ask the app; its answer goes to ``ServerSession/complete(_:with:into:)``.
    case access(AccessRequest)
    /// Ask the app whether it authorizes this client; its answer goes to
    /// ``ServerSession/complete(_:isAuthorized:into:)``.
    case authorize(AuthorizationRequest)
    /// Verify a signature; if it is valid, the write goes to ``ServerSession/receiveVerified(_:_:)``.
    case verify(SignedWrite)
}
