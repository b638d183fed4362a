import ByteCoding

/// Ends a queue of prepared writes (Vol 3, Part F, 3.4.6.3).
public struct ExecuteWriteRequest: ProtocolDataUnit, Hashable, Sendable {
    public static let opcode = Opcode.executeWriteRequest

    /// What becomes of the queue.
    public enum Flags: UInt8, Sendable {
        case cancelAll = 0x00
        case writeAll = 0x01
    }

    public var flags: Flags

    @inlinable
    public init(flags: Flags) {
        self.flags = flags
    }

    @inlinable
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.executeWriteRequest)
        let value = try reader.readUInt8()
        guard let flags = Flags(rawValue: value) else { throw .invalidValue(UInt64(value), field: "flags") }
        self.flags = flags
        try reader.requireEnd()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue)
        buffer.append(flags.rawValue)
    }
}

/// The queue of prepared writes has been written or dropped (Vol 3, Part F, 3.4.6.4).
public struct ExecuteWriteResponse: ProtocolDataUnit, Hashable, Sendable {
    public static let opcode = Opcode.executeWriteResponse

    @inlinable
    public init() {}

    @inlinable
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.executeWriteResponse)
        try reader.requireEnd()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue)
    }
}
