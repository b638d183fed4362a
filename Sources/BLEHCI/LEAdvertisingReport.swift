import BLEByteCoding
import BluetoothTypes

/// An event with one or more reports of received legacy advertising (Vol 4, Part E, 7.7.65.2).
///
/// The fields of one report are adjacent; the fields of the next report follow.
public struct LEAdvertisingReport: LEEventParameters, ~Escapable {
    public static let subeventCode: UInt8 = 0x02

    /// The type of the received advertising PDU.
    public struct EventType: RawRepresentable, Hashable, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// ADV_IND.
        public static let connectableScannableUndirected = EventType(rawValue: 0x00)
        /// ADV_DIRECT_IND.
        public static let connectableDirected = EventType(rawValue: 0x01)
        /// ADV_SCAN_IND.
        public static let scannableUndirected = EventType(rawValue: 0x02)
        /// ADV_NONCONN_IND.
        public static let nonConnectableUndirected = EventType(rawValue: 0x03)
        /// SCAN_RSP.
        public static let scanResponse = EventType(rawValue: 0x04)
    }

    /// One advertising PDU.
    public struct Report: ~Escapable {
        /// The type of the PDU, which says what the advertiser allows.
        public var eventType: EventType
        /// The advertiser's address.
        public var address: PeerAddress
        /// Advertising or scan response data, at most 31 bytes. Longer data is cut when it is encoded.
        public var data: RawSpan
        /// In dBm; 127 if it is not known.
        public var rssi: Int8

        /// Creates a report that borrows `data`.
        @_lifetime(copy data)
        public init(eventType: EventType, address: PeerAddress, data: RawSpan, rssi: Int8) {
            self.eventType = eventType
            self.address = address
            self.data = data
            self.rssi = rssi
        }

        @_lifetime(copy reader)
        init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
            eventType = EventType(rawValue: try reader.readUInt8())
            address = try PeerAddress(decoding: &reader)
            data = try reader.readBytes(count: Int(try reader.readUInt8()))
            rssi = try reader.readInt8()
        }

        func encode(into buffer: inout PacketBuffer) {
            buffer.append(eventType.rawValue)
            address.encode(into: &buffer)
            buffer.append(lengthPrefixed: data, limit: LegacyAdvertisingData.maximumLength)
            buffer.append(rssi)
        }

        /// Appends a whole event packet with only this report.
        public func encodePacket(into buffer: inout PacketBuffer) {
            let start = buffer.beginEvent(code: LEAdvertisingReport.code)
            buffer.append(LEAdvertisingReport.subeventCode)
            buffer.append(UInt8(1))
            encode(into: &buffer)
            buffer.endEvent(startingAt: start)
        }
    }

    /// An iterator over the reports of one event.
    public struct Reports: ~Escapable {
        private var reader: ByteReader
        private var left: UInt8

        @_lifetime(copy reader)
        fileprivate init(reader: ByteReader, count: UInt8) {
            self.reader = reader
            left = count
        }

        /// The next report; nil at the end.
        ///
        /// - Throws: an error if the report is truncated or bytes follow the last one. No more reports follow then.
        @_lifetime(copy self)
        public mutating func next() throws(PacketDecodingError) -> Report? {
            guard left > 0 else {
                defer { _ = reader.readRemaining() }
                try reader.requireEnd()
                return nil
            }
            left -= 1
            do throws(PacketDecodingError) {
                return try Report(decoding: &reader)
            } catch {
                left = 0
                _ = reader.readRemaining()
                throw error
            }
        }
    }

    /// The number of reports in the event, as its first byte says.
    public let numReports: UInt8
    private let bytes: RawSpan

    /// Decodes the number of reports. The reports are decoded as they are iterated.
    @_lifetime(copy parameters)
    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        numReports = try reader.readUInt8()
        bytes = reader.readRemaining()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(numReports)
        buffer.append(bytes)
    }

    /// An iterator over the reports, from the first.
    public var reports: Reports {
        @_lifetime(copy self)
        get { Reports(reader: ByteReader(bytes), count: numReports) }
    }
}
