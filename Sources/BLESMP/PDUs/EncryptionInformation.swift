import BLEByteCoding

/// Distributes a long term key of LE legacy pairing; ``CentralIdentification`` follows (Vol 3, Part H, 3.6.2).
public struct EncryptionInformation: SecurityManagerCommand {
    public static let code = CommandCode.encryptionInformation

    /// The LTK.
    public var longTermKey: UInt128

    /// An Encryption Information with its parameter.
    public init(longTermKey: UInt128) {
        self.longTermKey = longTermKey
    }

    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readCode(.encryptionInformation)
        longTermKey = try reader.readUInt128()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.code.rawValue)
        buffer.append(longTermKey)
    }
}

/// Identifies the long term key that was distributed before it (Vol 3, Part H, 3.6.3).
public struct CentralIdentification: SecurityManagerCommand {
    public static let code = CommandCode.centralIdentification

    /// EDIV.
    public var encryptedDiversifier: UInt16
    /// Rand.
    public var randomNumber: UInt64

    /// A Central Identification with its parameters.
    public init(encryptedDiversifier: UInt16, randomNumber: UInt64) {
        self.encryptedDiversifier = encryptedDiversifier
        self.randomNumber = randomNumber
    }

    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readCode(.centralIdentification)
        encryptedDiversifier = try reader.readUInt16()
        randomNumber = try reader.readUInt64()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.code.rawValue)
        buffer.append(encryptedDiversifier)
        buffer.append(randomNumber)
    }
}
