import BLEByteCoding

/// Commits its sender to a random value that it has not sent yet (Vol 3, Part H, 3.5.3).
public struct PairingConfirm: SecurityManagerCommand {
    public static let code = CommandCode.pairingConfirm

    /// The confirm value.
    public var value: UInt128

    /// A Pairing Confirm with its parameter.
    public init(value: UInt128) {
        self.value = value
    }

    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readCode(.pairingConfirm)
        value = try reader.readUInt128()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.code.rawValue)
        buffer.append(value)
    }
}

/// The random value behind a confirm value, or the nonce of LE Secure Connections (Vol 3, Part H, 3.5.4).
public struct PairingRandom: SecurityManagerCommand {
    public static let code = CommandCode.pairingRandom

    /// The random value.
    public var value: UInt128

    /// A Pairing Random with its parameter.
    public init(value: UInt128) {
        self.value = value
    }

    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readCode(.pairingRandom)
        value = try reader.readUInt128()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.code.rawValue)
        buffer.append(value)
    }
}
