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

/// What clients do that an app may want to know.
public enum ServerEvent: Hashable, Sendable {
    case read(AttributeHandle, offset: Int)
    case written(AttributeWrite, isCommand: Bool)
    /// What a client wants to be sent of the characteristic whose value has this handle, before and now.
    case configured(AttributeHandle, from: ClientConfiguration, to: ClientConfiguration)
}

/// What the owner does after a PDU.
public enum ServerAction: Hashable, Sendable {
    /// Send the response that was written.
    case respond
    /// There is nothing to send.
    case nothing
    /// Ask the app; its answer goes to ``ServerSession/complete(_:with:into:)``.
    case access(AccessRequest)
}
