import BLEByteCoding

/// A command to compute a Diffie-Hellman key with the peer's public key, version 1 (Vol 4, Part E, 7.8.37).
public struct LEGenerateDHKey: Command, Equatable {
    public typealias ReturnParameters = NoReturnParameters

    public static let opcode = HCIOpcode(group: 0x08, command: 0x0026)

    /// The peer's public key. The controller combines it with its own private key.
    public var remotePublicKey: P256PublicKey

    /// Creates a command.
    public init(remotePublicKey: P256PublicKey) {
        self.remotePublicKey = remotePublicKey
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        remotePublicKey = try P256PublicKey(decoding: &reader)
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        remotePublicKey.encode(into: &buffer)
    }
}

/// A P-256 public key as HCI carries it: both coordinates with the least significant byte first.
public struct P256PublicKey: Sendable, Equatable {
    /// The length of a coordinate, in bytes.
    public static let coordinateLength = 32

    /// 32 bytes, least significant first.
    public let x: [UInt8]
    /// 32 bytes, least significant first.
    public let y: [UInt8]

    /// Creates a key. Each coordinate is cut after 32 bytes, or padded with zeros as its most significant bytes.
    public init(x: [UInt8], y: [UInt8]) {
        self.x = Self.fitted(x)
        self.y = Self.fitted(y)
    }

    init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
        x = [UInt8](copying: try reader.readBytes(count: Self.coordinateLength))
        y = [UInt8](copying: try reader.readBytes(count: Self.coordinateLength))
    }

    func encode(into buffer: inout PacketBuffer) {
        buffer.append(x)
        buffer.append(y)
    }

    private static func fitted(_ coordinate: [UInt8]) -> [UInt8] {
        var fitted = Array(coordinate.prefix(coordinateLength))
        fitted.append(contentsOf: repeatElement(0, count: coordinateLength - fitted.count))
        return fitted
    }
}
