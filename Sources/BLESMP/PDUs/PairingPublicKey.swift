import BLEByteCoding

/// The sender's public key for LE Secure Connections (Vol 3, Part H, 3.5.6).
public struct PairingPublicKey: SecurityManagerCommand {
    public static let code = CommandCode.pairingPublicKey

    /// The key; may not be a point of the curve.
    public var key: P256PublicKey

    /// A Pairing Public Key with its parameter.
    public init(key: P256PublicKey) {
        self.key = key
    }

    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readCode(.pairingPublicKey)
        key = P256PublicKey(x: try reader.readUInt256(), y: try reader.readUInt256())
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.code.rawValue)
        buffer.append(key.x.bytes)
        buffer.append(key.y.bytes)
    }
}
