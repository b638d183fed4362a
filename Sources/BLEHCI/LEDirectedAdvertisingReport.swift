import BLEByteCoding
import BluetoothTypes

/// An event with reports of advertising directed to a resolvable private address (Vol 4, Part E, 7.7.65.11).
public struct LEDirectedAdvertisingReport: LEEventParameters, ~Escapable {
    public static let subeventCode: UInt8 = 0x0B

    /// One advertising PDU.
    public struct Report: Sendable, Equatable {
        /// The length of a report in bytes.
        static let length = 16

        /// Always ``LEAdvertisingReport/EventType/connectableDirected``.
        public var eventType: LEAdvertisingReport.EventType
        /// The advertiser's address.
        public var address: PeerAddress
        /// The target of the directed advertising.
        public var directAddress: PeerAddress
        /// In dBm; 127 if it is not known.
        public var rssi: Int8

        /// Creates a report.
        public init(
            eventType: LEAdvertisingReport.EventType = .connectableDirected,
            address: PeerAddress,
            directAddress: PeerAddress,
            rssi: Int8
        ) {
            self.eventType = eventType
            self.address = address
            self.directAddress = directAddress
            self.rssi = rssi
        }

        init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
            eventType = LEAdvertisingReport.EventType(rawValue: try reader.readUInt8())
            address = try PeerAddress(decoding: &reader)
            directAddress = try PeerAddress(decoding: &reader)
            rssi = try reader.readInt8()
        }

        func encode(into buffer: inout PacketBuffer) {
            buffer.append(eventType.rawValue)
            address.encode(into: &buffer)
            directAddress.encode(into: &buffer)
            buffer.append(rssi)
        }

        /// Appends a whole event packet with only this report.
        public func encodePacket(into buffer: inout PacketBuffer) {
            let start = buffer.beginEvent(code: LEDirectedAdvertisingReport.code)
            buffer.append(LEDirectedAdvertisingReport.subeventCode)
            buffer.append(UInt8(1))
            encode(into: &buffer)
            buffer.endEvent(startingAt: start)
        }
    }

    /// An iterator over the reports of one event.
    public struct Reports: ~Escapable {
        private var reader: ByteReader

        @_lifetime(copy reader)
        fileprivate init(reader: ByteReader) {
            self.reader = reader
        }

        /// The next report; nil at the end.
        public mutating func next() -> Report? {
            try? Report(decoding: &reader)
        }
    }

    private let bytes: RawSpan

    /// - Throws: an error if the length does not match the number of reports in the first byte.
    @_lifetime(copy parameters)
    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        let numReports = Int(try reader.readUInt8())
        bytes = try reader.readBytes(count: numReports * Report.length)
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(UInt8(truncatingIfNeeded: numReports))
        buffer.append(bytes)
    }

    /// The number of reports in the event.
    public var numReports: Int { bytes.byteCount / Report.length }

    /// An iterator over the reports, from the first.
    public var reports: Reports {
        @_lifetime(copy self)
        get { Reports(reader: ByteReader(bytes)) }
    }
}
