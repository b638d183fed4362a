import BluetoothTypes
import ByteCoding

/// Sets how long an encrypted connection may be without a packet that proves the peer has the key (Vol 4, Part E, 7.3.94).
public struct WriteAuthenticatedPayloadTimeout: Command, Equatable {
    public static let opcode = Opcode(group: 0x03, command: 0x007C)

    public var connectionHandle: ConnectionHandle
    /// In units of 10 ms: 1 to 65,535, and at least the connection interval times one more than the peripheral latency.
    public var authenticatedPayloadTimeout: UInt16

    /// A command with its parameters; 30 s is what a controller begins with.
    public init(connectionHandle: ConnectionHandle, authenticatedPayloadTimeout: UInt16 = 3000) {
        self.connectionHandle = connectionHandle
        self.authenticatedPayloadTimeout = authenticatedPayloadTimeout
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        connectionHandle = try reader.readConnectionHandle()
        authenticatedPayloadTimeout = try reader.readUInt16()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(connectionHandle.rawValue)
        buffer.append(authenticatedPayloadTimeout)
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

/// Reads how long an encrypted connection may be without a packet that proves the peer has the key (Vol 4, Part E, 7.3.93).
public struct ReadAuthenticatedPayloadTimeout: Command, Equatable {
    public static let opcode = Opcode(group: 0x03, command: 0x007B)

    public var connectionHandle: ConnectionHandle

    /// A command with its parameter.
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
        /// In units of 10 ms: 1 to 65,535.
        public var authenticatedPayloadTimeout: UInt16

        public init(connectionHandle: ConnectionHandle, authenticatedPayloadTimeout: UInt16) {
            self.connectionHandle = connectionHandle
            self.authenticatedPayloadTimeout = authenticatedPayloadTimeout
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            connectionHandle = try reader.readConnectionHandle()
            authenticatedPayloadTimeout = try reader.readUInt16()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(connectionHandle.rawValue)
            buffer.append(authenticatedPayloadTimeout)
        }
    }
}

/// Nothing that proves the peer has the key has come on an encrypted connection for the time that was set (Vol 4, Part E,
/// 7.7.75).
public struct AuthenticatedPayloadTimeoutExpired: EventParameters, Sendable, Equatable {
    public static let code: UInt8 = 0x57

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
}
