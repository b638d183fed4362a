import BLEByteCoding
import BluetoothTypes

/// Requests several values of known length (Vol 3, Part F, 3.4.4.7).
public typealias ReadMultipleRequest = HandleSetPDU<ReadMultipleRequestKind>

/// The kind of a ``ReadMultipleRequest``.
public enum ReadMultipleRequestKind: PDUKind {
    @inlinable
    public static var opcode: ATTOpcode { .readMultipleRequest }
}

/// The values one after the other; the last may be truncated (Vol 3, Part F, 3.4.4.8).
public struct ReadMultipleResponse: ProtocolDataUnit, ~Escapable {
    public static let opcode = ATTOpcode.readMultipleResponse

    /// The values without their lengths, at most ATT_MTU - 1 bytes.
    public var values: RawSpan

    /// A Read Multiple Response with its parameters.
    @inlinable
    @_lifetime(copy values)
    public init(values: RawSpan) {
        self.values = values
    }

    @inlinable
    @_lifetime(copy bytes)
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.readMultipleResponse)
        values = reader.readRemaining()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue)
        buffer.append(values)
    }
}
