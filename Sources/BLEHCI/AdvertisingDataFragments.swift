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
public struct AdvertisingDataFragment: Sendable, Equatable, LengthPrefixedData {
    /// The maximum length for one command, in bytes.
    public static let maximumLength = 251

    /// The AD structures, or a part of them: at most ``maximumLength`` bytes.
    public let bytes: [UInt8]

    /// - Parameter bytes: cut after 251 bytes; the rest belongs in further fragments.
    public init(_ bytes: [UInt8] = []) {
        self.bytes = bytes.count > Self.maximumLength ? Array(bytes.prefix(Self.maximumLength)) : bytes
    }
}

/// Up to 252 bytes of periodic advertising data, sent after their length (Vol 4, Part E, 7.8.62).
public struct PeriodicAdvertisingDataFragment: Sendable, Equatable, LengthPrefixedData {
    /// The maximum length for one command, in bytes.
    public static let maximumLength = 252

    /// The AD structures, or a part of them: at most ``maximumLength`` bytes.
    public let bytes: [UInt8]

    /// - Parameter bytes: cut after 252 bytes; the rest belongs in further fragments.
    public init(_ bytes: [UInt8] = []) {
        self.bytes = bytes.count > Self.maximumLength ? Array(bytes.prefix(Self.maximumLength)) : bytes
    }
}

/// Up to 249 bytes of data of a periodic advertising subevent, sent after their length (Vol 4, Part E, 7.8.125).
public struct PeriodicAdvertisingSubeventPayload: Sendable, Hashable, LengthPrefixedData {
    /// The maximum length, in bytes: what one command has room for.
    public static let maximumLength = 249

    /// The AD structures: at most ``maximumLength`` bytes.
    public let bytes: [UInt8]

    /// - Parameter bytes: cut after 249 bytes.
    public init(_ bytes: [UInt8] = []) {
        self.bytes = bytes.count > Self.maximumLength ? Array(bytes.prefix(Self.maximumLength)) : bytes
    }

    static let field: StaticString = "Subevent_Data_Length"
}

/// Up to 247 bytes of a response to a periodic advertising subevent, sent after their length (Vol 4, Part E, 7.8.126).
public struct PeriodicAdvertisingResponsePayload: Sendable, Hashable, LengthPrefixedData {
    /// The maximum length, in bytes: what one command has room for.
    public static let maximumLength = 247

    /// The AD structures: at most ``maximumLength`` bytes.
    public let bytes: [UInt8]

    /// - Parameter bytes: cut after 247 bytes.
    public init(_ bytes: [UInt8] = []) {
        self.bytes = bytes.count > Self.maximumLength ? Array(bytes.prefix(Self.maximumLength)) : bytes
    }

    static let field: StaticString = "Response_Data_Length"
}

/// Data of a command that is sent after its length.
protocol LengthPrefixedData {
    /// The maximum length, in bytes.
    static var maximumLength: Int { get }
    /// The name of the parameter, for errors.
    static var field: StaticString { get }
    var bytes: [UInt8] { get }
    init(_ bytes: [UInt8])
}

extension LengthPrefixedData {
    static var field: StaticString { "Advertising_Data" }

    init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
        let length = Int(try reader.readUInt8())
        guard length <= Self.maximumLength else { throw .invalidLength(length, field: Self.field) }
        self.init([UInt8](copying: try reader.readBytes(count: length)))
    }

    func encode(into buffer: inout PacketBuffer) {
        buffer.append(UInt8(truncatingIfNeeded: bytes.count))
        buffer.append(bytes)
    }
}
