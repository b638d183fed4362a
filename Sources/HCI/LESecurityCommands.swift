import BluetoothTypes
import ByteCoding

/// Encrypts one block with AES-128 (Vol 4, Part E, 7.8.22).
public struct LEEncrypt: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x0017)

    public var key: UInt128
    public var plaintextData: UInt128

    public init(key: UInt128, plaintextData: UInt128) {
        self.key = key
        self.plaintextData = plaintextData
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        key = try reader.readUInt128()
        plaintextData = try reader.readUInt128()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(key)
        buffer.append(plaintextData)
    }

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        public var encryptedData: UInt128

        public init(encryptedData: UInt128) {
            self.encryptedData = encryptedData
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            encryptedData = try reader.readUInt128()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(encryptedData)
        }
    }
}

/// Encrypts a connection, as its central (Vol 4, Part E, 7.8.24).
public struct LEEnableEncryption: Command, Equatable {
    public typealias ReturnParameters = NoReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0019)

    public var connectionHandle: ConnectionHandle
    /// Zero for a key from LE Secure Connections.
    public var randomNumber: UInt64
    /// Zero for a key from LE Secure Connections.
    public var encryptedDiversifier: UInt16
    public var longTermKey: UInt128

    public init(
        connectionHandle: ConnectionHandle,
        randomNumber: UInt64 = 0,
        encryptedDiversifier: UInt16 = 0,
        longTermKey: UInt128
    ) {
        self.connectionHandle = connectionHandle
        self.randomNumber = randomNumber
        self.encryptedDiversifier = encryptedDiversifier
        self.longTermKey = longTermKey
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        connectionHandle = try reader.readConnectionHandle()
        randomNumber = try reader.readUInt64()
        encryptedDiversifier = try reader.readUInt16()
        longTermKey = try reader.readUInt128()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(connectionHandle.rawValue)
        buffer.append(randomNumber)
        buffer.append(encryptedDiversifier)
        buffer.append(longTermKey)
    }
}

/// Gives the key for which ``LELongTermKeyRequest`` asked (Vol 4, Part E, 7.8.25).
public struct LELongTermKeyRequestReply: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x001A)

    public var connectionHandle: ConnectionHandle
    public var longTermKey: UInt128

    public init(connectionHandle: ConnectionHandle, longTermKey: UInt128) {
        self.connectionHandle = connectionHandle
        self.longTermKey = longTermKey
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        connectionHandle = try reader.readConnectionHandle()
        longTermKey = try reader.readUInt128()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(connectionHandle.rawValue)
        buffer.append(longTermKey)
    }

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        public var connectionHandle: ConnectionHandle

        public init(connectionHandle: ConnectionHandle) {
            self.connectionHandle = connectionHandle
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            connectionHandle = try reader.readConnectionHandle()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(connectionHandle.rawValue)
        }
    }
}

/// Says that there is no key for a connection (Vol 4, Part E, 7.8.26).
public struct LELongTermKeyRequestNegativeReply: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x001B)

    public var connectionHandle: ConnectionHandle

    public init(connectionHandle: ConnectionHandle) {
        self.connectionHandle = connectionHandle
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        connectionHandle = try reader.readConnectionHandle()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(connectionHandle.rawValue)
    }

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        public var connectionHandle: ConnectionHandle

        public init(connectionHandle: ConnectionHandle) {
            self.connectionHandle = connectionHandle
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            connectionHandle = try reader.readConnectionHandle()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(connectionHandle.rawValue)
        }
    }
}

/// Makes a new P-256 key pair and returns its public key by an event (Vol 4, Part E, 7.8.36).
public struct LEReadLocalP256PublicKey: Command, Equatable {
    public typealias ReturnParameters = NoReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0025)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}
}

/// Computes a Diffie-Hellman key with the peer's public key, version 1 (Vol 4, Part E, 7.8.37).
public struct LEGenerateDHKey: Command, Equatable {
    public typealias ReturnParameters = NoReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0026)

    public var remotePublicKey: P256PublicKey

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

/// A P-256 public key as HCI carries it: both coordinates with the least significant octet first.
public struct P256PublicKey: Sendable, Equatable {
    /// How many octets one coordinate has.
    public static let coordinateLength = 32

    /// 32 octets, least significant first.
    public let x: [UInt8]
    /// 32 octets, least significant first.
    public let y: [UInt8]

    /// Each coordinate is cut after 32 octets, or padded with zeros, which are its most significant octets.
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
