import BLEByteCoding
import BluetoothTypes

/// A PDU of the Attribute Protocol (Vol 3, Part F, 3.4). Its parts of variable length are borrowed.
public protocol ProtocolDataUnit: ~Escapable {
    /// The first byte of every PDU of this type.
    static var opcode: ATTOpcode { get }

    /// Decodes a whole PDU with its opcode.
    @_lifetime(copy bytes)
    init(decoding bytes: RawSpan) throws(PacketDecodingError)

    /// Appends the whole PDU with its opcode.
    func encode(into buffer: inout PacketBuffer)
}

/// The range of attribute handles in a request.
public struct HandleRange: Hashable, Sendable {
    /// The first handle.
    public var start: AttributeHandle
    /// The last handle.
    public var end: AttributeHandle

    /// Creates a range, which may be invalid.
    @inlinable
    public init(start: AttributeHandle, end: AttributeHandle) {
        self.start = start
        self.end = end
    }

    /// Creates the range of one handle.
    package init(only handle: AttributeHandle) {
        self.init(start: handle, end: handle)
    }

    /// The range of all valid attribute handles.
    public static let all = HandleRange(start: .first, end: .last)

    /// Whether a server can search the range. Otherwise it answers Invalid Handle with the start (Vol 3, Part F,
    /// 3.4.3.1).
    @inlinable
    public var isValid: Bool { start != .invalid && start <= end }

    /// Whether a handle lies in both ranges.
    package func overlaps(_ other: HandleRange) -> Bool { start <= other.end && other.start <= end }
}

extension ByteReader {
    /// Reads the opcode of the PDU.
    @inlinable
    mutating func readOpcode(_ opcode: ATTOpcode) throws(PacketDecodingError) {
        let value = try readUInt8()
        if value != opcode.rawValue { throw .invalidValue(UInt64(value), field: "opcode") }
    }

    @inlinable
    mutating func readHandle() throws(PacketDecodingError) -> AttributeHandle {
        AttributeHandle(try readUInt16())
    }

    @inlinable
    mutating func readHandleRange() throws(PacketDecodingError) -> HandleRange {
        HandleRange(start: try readHandle(), end: try readHandle())
    }

    /// Reads the remaining bytes as entries of one length. There must be at least one entry, of at least `minimum`
    /// bytes.
    @inlinable
    @_lifetime(copy self)
    mutating func readList(entryLength: Int, minimum: Int) throws(PacketDecodingError) -> RawSpan {
        guard entryLength >= minimum else { throw .invalidLength(entryLength, field: "list entry") }
        let count = remaining
        guard count > 0, count % entryLength == 0 else { throw .invalidLength(count, field: "list") }
        return try readBytes(count: count)
    }

    /// Reads the remaining bytes as a UUID of 2 or 16 bytes (Vol 3, Part F, 3.2.1).
    @inlinable
    mutating func readAttributeType() throws(PacketDecodingError) -> BluetoothUUID {
        if remaining == 4 { throw .invalidLength(4, field: "attribute type") }
        return try BluetoothUUID(decoding: readRemaining())
    }
}

extension PacketBuffer {
    @inlinable
    mutating func append(_ handle: AttributeHandle) {
        append(handle.rawValue)
    }

    /// Appends a request that searches for a type in a range. For a UUID of 16 bits, one check of the capacity
    /// suffices.
    @inlinable
    @inline(__always)
    mutating func append(_ opcode: ATTOpcode, _ range: HandleRange, _ type: BluetoothUUID) {
        if type.width == .bits16 {
            let shortValue = UInt16(truncatingIfNeeded: type.value >> 96)
            append(opcode.rawValue, range.start.rawValue, range.end.rawValue, shortValue)
        } else {
            append(opcode.rawValue, range.start.rawValue, range.end.rawValue)
            type.encode(into: &self)
        }
    }
}
