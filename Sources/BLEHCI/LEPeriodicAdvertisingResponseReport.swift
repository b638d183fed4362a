import BLEByteCoding

/// An event with the responses to one periodic advertising subevent (Vol 4, Part E, 7.7.65.37).
///
/// The fields of one response are adjacent; the fields of the next response follow.
public struct LEPeriodicAdvertisingResponseReport: LEEventParameters, ~Escapable {
    public static let subeventCode: UInt8 = 0x28

    /// The content of one response slot.
    public struct Response: ~Escapable {
        /// In dBm; 127 if it is not known.
        public var txPower: Int8
        /// In dBm; 127 if it is not known.
        public var rssi: Int8
        /// 0xFF if there is no constant tone extension.
        public var cteType: UInt8
        /// The slot of the response, 0x00 to 0xFE.
        public var responseSlot: UInt8
        /// Whether the data is complete, continues in a further report, or was not received.
        public var dataStatus: DataStatus
        /// The AD structures, or a part of them, at most 244 bytes. Longer data is cut when it is encoded.
        public var data: RawSpan

        /// Creates a response that borrows `data`.
        @_lifetime(copy data)
        public init(
            txPower: Int8 = 127,
            rssi: Int8 = 127,
            cteType: UInt8 = 0xFF,
            responseSlot: UInt8,
            dataStatus: DataStatus = .complete,
            data: RawSpan
        ) {
            self.txPower = txPower
            self.rssi = rssi
            self.cteType = cteType
            self.responseSlot = responseSlot
            self.dataStatus = dataStatus
            self.data = data
        }

        @_lifetime(copy reader)
        init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
            txPower = try reader.readInt8()
            rssi = try reader.readInt8()
            cteType = try reader.readUInt8()
            responseSlot = try reader.readUInt8()
            dataStatus = DataStatus(rawValue: try reader.readUInt8())
            data = try reader.readBytes(count: Int(try reader.readUInt8()))
        }

        /// The longest data that fits an event.
        private static let maximumDataLength = 244

        /// The number of bytes of the response in an event.
        public var byteCount: Int { 6 + min(data.byteCount, Self.maximumDataLength) }

        /// Appends the response to an event.
        public func encode(into buffer: inout PacketBuffer) {
            buffer.append(txPower)
            buffer.append(rssi)
            buffer.append(cteType)
            buffer.append(responseSlot)
            buffer.append(dataStatus.rawValue)
            buffer.append(lengthPrefixed: data, limit: Self.maximumDataLength)
        }
    }

    /// An iterator over the responses of one event.
    public struct Responses: ~Escapable {
        private var reader: ByteReader
        private var left: UInt8

        @_lifetime(copy reader)
        fileprivate init(reader: ByteReader, count: UInt8) {
            self.reader = reader
            left = count
        }

        /// The next response; nil at the end.
        ///
        /// - Throws: an error if the response is truncated or bytes follow the last one. No more responses follow then.
        @_lifetime(copy self)
        public mutating func next() throws(PacketDecodingError) -> Response? {
            guard left > 0 else {
                defer { _ = reader.readRemaining() }
                try reader.requireEnd()
                return nil
            }
            left -= 1
            do throws(PacketDecodingError) {
                return try Response(decoding: &reader)
            } catch {
                left = 0
                _ = reader.readRemaining()
                throw error
            }
        }
    }

    /// 0x00 to 0xEF.
    public let advertisingHandle: UInt8
    /// The subevent of the responses, 0x00 to 0x7F.
    public let subevent: UInt8
    /// 0x00 if the packet of the subevent was sent, 0x01 if it was not.
    public let txStatus: UInt8
    /// The number of responses in the event.
    public let numResponses: UInt8
    private let bytes: RawSpan

    /// Decodes the fields before the responses. The responses are decoded as they are iterated.
    @_lifetime(copy parameters)
    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        advertisingHandle = try reader.readUInt8()
        subevent = try reader.readUInt8()
        txStatus = try reader.readUInt8()
        numResponses = try reader.readUInt8()
        bytes = reader.readRemaining()
    }

    /// Creates an event that borrows the encoded responses.
    ///
    /// - Parameters:
    ///   - advertisingHandle: 0x00 to 0xEF.
    ///   - subevent: 0x00 to 0x7F.
    ///   - txStatus: 0x00 if the packet of the subevent was sent, 0x01 if it was not.
    ///   - numResponses: the number of encoded responses.
    ///   - responses: what ``Response/encode(into:)`` has appended for each response, at most 250 bytes.
    @_lifetime(copy responses)
    public init(
        advertisingHandle: UInt8,
        subevent: UInt8,
        txStatus: UInt8 = 0x00,
        numResponses: UInt8,
        responses: RawSpan
    ) {
        self.advertisingHandle = advertisingHandle
        self.subevent = subevent
        self.txStatus = txStatus
        self.numResponses = numResponses
        bytes = responses
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(advertisingHandle)
        buffer.append(subevent)
        buffer.append(txStatus)
        buffer.append(numResponses)
        buffer.append(bytes)
    }

    /// An iterator over the responses, from the first.
    public var responses: Responses {
        @_lifetime(copy self)
        get { Responses(reader: ByteReader(bytes), count: numResponses) }
    }
}
