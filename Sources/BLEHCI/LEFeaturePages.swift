import BLEByteCoding

/// The features of a link layer on all pages: 64 bits of page 0, then 192 bits of each of the pages 1 to 10 (Vol 6,
/// Part B, 4.6).
public struct LEFeaturePages: Hashable, Sendable {
    /// The length in bytes.
    public static let length = 248

    /// The bits of all pages, from bit 0 of the first byte.
    public let bytes: [UInt8]

    /// - Parameter bytes: 248 bytes. Missing ones are zero; further ones are dropped.
    public init(_ bytes: [UInt8]) {
        self.bytes = Array(bytes.prefix(Self.length)) + repeatElement(0, count: max(0, Self.length - bytes.count))
    }

    /// The features of page 0.
    public var page0: LEFeatures {
        LEFeatures(rawValue: bytes.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) })
    }

    /// Whether a bit is set; false outside the pages.
    ///
    /// - Parameter bit: the number of the feature's bit, 0 to 1983, as in ``LESetHostFeatureV2``.
    public func contains(bit: Int) -> Bool {
        bytes.indices.contains(bit >> 3) && bytes[bit >> 3] >> UInt8(bit & 7) & 1 == 1
    }

    init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
        bytes = [UInt8](copying: try reader.readBytes(count: Self.length))
    }

    func encode(into buffer: inout PacketBuffer) {
        buffer.append(bytes)
    }
}
