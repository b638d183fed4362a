import BLEByteCoding
import BluetoothTypes

/// Requests a value (Vol 3, Part F, 3.4.4.3).
public struct ReadRequest: ProtocolDataUnit, Hashable, Sendable {
    public static let opcode = ATTOpcode.readRequest

    /// The attribute.
    public var handle: AttributeHandle

    /// A Read Request with its parameters.
    @inlinable
    public init(handle: AttributeHandle) {
        self.handle = handle
    }

    @inlinable
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.readRequest)
        handle = try reader.readHandle()
        try reader.requireEnd()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue, handle.rawValue)
    }
}

/// The value, or its first ATT_MTU - 1 bytes (Vol 3, Part F, 3.4.4.4).
public typealias ReadResponse = ValuePDU<ReadResponseKind>

/// The kind of a ``ReadResponse``.
public enum ReadResponseKind: PDUKind {
    @inlinable
    public static var opcode: ATTOpcode { .readResponse }
}
