import BLEByteCoding
import BluetoothTypes

extension ByteReader {
    @inlinable
    mutating func readConnectionHandle() throws(PacketDecodingError) -> ConnectionHandle {
        ConnectionHandle(try readUInt16())
    }

    /// Reads a type, public or random, and an address.
    mutating func readDeviceAddress(_ field: StaticString) throws(PacketDecodingError) -> DeviceAddress {
        let type = try readUInt8()
        guard type <= 1 else { throw .invalidValue(UInt64(type), field: field) }
        return DeviceAddress(try readUInt48(), isRandom: type == 1)
    }

    /// Reads a byte that is zero or one.
    mutating func readFlag(_ field: StaticString) throws(PacketDecodingError) -> Bool {
        let value = try readUInt8()
        guard value <= 1 else { throw .invalidValue(UInt64(value), field: field) }
        return value == 1
    }

    /// Reads a byte that is a value of an enumeration.
    mutating func readValue<Value: RawRepresentable>(
        _ field: StaticString
    ) throws(PacketDecodingError) -> Value where Value.RawValue == UInt8 {
        let rawValue = try readUInt8()
        guard let value = Value(rawValue: rawValue) else { throw .invalidValue(UInt64(rawValue), field: field) }
        return value
    }
}

extension PacketBuffer {
    mutating func append(_ address: DeviceAddress) {
        append(UInt8(address.isRandom ? 1 : 0))
        appendUInt48(address.value)
    }

    mutating func append(flag: Bool) {
        append(UInt8(flag ? 1 : 0))
    }

    /// Appends exactly `count` bytes: `bytes` cut, or padded with zeros.
    mutating func append(_ bytes: RawSpan, count: Int) {
        append(bytes.extracting(first: count))
        appendZeros(Swift.max(0, count - bytes.byteCount))
    }

    /// Appends a length of one byte and `bytes`, cut after `limit` bytes, at most 255.
    mutating func append(lengthPrefixed bytes: RawSpan, limit: Int = 255) {
        let part = bytes.extracting(first: limit)
        append(UInt8(truncatingIfNeeded: part.byteCount))
        append(part)
    }
}
