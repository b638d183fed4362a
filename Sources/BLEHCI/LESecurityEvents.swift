import BLEByteCoding

/// An event that reports the public key of the controller's new P-256 key pair (Vol 4, Part E, 7.7.65.8).
public struct LEReadLocalP256PublicKeyComplete: LEEventParameters, ~Escapable {
    public static let subeventCode: UInt8 = 0x08

    /// ``HCIErrorCode/success`` if the controller has a new key pair; otherwise the coordinates have no meaning.
    public var status: HCIErrorCode
    /// 32 bytes, least significant first.
    public var keyXCoordinate: RawSpan
    /// 32 bytes, least significant first.
    public var keyYCoordinate: RawSpan

    /// Creates an event that borrows the coordinates.
    @_lifetime(copy keyXCoordinate, copy keyYCoordinate)
    public init(status: HCIErrorCode = .success, keyXCoordinate: RawSpan, keyYCoordinate: RawSpan) {
        self.status = status
        self.keyXCoordinate = keyXCoordinate
        self.keyYCoordinate = keyYCoordinate
    }

    @_lifetime(copy parameters)
    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        status = HCIErrorCode(rawValue: try reader.readUInt8())
        keyXCoordinate = try reader.readBytes(count: 32)
        keyYCoordinate = try reader.readBytes(count: 32)
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(status.rawValue)
        buffer.append(keyXCoordinate, count: 32)
        buffer.append(keyYCoordinate, count: 32)
    }
}

/// An event that reports the Diffie-Hellman key that the controller computed (Vol 4, Part E, 7.7.65.9).
public struct LEGenerateDHKeyComplete: LEEventParameters, ~Escapable {
    public static let subeventCode: UInt8 = 0x09

    /// ``HCIErrorCode/success`` if the key was computed. Otherwise, for example if the peer's public key is invalid,
    /// ``dhKey`` has no meaning.
    public var status: HCIErrorCode
    /// 32 bytes, least significant first.
    public var dhKey: RawSpan

    /// Creates an event that borrows `dhKey`.
    @_lifetime(copy dhKey)
    public init(status: HCIErrorCode = .success, dhKey: RawSpan) {
        self.status = status
        self.dhKey = dhKey
    }

    @_lifetime(copy parameters)
    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        status = HCIErrorCode(rawValue: try reader.readUInt8())
        dhKey = try reader.readBytes(count: 32)
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(status.rawValue)
        buffer.append(dhKey, count: 32)
    }
}
