import NIOCore

// The parts of the Protocol Buffers encoding that frequent messages are read and written with, without message objects.
extension ByteBuffer {
    /// Reads a variable-length number of at most 9 bytes; nil if there is none. The number may be read in part then.
    mutating func readVariableLength() -> UInt64? {
        var number: UInt64 = 0
        for index in 0..<9 {
            guard let byte = readInteger(as: UInt8.self) else { return nil }
            number |= UInt64(byte & 0x7F) << UInt64(7 * index)
            if byte & 0x80 == 0 { return number }
        }
        return nil
    }

    /// Appends a variable-length number.
    public mutating func writeVariableLength(_ number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            writeInteger(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        writeInteger(UInt8(rest))
    }

    /// Appends a field with a number; nothing if the number is 0, which is the default.
    public mutating func writeField(_ field: UInt64, number: UInt64) {
        guard number != 0 else { return }
        writeVariableLength(field << 3)
        writeVariableLength(number)
    }

    /// Appends a field with bytes; nothing if there are none.
    public mutating func writeField(_ field: UInt64, bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        writeVariableLength(field << 3 | 2)
        writeVariableLength(UInt64(bytes.count))
        writeBytes(bytes)
    }
}

/// The number of bytes of a variable-length number.
func variableLengthByteCount(_ number: UInt64) -> Int {
    (70 - max(number, 1).leadingZeroBitCount) / 7
}
