import BLEByteCoding

/// The order of the bytes of a number.
public enum ByteOrder: Hashable, Sendable {
    case littleEndian
    case bigEndian
}

/// Reads numbers in the byte order of the file.
struct OrderedByteReader: ~Escapable {
    private var reader: ByteReader
    let order: ByteOrder

    @_lifetime(copy bytes)
    init(_ bytes: RawSpan, _ order: ByteOrder) {
        reader = ByteReader(bytes)
        self.order = order
    }

    var position: Int { reader.position }
    var remaining: Int { reader.remaining }

    mutating func readUInt8() throws(PacketDecodingError) -> UInt8 { try reader.readUInt8() }

    mutating func readUInt16() throws(PacketDecodingError) -> UInt16 {
        let value = try reader.readUInt16()
        return order == .littleEndian ? value : value.byteSwapped
    }

    mutating func readUInt32() throws(PacketDecodingError) -> UInt32 {
        let value = try reader.readUInt32()
        return order == .littleEndian ? value : value.byteSwapped
    }

    mutating func readUInt64() throws(PacketDecodingError) -> UInt64 {
        let value = try reader.readUInt64()
        return order == .littleEndian ? value : value.byteSwapped
    }

    @_lifetime(copy self)
    mutating func readBytes(count: Int) throws(PacketDecodingError) -> RawSpan { try reader.readBytes(count: count) }

    mutating func skip(_ count: Int) throws(PacketDecodingError) { try reader.skip(count) }
}
