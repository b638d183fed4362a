import BLEByteCoding
import BluetoothTypes

/// Requests a value from an offset on (Vol 3, Part F, 3.4.4.5).
public struct ReadBlobRequest: ProtocolDataUnit, Hashable, Sendable {
    public static let opcode = ATTOpcode.readBlobRequest

    /// The attribute.
    public var handle: AttributeHandle
    /// The offset from the start of the value, in bytes.
    public var offset: UInt16

    /// A Read Blob Request with its parameters.
    @inlinable
    public init(handle: AttributeHandle, offset: UInt16) {
        self.handle = handle
        self.offset = offset
    }

    @inlinable
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.readBlobRequest)
        handle = try reader.readHandle()
        offset = try reader.readUInt16()
        try reader.requireEnd()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue, handle.rawValue, offset)
    }
}

/// At most ATT_MTU - 1 bytes of a value from the offset on (Vol 3, Part F, 3.4.4.6).
///
/// The part is empty if the offset is the length of the value.
public typealias ReadBlobResponse = ValuePDU<ReadBlobResponseKind>

/// The kind of a ``ReadBlobResponse``.
public enum ReadBlobResponseKind: PDUKind {
    @inlinable
    public static var opcode: ATTOpcode { .readBlobResponse }
}
