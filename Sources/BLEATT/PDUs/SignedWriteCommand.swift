import BLEByteCoding
import BluetoothTypes

/// Writes a value, signed with the client's CSRK, without a response (Vol 3, Part F, 3.4.5.4).
public struct SignedWriteCommand: ProtocolDataUnit, ~Escapable {
    public static let opcode = ATTOpcode.signedWriteCommand
    /// The length of a signature in bytes: 4 for the sign counter, 8 for the MAC (Vol 3, Part C, 10.4.1).
    public static let signatureLength = 12

    /// The attribute.
    public var handle: AttributeHandle
    /// The value to write, at most ATT_MTU - 15 bytes.
    public var value: RawSpan
    /// The signature of 12 bytes.
    public var signature: RawSpan

    /// A Signed Write Command with its parameters.
    @inlinable
    @_lifetime(copy value, copy signature)
    public init(handle: AttributeHandle, value: RawSpan, signature: RawSpan) {
        self.handle = handle
        self.value = value
        self.signature = signature
    }

    @inlinable
    @_lifetime(copy bytes)
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.signedWriteCommand)
        handle = try reader.readHandle()
        let length = reader.remaining - SignedWriteCommand.signatureLength
        if length < 0 { throw .truncated(needed: SignedWriteCommand.signatureLength, available: reader.remaining) }
        value = try reader.readBytes(count: length)
        signature = reader.readRemaining()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue, handle.rawValue, value)
        buffer.append(signature)
    }
}
