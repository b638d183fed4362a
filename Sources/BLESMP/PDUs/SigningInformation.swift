import BLEByteCoding

/// Distributes the sender's signing key (Vol 3, Part H, 3.6.6).
public struct SigningInformation: SecurityManagerCommand {
    public static let code = CommandCode.signingInformation

    /// The CSRK.
    public var signatureKey: UInt128

    /// A Signing Information with its parameter.
    public init(signatureKey: UInt128) {
        self.signatureKey = signatureKey
    }

    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readCode(.signingInformation)
        signatureKey = try reader.readUInt128()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.code.rawValue)
        buffer.append(signatureKey)
    }
}
