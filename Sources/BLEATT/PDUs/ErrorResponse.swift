import BLEByteCoding
import BluetoothTypes

/// The response to a request that the server refuses (Vol 3, Part F, 3.4.1.1).
public struct ErrorResponse: ProtocolDataUnit, Hashable, Sendable {
    public static let opcode = ATTOpcode.errorResponse

    /// The opcode of the request, which may be unknown.
    public var requestOpcode: UInt8
    /// The attribute that caused the error; zero if the request has none.
    public var handle: AttributeHandle
    /// The reason for the refusal.
    public var error: ATTErrorCode

    /// An Error Response with its parameters.
    @inlinable
    public init(requestOpcode: UInt8, handle: AttributeHandle, error: ATTErrorCode) {
        self.requestOpcode = requestOpcode
        self.handle = handle
        self.error = error
    }

    @inlinable
    @inline(__always)
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.errorResponse)
        requestOpcode = try reader.readUInt8()
        handle = try reader.readHandle()
        error = ATTErrorCode(rawValue: try reader.readUInt8())
        try reader.requireEnd()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue, requestOpcode, handle.rawValue, error.rawValue)
    }
}
