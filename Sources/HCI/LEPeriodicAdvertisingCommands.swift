import BluetoothTypes
import ByteCoding

/// Sets how one advertising set's periodic advertising is done, version 1 (Vol 4, Part E, 7.8.61).
public struct LESetPeriodicAdvertisingParameters: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x003E)

    /// 0x00 to 0xEF.
    public var advertisingHandle: UInt8
    /// In units of 1.25 ms, 0x0006 to 0xFFFF.
    public var periodicAdvertisingIntervalMin: UInt16
    /// In units of 1.25 ms, 0x0006 to 0xFFFF.
    public var periodicAdvertisingIntervalMax: UInt16
    public var periodicAdvertisingProperties: PeriodicAdvertisingProperties

    public init(
        advertisingHandle: UInt8,
        periodicAdvertisingIntervalMin: UInt16,
        periodicAdvertisingIntervalMax: UInt16,
        periodicAdvertisingProperties: PeriodicAdvertisingProperties = []
    ) {
        self.advertisingHandle = advertisingHandle
        self.periodicAdvertisingIntervalMin = periodicAdvertisingIntervalMin
        self.periodicAdvertisingIntervalMax = periodicAdvertisingIntervalMax
        self.periodicAdvertisingProperties = periodicAdvertisingProperties
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        advertisingHandle = try reader.readUInt8()
        periodicAdvertisingIntervalMin = try reader.readUInt16()
        periodicAdvertisingIntervalMax = try reader.readUInt16()
        periodicAdvertisingProperties = PeriodicAdvertisingProperties(rawValue: try reader.readUInt16())
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(advertisingHandle)
        buffer.append(periodicAdvertisingIntervalMin)
        buffer.append(periodicAdvertisingIntervalMax)
        buffer.append(periodicAdvertisingProperties.rawValue)
    }
}

/// Sets the data of periodic advertising, whole or a fragment (Vol 4, Part E, 7.8.62).
public struct LESetPeriodicAdvertisingData: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x003F)

    /// 0x00 to 0xEF.
    public var advertisingHandle: UInt8
    public var operation: AdvertisingDataOperation
    /// At most 252 octets.
    public var advertisingData: PeriodicAdvertisingDataFragment

    public init(
        advertisingHandle: UInt8,
        operation: AdvertisingDataOperation = .complete,
        advertisingData: PeriodicAdvertisingDataFragment = PeriodicAdvertisingDataFragment()
    ) {
        self.advertisingHandle = advertisingHandle
        self.operation = operation
        self.advertisingData = advertisingData
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        advertisingHandle = try reader.readUInt8()
        operation = try reader.readValue("Operation")
        advertisingData = try PeriodicAdvertisingDataFragment(decoding: &reader)
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(advertisingHandle)
        buffer.append(operation.rawValue)
        advertisingData.encode(into: &buffer)
    }
}

/// Starts or stops periodic advertising (Vol 4, Part E, 7.8.63).
public struct LESetPeriodicAdvertisingEnable: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0040)

    public var enable: PeriodicAdvertisingEnable
    /// 0x00 to 0xEF.
    public var advertisingHandle: UInt8

    public init(enable: PeriodicAdvertisingEnable, advertisingHandle: UInt8) {
        self.enable = enable
        self.advertisingHandle = advertisingHandle
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        enable = PeriodicAdvertisingEnable(rawValue: try reader.readUInt8())
        advertisingHandle = try reader.readUInt8()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(enable.rawValue)
        buffer.append(advertisingHandle)
    }
}

/// Synchronises with a periodic advertiser (Vol 4, Part E, 7.8.67).
public struct LEPeriodicAdvertisingCreateSync: Command, Equatable {
    public typealias ReturnParameters = NoReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0044)

    public var options: PeriodicSyncOptions
    /// 0x00 to 0x0F.
    public var advertisingSID: UInt8
    /// Ignored when the periodic advertiser list is used.
    public var advertiserAddress: DeviceAddress
    /// In periodic advertising events, at most 0x01F3.
    public var skip: UInt16
    /// In units of 10 ms, 0x000A to 0x4000.
    public var syncTimeout: UInt16
    /// Bits of 7.8.67 that refuse a constant tone extension.
    public var syncCTEType: UInt8

    public init(
        options: PeriodicSyncOptions = [],
        advertisingSID: UInt8,
        advertiserAddress: DeviceAddress,
        skip: UInt16 = 0,
        syncTimeout: UInt16,
        syncCTEType: UInt8 = 0
    ) {
        self.options = options
        self.advertisingSID = advertisingSID
        self.advertiserAddress = advertiserAddress
        self.skip = skip
        self.syncTimeout = syncTimeout
        self.syncCTEType = syncCTEType
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        options = PeriodicSyncOptions(rawValue: try reader.readUInt8())
        advertisingSID = try reader.readUInt8()
        advertiserAddress = try reader.readDeviceAddress("Advertiser_Address")
        skip = try reader.readUInt16()
        syncTimeout = try reader.readUInt16()
        syncCTEType = try reader.readUInt8()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(options.rawValue)
        buffer.append(advertisingSID)
        buffer.append(advertiserAddress)
        buffer.append(skip)
        buffer.append(syncTimeout)
        buffer.append(syncCTEType)
    }
}

/// Gives up synchronising (Vol 4, Part E, 7.8.68).
public struct LEPeriodicAdvertisingCreateSyncCancel: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0045)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}
}

/// Stops receiving a periodic advertiser (Vol 4, Part E, 7.8.69).
public struct LEPeriodicAdvertisingTerminateSync: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0046)

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

/// What each periodic advertising PDU has besides data.
public struct PeriodicAdvertisingProperties: OptionSet, Hashable, Sendable {
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    public static let includeTxPower = PeriodicAdvertisingProperties(rawValue: 1 << 6)
}

/// Whether periodic advertising runs, and whether its PDUs carry the ADI field.
public struct PeriodicAdvertisingEnable: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let enabled = PeriodicAdvertisingEnable(rawValue: 1 << 0)
    public static let includeADI = PeriodicAdvertisingEnable(rawValue: 1 << 1)
}

/// How ``LEPeriodicAdvertisingCreateSync`` finds the advertiser and reports it.
public struct PeriodicSyncOptions: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The periodic advertiser list says whom to synchronise with; otherwise the command does.
    public static let usePeriodicAdvertiserList = PeriodicSyncOptions(rawValue: 1 << 0)
    public static let reportingInitiallyDisabled = PeriodicSyncOptions(rawValue: 1 << 1)
    public static let duplicateFilteringInitiallyEnabled = PeriodicSyncOptions(rawValue: 1 << 2)
}
