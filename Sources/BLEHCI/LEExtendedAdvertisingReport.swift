import BLEByteCoding
import BluetoothTypes

/// An event with one or more reports of advertising received by extended scanning (Vol 4, Part E, 7.7.65.13).
///
/// The fields of one report are adjacent; the fields of the next report follow.
public struct LEExtendedAdvertisingReport: LEEventParameters, ~Escapable {
    public static let subeventCode: UInt8 = 0x0D

    /// The properties of the received advertising, and the status of its data.
    public struct EventType: OptionSet, Hashable, Sendable {
        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }

        /// The advertiser accepts connection requests.
        public static let connectable = EventType(rawValue: 1 << 0)
        /// The advertiser accepts scan requests.
        public static let scannable = EventType(rawValue: 1 << 1)
        /// The advertising is for one device; ``Report/directAddress`` is its target.
        public static let directed = EventType(rawValue: 1 << 2)
        /// The data is a scan response.
        public static let scanResponse = EventType(rawValue: 1 << 3)
        /// The PDU was a legacy PDU: the report has no SID, and its data is complete.
        public static let legacyPDU = EventType(rawValue: 1 << 4)

        /// Bits 5 and 6.
        public var dataStatus: DataStatus { DataStatus(rawValue: UInt8(truncatingIfNeeded: rawValue >> 5 & 0b11)) }

        /// The same type with another data status, of which two bits are used.
        public func with(_ dataStatus: DataStatus) -> EventType {
            EventType(rawValue: rawValue & ~0b110_0000 | UInt16(dataStatus.rawValue & 0b11) << 5)
        }
    }

    /// One advertising PDU, or a part of the data of a sequence of PDUs.
    public struct Report: ~Escapable {
        /// The properties of the advertising, and whether the data is complete.
        public var eventType: EventType
        /// The advertiser's address, or ``PeerAddress/anonymous``.
        public var address: PeerAddress
        /// The PHY of the primary channels: LE 1M or LE Coded.
        public var primaryPHY: PHY
        /// ``PHY/none`` if there was no PDU on the secondary channels.
        public var secondaryPHY: PHY
        /// 0x00 to 0x0F; 0xFF if there is none.
        public var advertisingSID: UInt8
        /// In dBm; 127 if it is not known.
        public var txPower: Int8
        /// In dBm; 127 if it is not known.
        public var rssi: Int8
        /// In units of 1.25 ms; 0 if there is no periodic advertising.
        public var periodicAdvertisingInterval: UInt16
        /// The target, if the advertising was directed.
        public var directAddress: PeerAddress
        /// Advertising or scan response data, at most 229 bytes. Longer data is cut when it is encoded.
        public var data: RawSpan

        /// Creates a report that borrows `data`. The defaults are those of undirected legacy advertising of unknown
        /// power.
        @_lifetime(copy data)
        public init(
            eventType: EventType,
            address: PeerAddress,
            primaryPHY: PHY = .le1M,
            secondaryPHY: PHY = .none,
            advertisingSID: UInt8 = 0xFF,
            txPower: Int8 = 127,
            rssi: Int8,
            periodicAdvertisingInterval: UInt16 = 0,
            directAddress: PeerAddress = PeerAddress(type: .public, value: 0),
            data: RawSpan
        ) {
            self.eventType = eventType
            self.address = address
            self.primaryPHY = primaryPHY
            self.secondaryPHY = secondaryPHY
            self.advertisingSID = advertisingSID
            self.txPower = txPower
            self.rssi = rssi
            self.periodicAdvertisingInterval = periodicAdvertisingInterval
            self.directAddress = directAddress
            self.data = data
        }

        @_lifetime(copy reader)
        init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
            eventType = EventType(rawValue: try reader.readUInt16())
            address = try PeerAddress(decoding: &reader)
            primaryPHY = PHY(rawValue: try reader.readUInt8())
            secondaryPHY = PHY(rawValue: try reader.readUInt8())
            advertisingSID = try reader.readUInt8()
            txPower = try reader.readInt8()
            rssi = try reader.readInt8()
            periodicAdvertisingInterval = try reader.readUInt16()
            directAddress = try PeerAddress(decoding: &reader)
            data = try reader.readBytes(count: Int(try reader.readUInt8()))
        }

        func encode(into buffer: inout PacketBuffer) {
            buffer.append(eventType.rawValue)
            address.encode(into: &buffer)
            buffer.append(primaryPHY.rawValue)
            buffer.append(secondaryPHY.rawValue)
            buffer.append(advertisingSID)
            buffer.append(txPower)
            buffer.append(rssi)
            buffer.append(periodicAdvertisingInterval)
            directAddress.encode(into: &buffer)
            buffer.append(lengthPrefixed: data, limit: 229)
        }

        /// Appends a whole event packet with only this report.
        public func encodePacket(into buffer: inout PacketBuffer) {
            let start = buffer.beginEvent(code: LEExtendedAdvertisingReport.code)
            buffer.append(LEExtendedAdvertisingReport.subeventCode)
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
