import ATT
import BluetoothTypes

/// An access to a value that is the app's to give or take.
public struct AccessRequest: Hashable, Sendable {
    /// Pairs the app's answer with the request.
    public let identifier: UInt64
    public let kind: Kind

    public enum Kind: Hashable, Sendable {
        /// The value from an offset on is asked for; what does not fit the PDU is left out.
        case read(AttributeHandle, offset: Int)
        /// A value is written; a command is not answered.
        case write(AttributeWrite, isCommand: Bool)
        /// Values that were prepared are written, all or none, in this order.
        case execute([AttributeWrite])
    }
}

/// A value, or a part of one, that a client writes.
public struct AttributeWrite: Hashable, Sendable {
    public let handle: AttributeHandle
    public let offset: Int
    public let value: [UInt8]

    public init(handle: AttributeHandle, offset: Int, value: [UInt8]) {
        self.handle = handle
        self.offset = offset
        self.value = value
    }
}

/// An access that needs the app's consent for its client (Vol 3, Part C, 10.5).
public struct AuthorizationRequest: Hashable, Sendable {
    /// Pairs the app's answer with the request.
    public let identifier: UInt64
    public let handle: AttributeHandle
    public let isWrite: Bool
}

/// A signed write whose signature is to be verified before anything is done with it (Vol 3, Part H, 2.4.5).
public struct SignedWrite: Hashable, Sendable {
    /// What is signed: the PDU up to the signature.
    public let message: [UInt8]
    /// 12 octets: the sign counter, then the MAC.
    public let signature: [UInt8]
}

/// What a signature that is right is worth.
public enum SignatureStrength: Hashable, Sendable {
    /// The key was distributed by a pairing in which somebody can have stood between.
    case unauthenticated
    case authenticated
}

/// What clients do that an app may want to know.
public enum ServerEvent: Hashable, Sendable {
    case read(AttributeHandle, offset: Int)
    case written(AttributeWrite, isCommand: Bool)
    /// What a client wants to be sent of the characteristic whose value has this handle, before and now.
    case configured(AttributeHandle, from: ClientConfiguration, to: ClientConfiguration)
}

/// What a ``ServerSession`` puts out beside its responses; see ``ServerSession/takeOutput()``.
public enum ServerOutput: Hashable, Sendable {
    /// The client did something. Only where ``ServerSession/reportsEvents`` is set.
    case event(ServerEvent)
    /// ``ServerSession/persistentState`` has changed by what the client did.
    case persistentStateChanged
}

/// What the owner does after a PDU.
public enum ServerAction: Hashable, Sendable {
    /// Send the response that was written.
    case respond
    /// There is nothing to send.
    case nothing
    /// Ask the app; its answer goes to ``ServerSession/complete(_:with:into:)``.
    case access(AccessRequest)
    /// Ask the app whether this client may; its answer goes to ``ServerSession/complete(_:isAuthorized:into:)``.
    case authorize(AuthorizationRequest)
    /// Verify a signature; where it is right, the write goes to ``ServerSession/receiveVerified(_:_:)``.
    case verify(SignedWrite)
}
