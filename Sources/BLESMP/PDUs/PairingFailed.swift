import BLEByteCoding

/// Ends a pairing (Vol 3, Part H, 3.5.5). It is never answered.
public struct PairingFailed: SecurityManagerCommand {
    public static let code = CommandCode.pairingFailed

    /// The reason; may be an unknown value.
    public var reason: PairingFailedReason

    /// A Pairing Failed with its parameter.
    public init(reason: PairingFailedReason) {
        self.reason = reason
    }

    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readCode(.pairingFailed)
        reason = PairingFailedReason(rawValue: try reader.readUInt8())
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.code.rawValue)
        buffer.append(reason.rawValue)
    }
}
