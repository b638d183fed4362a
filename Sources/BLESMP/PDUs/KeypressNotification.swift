import BLEByteCoding

/// Reports a key that was pressed during passkey entry (Vol 3, Part H, 3.5.8).
public struct KeypressNotification: SecurityManagerCommand {
    public static let code = CommandCode.keypressNotification

    /// The change of the passkey.
    public enum Kind: UInt8, Hashable, Sendable, CaseIterable {
        /// The entry of the passkey has begun.
        case entryStarted = 0
        /// A digit was entered.
        case digitEntered = 1
        /// A digit was erased.
        case digitErased = 2
        /// All digits were erased.
        case cleared = 3
        /// The passkey was entered.
        case entryCompleted = 4
    }

    /// The change of the passkey.
    public var kind: Kind

    /// A Keypress Notification with its parameter.
    public init(kind: Kind) {
        self.kind = kind
    }

    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readCode(.keypressNotification)
        let type = try reader.readUInt8()
        guard let kind = Kind(rawValue: type) else { throw .invalidValue(UInt64(type), field: "notification type") }
        self.kind = kind
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.code.rawValue)
        buffer.append(kind.rawValue)
    }
}
