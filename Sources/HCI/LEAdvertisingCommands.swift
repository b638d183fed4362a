import BluetoothTypes
import ByteCoding

/// Sets how legacy advertising is done (Vol 4, Part E, 7.8.5).
public struct LESetAdvertisingParameters: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0006)

    /// In units of 0.625 ms, 0x0020 to 0x4000.
    public var advertisingIntervalMin: UInt16
    /// In units of 0.625 ms, 0x0020 to 0x4000.
    public var advertisingIntervalMax: UInt16
    public var advertisingType: AdvertisingType
    public var ownAddressType: OwnAddressType
    /// Whom directed advertising, or a local resolvable private address, is for.
    public var peerAddress: DeviceAddress
    public var advertisingChannelMap: AdvertisingChannelMap
    public var advertisingFilterPolicy: AdvertisingFilterPolicy

    public init(
        advertisingIntervalMin: UInt16 = 0x0800,
        advertisingIntervalMax: UInt16 = 0x0800,
        advertisingType: AdvertisingType = .connectableScannableUndirected,
        ownAddressType: OwnAddressType = .public,
        peerAddress: DeviceAddress = DeviceAddress(0, isRandom: false),
        advertisingChannelMap: AdvertisingChannelMap = .all,
        advertisingFilterPolicy: AdvertisingFilterPolicy = .all
    ) {
        self.advertisingIntervalMin = advertisingIntervalMin
        self.advertisingIntervalMax = advertisingIntervalMax
        self.advertisingType = advertisingType
        self.ownAddressType = ownAddressType
        self.peerAddress = peerAddress
        self.advertisingChannelMap = advertisingChannelMap
        self.advertisingFilterPolicy = advertisingFilterPolicy
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        advertisingIntervalMin = try reader.readUInt16()
        advertisingIntervalMax = try reader.readUInt16()
        advertisingType = try reader.readValue("Advertising_Type")
        ownAddressType = try reader.readValue("Own_Address_Type")
        peerAddress = try reader.readDeviceAddress("Peer_Address")
        advertisingChannelMap = AdvertisingChannelMap(rawValue: try reader.readUInt8())
        advertisingFilterPolicy = try reader.readValue("Advertising_Filter_Policy")
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(advertisingIntervalMin)
        buffer.append(advertisingIntervalMax)
        buffer.append(advertisingType.rawValue)
        buffer.append(ownAddressType.rawValue)
        buffer.append(peerAddress)
        buffer.append(advertisingChannelMap.rawValue)
        buffer.append(advertisingFilterPolicy.rawValue)
    }
}

/// Reads the power of legacy advertising (Vol 4, Part E, 7.8.6).
public struct LEReadAdvertisingPhysicalChannelTxPower: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x0007)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        /// In dBm.
        public var transmitPowerLevel: Int8

        public init(transmitPowerLevel: Int8) {
            self.transmitPowerLevel = transmitPowerLevel
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            transmitPowerLevel = try reader.readInt8()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(transmitPowerLevel)
        }
    }
}

/// Sets the data of legacy advertising (Vol 4, Part E, 7.8.7).
public struct LESetAdvertisingData: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0008)

    /// At most 31 octets.
    public var advertisingData: LegacyAdvertisingData

    public init(advertisingData: LegacyAdvertisingData = LegacyAdvertisingData()) {
        self.advertisingData = advertisingData
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        advertisingData = try LegacyAdvertisingData(decoding: &reader)
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        advertisingData.encode(into: &buffer)
    }
}

/// Sets the data that legacy advertising gives to active scanners (Vol 4, Part E, 7.8.8).
public struct LESetScanResponseData: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0009)

    /// At most 31 octets.
    public var scanResponseData: LegacyAdvertisingData

    public init(scanResponseData: LegacyAdvertisingData = LegacyAdvertisingData()) {
        self.scanResponseData = scanResponseData
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        scanResponseData = try LegacyAdvertisingData(decoding: &reader)
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        scanResponseData.encode(into: &buffer)
    }
}

/// Starts or stops legacy advertising (Vol 4, Part E, 7.8.9).
public struct LESetAdvertisingEnable: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x000A)

    public var advertisingEnable: Bool

    public init(advertisingEnable: Bool) {
        self.advertisingEnable = advertisingEnable
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        advertisingEnable = try reader.readFlag("Advertising_Enable")
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(flag: advertisingEnable)
    }
}

/// Up to 31 octets of advertising or scan response data, sent as a length and 31 octets padded with zeros.
public struct LegacyAdvertisingData: Sendable, Equatable {
    /// The most that one legacy PDU holds, in octets.
    public static let maximumLength = 31

    /// The significant part.
    public let bytes: [UInt8]

    /// - Parameter bytes: cut after 31 octets.
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
