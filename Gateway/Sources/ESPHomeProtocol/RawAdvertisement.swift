import NIOCore

/// An advertisement as clients receive it.
public struct RawAdvertisement: Hashable, Sendable {
    /// The advertiser's address as a 48-bit number.
    public var address: UInt64
    /// The signal strength in dBm.
    public var rssi: Int
    /// Whether the address is random.
    public var isRandom: Bool
    /// The AD structures.
    public var data: [UInt8]

    public init(address: UInt64, rssi: Int, isRandom: Bool, data: [UInt8]) {
        self.address = address
        self.rssi = rssi
        self.isRandom = isRandom
        self.data = data
    }
}

/// The payload of a message with several advertisements, encoded as they arrive.
public struct AdvertisementBatch: Hashable, Sendable {
    /// The greatest number of advertisements in a message.
    public static let maximumCount = 16

    /// The number of advertisements.
    public private(set) var count = 0
    private var payload = ByteBuffer()

    /// Creates an empty batch.
    public init() {}

    /// Whether the batch has as many advertisements as it may.
    public var isFull: Bool { count >= Self.maximumCount }

    /// Appends an advertisement.
    public mutating func append(_ advertisement: RawAdvertisement) {
        if count == 0 { payload.reserveCapacity(Self.maximumCount * 56) }
        // The length of the advertisement is written before it, so it is computed first.
        let rssi = UInt64(bitPattern: Int64(advertisement.rssi << 1 ^ advertisement.rssi >> 63))
        var length = 0
        if advertisement.address != 0 { length += 1 + variableLengthByteCount(advertisement.address) }
        if rssi != 0 { length += 1 + variableLengthByteCount(rssi) }
        if advertisement.isRandom { length += 2 }
        let dataCount = advertisement.data.count
        if dataCount > 0 { length += 1 + variableLengthByteCount(UInt64(dataCount)) + dataCount }
        payload.writeVariableLength(1 << 3 | 2)
        payload.writeVariableLength(UInt64(length))
        payload.writeField(1, number: advertisement.address)
        payload.writeField(2, number: rssi)
        payload.writeField(3, number: advertisement.isRandom ? 1 : 0)
        payload.writeField(4, bytes: advertisement.data)
        count += 1
    }

    /// The message with the advertisements.
    public var message: Message { Message(.rawAdvertisementsResponse, payload: payload) }
}
