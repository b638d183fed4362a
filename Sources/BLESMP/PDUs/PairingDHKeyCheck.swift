import BLEByteCoding

/// Proves that its sender has computed the same Diffie-Hellman key from the same exchange (Vol 3, Part H, 3.5.7).
public struct PairingDHKeyCheck: SecurityManagerCommand {
    public static let code = CommandCode.pairingDHKeyCheck

    /// The DHKey check value.
    public var value: UInt128

    /// A Pairing DHKey Check with its parameter.
    public init(value: UInt128) {
        self.value = value
    }

    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readCode(.pairingDHKeyCheck)
        value = try reader.readUInt128()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.code.rawValue)
        buffer.append(value)
    }
}
