import BLEByteCoding

/// Executes or cancels the prepared writes (Vol 3, Part F, 3.4.6.3).
public struct ExecuteWriteRequest: ProtocolDataUnit, Hashable, Sendable {
    public static let opcode = ATTOpcode.executeWriteRequest

    /// The action on the queue of prepared writes.
    public enum Flags: UInt8, Sendable {
        /// Drops the prepared parts.
        case cancelAll = 0x00
        /// Writes the prepared parts, in the order of their arrival.
        case writeAll = 0x01
    }

    /// The action on the queue.
    public var flags: Flags

    /// An Execute Write Request with its parameters.
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

/// Confirms that the prepared writes were written or dropped (Vol 3, Part F, 3.4.6.4).
public typealias ExecuteWriteResponse = PDUWithoutParameters<ExecuteWriteResponseKind>

/// The kind of a ``ExecuteWriteResponse``.
public enum ExecuteWriteResponseKind: PDUKind {
    @inlinable
    public static var opcode: ATTOpcode { .executeWriteResponse }
}
