import BLEByteCoding
import BluetoothTypes

/// Requests several values of unknown length (Vol 3, Part F, 3.4.4.11).
public typealias ReadMultipleVariableRequest = HandleSetPDU<ReadMultipleVariableRequestKind>

/// The kind of a ``ReadMultipleVariableRequest``.
public enum ReadMultipleVariableRequestKind: PDUKind {
    @inlinable
    public static var opcode: ATTOpcode { .readMultipleVariableRequest }
}

/// The values with their lengths. The last value may be truncated, but its length is that of the whole value (Vol 3,
/// Part F, 3.4.4.12).
public struct ReadMultipleVariableResponse: ProtocolDataUnit, ~Escapable {
    public static let opcode = ATTOpcode.readMultipleVariableResponse

    /// One value and its length on the server.
    public struct Entry: ~Escapable {
        /// The length of the whole value on the server, in bytes.
        public let length: UInt16
        /// The part of the value that the PDU contains.
        public let value: RawSpan

        @inlinable
        @_lifetime(copy value)
        init(length: UInt16, value: RawSpan) {
            self.length = length
            self.value = value
        }
    }

    /// The entries, one after the other: length and value.
    public let list: RawSpan

    /// A Read Multiple Variable Response with its parameters.
    @inlinable
    @_lifetime(copy list)
    public init(list: RawSpan) {
        self.list = list
    }

    @inlinable
    @_lifetime(copy bytes)
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.readMultipleVariableResponse)
        list = reader.readRemaining()
        if list.byteCount < 4 { throw .truncated(needed: 4, available: list.byteCount) }
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue)
        buffer.append(list)
    }

    /// An iterator over ``list``.
    @inlinable
    public var entries: Entries {
        @_lifetime(copy self)
        get { Entries(ByteReader(list)) }
    }

    /// An iterator over the entries.
    public struct Entries: ~Escapable {
        @usableFromInline var reader: ByteReader

        @inlinable
        @_lifetime(copy reader)
        init(_ reader: consuming ByteReader) {
            self.reader = reader
        }

        /// The next entry, or nil after the last.
        @inlinable
        @_lifetime(copy self)
        public mutating func next() -> Entry? {
            guard let length = try? reader.readUInt16(),
                let value = try? reader.readBytes(count: min(Int(length), reader.remaining))
            else { return nil }
            return Entry(length: length, value: value)
        }
    }
}
