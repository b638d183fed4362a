import BLEByteCoding

/// An event with received periodic advertising data, complete or as a fragment, version 2 with the event counter and
/// the subevent (Vol 4, Part E, 7.7.65.15).
public struct LEPeriodicAdvertisingReportV2: LEEventParameters, ~Escapable {
    public static let subeventCode: UInt8 = 0x25

    /// 0x0000 to 0x0EFF.
    public var syncHandle: UInt16
    /// In dBm; 127 if it is not known.
    public var txPower: Int8
    /// In dBm; 127 if it is not known.
    public var rssi: Int8
    /// 0xFF if there is no constant tone extension.
    public var cteType: UInt8
    /// The number of the periodic advertising event, which wraps after 0xFFFF.
    public var periodicEventCounter: UInt16
    /// 0x00 to 0x7F; 0xFF for a train without subevents.
    public var subevent: UInt8
    /// Whether the data is complete, continues in the next report, is truncated, or was not received.
    public var dataStatus: DataStatus
    /// The AD structures, or a part of them, at most 244 bytes. Longer data is cut when it is encoded.
    public var data: RawSpan

    /// Creates a report that borrows `data`.
    @_lifetime(copy data)
    public init(
        syncHandle: UInt16,
        txPower: Int8,
        rssi: Int8,
        cteType: UInt8 = 0xFF,
        periodicEventCounter: UInt16,
        subevent: UInt8,
        dataStatus: DataStatus,
        data: RawSpan
    ) {
        self.syncHandle = syncHandle
        self.txPower = txPower
        self.rssi = rssi
        self.cteType = cteType
        self.periodicEventCounter = periodicEventCounter
        self.subevent = subevent
        self.dataStatus = dataStatus
        self.data = data
    }

    @_lifetime(copy parameters)
    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        syncHandle = try reader.readUInt16()
        txPower = try reader.readInt8()
        rssi = try reader.readInt8()
        cteType = try reader.readUInt8()
        periodicEventCounter = try reader.readUInt16()
        subevent = try reader.readUInt8()
        dataStatus = DataStatus(rawValue: try reader.readUInt8())
        data = try reader.readBytes(count: Int(try reader.readUInt8()))
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(syncHandle)
        buffer.append(txPower)
        buffer.append(rssi)
        buffer.append(cteType)
        buffer.append(periodicEventCounter)
        buffer.append(subevent)
        buffer.append(dataStatus.rawValue)
        buffer.append(lengthPrefixed: data, limit: 244)
    }
}
