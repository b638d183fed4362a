import ByteCoding

/// Synchronised with a periodic advertiser, or not, version 1 (Vol 4, Part E, 7.7.65.14).
public struct LEPeriodicAdvertisingSyncEstablished: LEEventParameters, Sendable, Equatable {
    public static let subeventCode: UInt8 = 0x0E

    public var status: ErrorCode
    /// 0x0000 to 0x0EFF.
    public var syncHandle: UInt16
    /// 0x00 to 0x0F.
    public var advertisingSID: UInt8
    public var advertiserAddress: PeerAddress
    public var advertiserPHY: PHY
    /// In units of 1.25 ms.
    public var periodicAdvertisingInterval: UInt16
    /// 0 is 500 ppm, 7 is 20 ppm.
    public var advertiserClockAccuracy: UInt8

    public init(
        status: ErrorCode = .success,
        syncHandle: UInt16,
        advertisingSID: UInt8,
        advertiserAddress: PeerAddress,
        advertiserPHY: PHY,
        periodicAdvertisingInterval: UInt16,
        advertiserClockAccuracy: UInt8
    ) {
        self.status = status
        self.syncHandle = syncHandle
        self.advertisingSID = advertisingSID
        self.advertiserAddress = advertiserAddress
        self.advertiserPHY = advertiserPHY
        self.periodicAdvertisingInterval = periodicAdvertisingInterval
        self.advertiserClockAccuracy = advertiserClockAccuracy
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        status = ErrorCode(rawValue: try reader.readUInt8())
        syncHandle = try reader.readUInt16()
        advertisingSID = try reader.readUInt8()
        advertiserAddress = try PeerAddress(decoding: &reader)
        advertiserPHY = PHY(rawValue: try reader.readUInt8())
        periodicAdvertisingInterval = try reader.readUInt16()
        advertiserClockAccuracy = try reader.readUInt8()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(status.rawValue)
        buffer.append(syncHandle)
        buffer.append(advertisingSID)
        advertiserAddress.encode(into: &buffer)
        buffer.append(advertiserPHY.rawValue)
        buffer.append(periodicAdvertisingInterval)
        buffer.append(advertiserClockAccuracy)
    }
}

/// Data of a periodic advertiser, whole or a fragment, version 1 (Vol 4, Part E, 7.7.65.15).
public struct LEPeriodicAdvertisingReport: LEEventParameters, ~Escapable {
    public static let subeventCode: UInt8 = 0x0F

    /// 0x0000 to 0x0EFF.
    public var syncHandle: UInt16
    /// In dBm; 127 when it is not known.
    public var txPower: Int8
    /// In dBm; 127 when it is not known.
    public var rssi: Int8
    /// 0xFF when there is no constant tone extension.
    public var cteType: UInt8
    public var dataStatus: DataStatus
    public var data: RawSpan

    @_lifetime(copy data)
    public init(
        syncHandle: UInt16,
        txPower: Int8,
        rssi: Int8,
        cteType: UInt8 = 0xFF,
        dataStatus: DataStatus,
        data: RawSpan
    ) {
        self.syncHandle = syncHandle
        self.txPower = txPower
        self.rssi = rssi
        self.cteType = cteType
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
        dataStatus = DataStatus(rawValue: try reader.readUInt8())
        data = try reader.readBytes(count: Int(try reader.readUInt8()))
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(syncHandle)
        buffer.append(txPower)
        buffer.append(rssi)
        buffer.append(cteType)
        buffer.append(dataStatus.rawValue)
        buffer.append(lengthPrefixed: data)
    }
}

/// A periodic advertiser is no longer heard (Vol 4, Part E, 7.7.65.16).
public struct LEPeriodicAdvertisingSyncLost: LEEventParameters, Sendable, Equatable {
    public static let subeventCode: UInt8 = 0x10

    /// 0x0000 to 0x0EFF.
    public var syncHandle: UInt16

    public init(syncHandle: UInt16) {
        self.syncHandle = syncHandle
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        syncHandle = try reader.readUInt16()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(syncHandle)
    }
}
