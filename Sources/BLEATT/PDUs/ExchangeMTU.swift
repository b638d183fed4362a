import BLEByteCoding
import BluetoothTypes

/// Reports the client's receive MTU to the server (Vol 3, Part F, 3.4.2.1).
public struct ExchangeMTURequest: ProtocolDataUnit, Hashable, Sendable {
    public static let opcode = ATTOpcode.exchangeMTURequest

    /// In bytes; at least 23.
    public var clientReceiveMTU: UInt16

    /// An Exchange MTU Request with its parameters.
    @inlinable
    public init(clientReceiveMTU: UInt16) {
        self.clientReceiveMTU = clientReceiveMTU
    }

    @inlinable
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.exchangeMTURequest)
        clientReceiveMTU = try reader.readUInt16()
        try reader.requireEnd()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue)
        buffer.append(clientReceiveMTU)
    }
}

/// Reports the server's receive MTU to the client (Vol 3, Part F, 3.4.2.2).
public struct ExchangeMTUResponse: ProtocolDataUnit, Hashable, Sendable {
    public static let opcode = ATTOpcode.exchangeMTUResponse

    /// In bytes; at least 23.
    public var serverReceiveMTU: UInt16

    /// An Exchange MTU Response with its parameters.
    @inlinable
    public init(serverReceiveMTU: UInt16) {
        self.serverReceiveMTU = serverReceiveMTU
    }

    @inlinable
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.exchangeMTUResponse)
        serverReceiveMTU = try reader.readUInt16()
        try reader.requireEnd()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue)
        buffer.append(serverReceiveMTU)
    }
}
