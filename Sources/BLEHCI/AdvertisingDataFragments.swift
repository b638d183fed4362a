import BLEByteCoding

/// Up to 31 bytes of advertising or scan response data, sent as a length and 31 bytes padded with zeros.
public struct LegacyAdvertisingData: Sendable, Equatable {
    /// The capacity of a legacy PDU, in bytes.
    public static let maximumLength = 31

    /// The data without padding.
    public let bytes: [UInt8]

    /// - Parameter bytes: cut after 31 bytes.
    public init(_ bytes: [UInt8] = []) {
        self.bytes = bytes.count > Self.maximumLength ? Array(bytes.prefix(Self.maximumLength)) : bytes
    }

    init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
        let length = Int(try reader.readUInt8())
        guard length <= Self.maximumLength else { throw .invalidLength(length, field: "Advertising_Data") }
        let padded = try reader.readBytes(count: Self.maximumLength)
        bytes = [UInt8](copying: padded.extracting(first: length))
    }

    func encode(into buffer: inout PacketBuffer) {
        buffer.append(UInt8(truncatingIfNeeded: bytes.count))
        buffer.append(bytes)
        buffer.appendZeros(Self.maximumLength - bytes.count)
    }
}

/// Up to 251 bytes of extended advertising or scan response data, sent after their length (Vol 4, Part E, 7.8.54).
public struct AdvertisingDataFragment: Sendable, Equatable {
    /// The maximum length for one command, in bytes.
    public static let maximumLength = 251

    /// The AD structures, or a part of them: at most ``maximumLength`` bytes.
    public let bytes: [UInt8]

    /// - Parameter bytes: cut after 251 bytes; the rest belongs in further fragments.
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

/// Up to 252 bytes of periodic advertising data, sent after their length (Vol 4, Part E, 7.8.62).
public struct PeriodicAdvertisingDataFragment: Sendable, Equatable {
    /// The maximum length for one command, in bytes.
    public static let maximumLength = 252

    /// The AD structures, or a part of them: at most ``maximumLength`` bytes.
    public let bytes: [UInt8]

    /// - Parameter bytes: cut after 252 bytes; the rest belongs in further fragments.
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

/// Up to 249 bytes of data of a periodic advertising subevent, sent after their length (Vol 4, Part E, 7.8.125).
public struct PeriodicAdvertisingSubeventPayload: Sendable, Hashable {
    /// The maximum length, in bytes: what one command has room for.
    public static let maximumLength = 249

    /// The AD structures: at most ``maximumLength`` bytes.
    public let bytes: [UInt8]

    /// - Parameter bytes: cut after 249 bytes.
    public init(_ bytes: [UInt8] = []) {
        self.bytes = bytes.count > Self.maximumLength ? Array(bytes.prefix(Self.maximumLength)) : bytes
    }

    init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
        bytes = try reader.readFragment(maximumLength: Self.maximumLength, field: "Subevent_Data_Length")
    }

    func encode(into buffer: inout PacketBuffer) {
        buffer.append(UInt8(truncatingIfNeeded: bytes.count))
        buffer.append(bytes)
    }
}

/// Up to 247 bytes of a response to a periodic advertising subevent, sent after their length (Vol 4, Part E, 7.8.126).
public struct PeriodicAdvertisingResponsePayload: Sendable, Hashable {
    /// The maximum length, in bytes: what one command has room for.
    public static let maximumLength = 247

    /// The AD structures: at most ``maximumLength`` bytes.
    public let bytes: [UInt8]

    /// - Parameter bytes: cut after 247 bytes.
    public init(_ bytes: [UInt8] = []) {
        self.bytes = bytes.count > Self.maximumLength ? Array(bytes.prefix(Self.maximumLength)) : bytes
    }

    init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
        bytes = try reader.readFragment(maximumLength: Self.maximumLength, field: "Response_Data_Length")
    }

    func encode(into buffer: inout PacketBuffer) {
        buffer.append(UInt8(truncatingIfNeeded: bytes.count))
        buffer.append(bytes)
    }
}

extension ByteReader {
    fileprivate mutating func readFragment(
        maximumLength: Int,
        field: StaticString = "Advertising_Data"
    ) throws(PacketDecodingError) -> [UInt8] {
        let length = Int(try readUInt8())
        guard length <= maximumLength else { throw .invalidLength(length, field: field) }
        return [UInt8](copying: try readBytes(count: length))
    }
}
