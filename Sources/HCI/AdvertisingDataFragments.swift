import ByteCoding

/// Up to 251 octets of extended advertising or scan response data, sent after their length (Vol 4, Part E, 7.8.54).
public struct AdvertisingDataFragment: Sendable, Equatable {
    /// The most that one command carries, in octets.
    public static let maximumLength = 251

    public let bytes: [UInt8]

    /// - Parameter bytes: cut after 251 octets; the rest belongs into further fragments.
    public init(_ bytes: [UInt8] = []) {
        self.bytes = bytes.count > Self.maximumLength ? Array(bytes.prefix(Self.maximumLength)) : bytes
    }

    init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
        bytes = try reader.readFragment(maximumLength: Self.maximumLength)
    }

    func encode(into buffer: inout PacketBuffer) {
        buffer.append(UInt8(truncatingIfNeeded: bytes.count))
        buffer.append(bytes)
    }
}

/// Up to 252 octets of periodic advertising data, sent after their length (Vol 4, Part E, 7.8.62).
public struct PeriodicAdvertisingDataFragment: Sendable, Equatable {
    /// The most that one command carries, in octets.
    public static let maximumLength = 252

    public let bytes: [UInt8]

    /// - Parameter bytes: cut after 252 octets; the rest belongs into further fragments.
    public init(_ bytes: [UInt8] = []) {
        self.bytes = bytes.count > Self.maximumLength ? Array(bytes.prefix(Self.maximumLength)) : bytes
    }

    init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
        bytes = try reader.readFragment(maximumLength: Self.maximumLength)
    }

    func encode(into buffer: inout PacketBuffer) {
        buffer.append(UInt8(truncatingIfNeeded: bytes.count))
        buffer.append(bytes)
    }
}

extension ByteReader {
    fileprivate mutating func readFragment(maximumLength: Int) throws(PacketDecodingError) -> [UInt8] {
        let length = Int(try readUInt8())
        guard length <= maximumLength else { throw .invalidLength(length, field: "Advertising_Data") }
        return [UInt8](copying: try readBytes(count: length))
    }
}
