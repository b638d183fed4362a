import BluetoothTypes
import ByteCoding

/// Ends a connection (Vol 4, Part E, 7.1.6).
public struct Disconnect: Command, Equatable {
    public typealias ReturnParameters = NoReturnParameters

    public static let opcode = Opcode(group: 0x01, command: 0x0006)

    public var connectionHandle: ConnectionHandle
    /// What the peer is told.
    public var reason: ErrorCode

    public init(connectionHandle: ConnectionHandle, reason: ErrorCode = .remoteUserTerminatedConnection) {
        self.connectionHandle = connectionHandle
        self.reason = reason
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        connectionHandle = try reader.readConnectionHandle()
        reason = ErrorCode(rawValue: try reader.readUInt8())
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(connectionHandle.rawValue)
        buffer.append(reason.rawValue)
    }
}

/// Asks the peer's link layer which version it is (Vol 4, Part E, 7.1.23).
public struct ReadRemoteVersionInformation: Command, Equatable {
    public typealias ReturnParameters = NoReturnParameters

    public static let opcode = Opcode(group: 0x01, command: 0x001D)

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
