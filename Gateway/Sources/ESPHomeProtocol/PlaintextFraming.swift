import NIOCore

/// Frames of sessions without encryption: 0x00, the length of the payload and the type as variable-length numbers, the
/// payload.
struct PlaintextFraming {
    /// The first byte of a frame.
    static let indicator: UInt8 = 0x00
    /// The greatest number of bytes of a length or a type: 28 bits.
    private static let maximumNumberLength = 4

    /// Takes the next frame from `buffer`; nil if it is incomplete, which leaves the buffer as it was.
    func decode(from buffer: inout ByteBuffer) throws(ProtocolError) -> Message? {
        var reader = buffer
        guard let indicator = reader.readInteger(as: UInt8.self) else { return nil }
        guard indicator == Self.indicator else { throw .wrongIndicator(indicator) }
        guard let length = try Self.readNumber(from: &reader) else { return nil }
        guard length <= FrameLimits.maximumLength else { throw .oversizedFrame(length) }
        guard let type = try Self.readNumber(from: &reader) else { return nil }
        guard let payload = reader.readSlice(length: length) else { return nil }
        buffer = reader
        // A type that does not fit is an unknown one.
        return Message(MessageType(rawValue: UInt16(exactly: type) ?? 0), payload: payload)
    }

    /// Appends a frame to `buffer`.
    func encode(_ message: Message, into buffer: inout ByteBuffer) {
        buffer.writeInteger(Self.indicator)
        buffer.writeVariableLength(UInt64(message.payload.readableBytes))
        buffer.writeVariableLength(UInt64(message.type.rawValue))
        buffer.writeImmutableBuffer(message.payload)
    }

    private static func readNumber(from buffer: inout ByteBuffer) throws(ProtocolError) -> Int? {
        var number = 0
        for index in 0..<maximumNumberLength {
            guard let byte = buffer.readInteger(as: UInt8.self) else { return nil }
            number |= Int(byte & 0x7F) << (7 * index)
            if byte & 0x80 == 0 { return number }
        }
        throw .malformedNumber
    }
}
