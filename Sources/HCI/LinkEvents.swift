import BluetoothTypes
import ByteCoding

/// A connection has ended (Vol 4, Part E, 7.7.5).
public struct DisconnectionComplete: EventParameters, Sendable, Equatable {
    public static let code: UInt8 = 0x05

    public var status: ErrorCode
    public var connectionHandle: ConnectionHandle
    public var reason: ErrorCode

    public init(status: ErrorCode = .success, connectionHandle: ConnectionHandle, reason: ErrorCode) {
        self.status = status
        self.connectionHandle = connectionHandle
        self.reason = reason
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        status = ErrorCode(rawValue: try reader.readUInt8())
        connectionHandle = try reader.readConnectionHandle()
        reason = ErrorCode(rawValue: try reader.readUInt8())
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(status.rawValue)
        buffer.append(connectionHandle.rawValue)
        buffer.append(reason.rawValue)
    }
}

/// A connection's encryption went on or off, or failed to, version 1 (Vol 4, Part E, 7.7.8).
public struct EncryptionChange: EventParameters, Sendable, Equatable {
    public static let code: UInt8 = 0x08

    public var status: ErrorCode
    public var connectionHandle: ConnectionHandle
    public var encryptionEnabled: EncryptionState

    public init(
        status: ErrorCode = .success,
        connectionHandle: ConnectionHandle,
        encryptionEnabled: EncryptionState
    ) {
        self.status = status
        self.connectionHandle = connectionHandle
        self.encryptionEnabled = encryptionEnabled
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        status = ErrorCode(rawValue: try reader.readUInt8())
        connectionHandle = try reader.readConnectionHandle()
        encryptionEnabled = EncryptionState(rawValue: try reader.readUInt8())
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(status.rawValue)
        buffer.append(connectionHandle.rawValue)
        buffer.append(encryptionEnabled.rawValue)
    }
}

/// A connection's encryption went on or off, or failed to, version 2 (Vol 4, Part E, 7.7.8).
public struct EncryptionChangeV2: EventParameters, Sendable, Equatable {
    public static let code: UInt8 = 0x59

    public var status: ErrorCode
    public var connectionHandle: ConnectionHandle
    public var encryptionEnabled: EncryptionState
    /// In octets, 1 to 16.
    public var encryptionKeySize: UInt8

    public init(
        status: ErrorCode = .success,
        connectionHandle: ConnectionHandle,
        encryptionEnabled: EncryptionState,
        encryptionKeySize: UInt8
    ) {
        self.status = status
        self.connectionHandle = connectionHandle
        self.encryptionEnabled = encryptionEnabled
        self.encryptionKeySize = encryptionKeySize
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        status = ErrorCode(rawValue: try reader.readUInt8())
        connectionHandle = try reader.readConnectionHandle()
        encryptionEnabled = EncryptionState(rawValue: try reader.readUInt8())
        encryptionKeySize = try reader.readUInt8()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(status.rawValue)
        buffer.append(connectionHandle.rawValue)
        buffer.append(encryptionEnabled.rawValue)
        buffer.append(encryptionKeySize)
    }
}

/// The version of the peer's link layer (Vol 4, Part E, 7.7.12).
public struct ReadRemoteVersionInformationComplete: EventParameters, Sendable, Equatable {
    public static let code: UInt8 = 0x0C

    public var status: ErrorCode
    public var connectionHandle: ConnectionHandle
    public var version: CoreVersion
    /// The maker, by the company identifiers of Assigned Numbers.
    public var companyIdentifier: UInt16
    /// The maker's own.
    public var subversion: UInt16

    public init(
        status: ErrorCode = .success,
        connectionHandle: ConnectionHandle,
        version: CoreVersion,
        companyIdentifier: UInt16,
        subversion: UInt16
    ) {
        self.status = status
        self.connectionHandle = connectionHandle
        self.version = version
        self.companyIdentifier = companyIdentifier
        self.subversion = subversion
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        status = ErrorCode(rawValue: try reader.readUInt8())
        connectionHandle = try reader.readConnectionHandle()
        version = CoreVersion(rawValue: try reader.readUInt8())
        companyIdentifier = try reader.readUInt16()
        subversion = try reader.readUInt16()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(status.rawValue)
        buffer.append(connectionHandle.rawValue)
        buffer.append(version.rawValue)
        buffer.append(companyIdentifier)
        buffer.append(subversion)
    }
}

/// An encrypted connection has a new key (Vol 4, Part E, 7.7.39).
public struct EncryptionKeyRefreshComplete: EventParameters, Sendable, Equatable {
    public static let code: UInt8 = 0x30

    public var status: ErrorCode
    public var connectionHandle: ConnectionHandle

    public init(status: ErrorCode = .success, connectionHandle: ConnectionHandle) {
        self.status = status
        self.connectionHandle = connectionHandle
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        status = ErrorCode(rawValue: try reader.readUInt8())
        connectionHandle = try reader.readConnectionHandle()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(status.rawValue)
        buffer.append(connectionHandle.rawValue)
    }
}

/// Whether a link is encrypted, and how.
public struct EncryptionState: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let off = EncryptionState(rawValue: 0x00)
    /// AES-CCM on LE, E0 on BR/EDR.
    public static let on = EncryptionState(rawValue: 0x01)
    /// AES-CCM on BR/EDR.
    public static let onWithAESCCM = EncryptionState(rawValue: 0x02)
}
