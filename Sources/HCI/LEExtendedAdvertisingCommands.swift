import BluetoothTypes
import ByteCoding

/// Sets the random address of one advertising set (Vol 4, Part E, 7.8.52).
public struct LESetAdvertisingSetRandomAddress: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0035)

    /// 0x00 to 0xEF.
    public var advertisingHandle: UInt8
    /// Sent without its type.
    public var randomAddress: DeviceAddress

    public init(advertisingHandle: UInt8, randomAddress: DeviceAddress) {
        self.advertisingHandle = advertisingHandle
        self.randomAddress = randomAddress
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        advertisingHandle = try reader.readUInt8()
        randomAddress = DeviceAddress(try reader.readUInt48(), isRandom: true)
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(advertisingHandle)
        buffer.appendUInt48(randomAddress.value)
    }
}

/// Sets how one advertising set is advertised, version 1 (Vol 4, Part E, 7.8.53).
public struct LESetExtendedAdvertisingParameters: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x0036)

    /// 0x00 to 0xEF.
    public var advertisingHandle: UInt8
    public var advertisingEventProperties: AdvertisingEventProperties
    /// In units of 0.625 ms, 0x000020 to 0xFFFFFF.
    public var primaryAdvertisingIntervalMin: UInt32
    /// In units of 0.625 ms, 0x000020 to 0xFFFFFF.
    public var primaryAdvertisingIntervalMax: UInt32
    public var primaryAdvertisingChannelMap: AdvertisingChannelMap
    public var ownAddressType: OwnAddressType
    /// Whom directed advertising, or a local resolvable private address, is for.
    public var peerAddress: DeviceAddress
    public var advertisingFilterPolicy: AdvertisingFilterPolicy
    /// In dBm, -127 to 20; 127 leaves it to the controller.
    public var advertisingTxPower: Int8
    public var primaryAdvertisingPHY: PHY
    /// In advertising events.
    public var secondaryAdvertisingMaxSkip: UInt8
    public var secondaryAdvertisingPHY: PHY
    /// 0x00 to 0x0F.
    public var advertisingSID: UInt8
    public var scanRequestNotificationEnable: Bool

    public init(
        advertisingHandle: UInt8,
        advertisingEventProperties: AdvertisingEventProperties = [],
        primaryAdvertisingIntervalMin: UInt32 = 0x000800,
        primaryAdvertisingIntervalMax: UInt32 = 0x000800,
        primaryAdvertisingChannelMap: AdvertisingChannelMap = .all,
        ownAddressType: OwnAddressType = .public,
        peerAddress: DeviceAddress = DeviceAddress(0, isRandom: false),
        advertisingFilterPolicy: AdvertisingFilterPolicy = .all,
        advertisingTxPower: Int8 = 0x7F,
        primaryAdvertisingPHY: PHY = .le1M,
        secondaryAdvertisingMaxSkip: UInt8 = 0,
        secondaryAdvertisingPHY: PHY = .le1M,
        advertisingSID: UInt8 = 0,
        scanRequestNotificationEnable: Bool = false
    ) {
        self.advertisingHandle = advertisingHandle
        self.advertisingEventProperties = advertisingEventProperties
        self.primaryAdvertisingIntervalMin = primaryAdvertisingIntervalMin
        self.primaryAdvertisingIntervalMax = primaryAdvertisingIntervalMax
        self.primaryAdvertisingChannelMap = primaryAdvertisingChannelMap
        self.ownAddressType = ownAddressType
        self.peerAddress = peerAddress
        self.advertisingFilterPolicy = advertisingFilterPolicy
        self.advertisingTxPower = advertisingTxPower
        self.primaryAdvertisingPHY = primaryAdvertisingPHY
        self.secondaryAdvertisingMaxSkip = secondaryAdvertisingMaxSkip
        self.secondaryAdvertisingPHY = secondaryAdvertisingPHY
        self.advertisingSID = advertisingSID
        self.scanRequestNotificationEnable = scanRequestNotificationEnable
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        advertisingHandle = try reader.readUInt8()
        advertisingEventProperties = AdvertisingEventProperties(rawValue: try reader.readUInt16())
        primaryAdvertisingIntervalMin = try reader.readUInt24()
        primaryAdvertisingIntervalMax = try reader.readUInt24()
        primaryAdvertisingChannelMap = AdvertisingChannelMap(rawValue: try reader.readUInt8())
        ownAddressType = try reader.readValue("Own_Address_Type")
        peerAddress = try reader.readDeviceAddress("Peer_Address")
        advertisingFilterPolicy = try reader.readValue("Advertising_Filter_Policy")
        advertisingTxPower = try reader.readInt8()
        primaryAdvertisingPHY = PHY(rawValue: try reader.readUInt8())
        secondaryAdvertisingMaxSkip = try reader.readUInt8()
        secondaryAdvertisingPHY = PHY(rawValue: try reader.readUInt8())
        advertisingSID = try reader.readUInt8()
        scanRequestNotificationEnable = try reader.readFlag("Scan_Request_Notification_Enable")
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(advertisingHandle)
        buffer.append(advertisingEventProperties.rawValue)
        buffer.appendUInt24(primaryAdvertisingIntervalMin)
        buffer.appendUInt24(primaryAdvertisingIntervalMax)
        buffer.append(primaryAdvertisingChannelMap.rawValue)
        buffer.append(ownAddressType.rawValue)
        buffer.append(peerAddress)
        buffer.append(advertisingFilterPolicy.rawValue)
        buffer.append(advertisingTxPower)
        buffer.append(primaryAdvertisingPHY.rawValue)
        buffer.append(secondaryAdvertisingMaxSkip)
        buffer.append(secondaryAdvertisingPHY.rawValue)
        buffer.append(advertisingSID)
        buffer.append(flag: scanRequestNotificationEnable)
    }

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        /// In dBm.
        public var selectedTxPower: Int8

        public init(selectedTxPower: Int8) {
            self.selectedTxPower = selectedTxPower
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            selectedTxPower = try reader.readInt8()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(selectedTxPower)
        }
    }
}

/// Sets the data of one advertising set, whole or a fragment (Vol 4, Part E, 7.8.54).
public struct LESetExtendedAdvertisingData: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0037)

    /// 0x00 to 0xEF.
    public var advertisingHandle: UInt8
    public var operation: AdvertisingDataOperation
    public var fragmentPreference: FragmentPreference
    /// At most 251 octets.
    public var advertisingData: AdvertisingDataFragment

    public init(
        advertisingHandle: UInt8,
        operation: AdvertisingDataOperation = .complete,
        fragmentPreference: FragmentPreference = .shouldNotFragment,
        advertisingData: AdvertisingDataFragment = AdvertisingDataFragment()
    ) {
        self.advertisingHandle = advertisingHandle
        self.operation = operation
        self.fragmentPreference = fragmentPreference
        self.advertisingData = advertisingData
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        advertisingHandle = try reader.readUInt8()
        operation = try reader.readValue("Operation")
        fragmentPreference = try reader.readValue("Fragment_Preference")
        advertisingData = try AdvertisingDataFragment(decoding: &reader)
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(advertisingHandle)
        buffer.append(operation.rawValue)
        buffer.append(fragmentPreference.rawValue)
        advertisingData.encode(into: &buffer)
    }
}

/// Sets the scan response data of one advertising set, whole or a fragment (Vol 4, Part E, 7.8.55).
public struct LESetExtendedScanResponseData: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x0038)

    /// 0x00 to 0xEF.
    public var advertisingHandle: UInt8
    public var operation: AdvertisingDataOperation
    public var fragmentPreference: FragmentPreference
    /// At most 251 octets.
    public var scanResponseData: AdvertisingDataFragment

    public init(
        advertisingHandle: UInt8,
        operation: AdvertisingDataOperation = .complete,
        fragmentPreference: FragmentPreference = .shouldNotFragment,
        scanResponseData: AdvertisingDataFragment = AdvertisingDataFragment()
    ) {
        self.advertisingHandle = advertisingHandle
        self.operation = operation
        self.fragmentPreference = fragmentPreference
        self.scanResponseData = scanResponseData
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        advertisingHandle = try reader.readUInt8()
        operation = try reader.readValue("Operation")
        fragmentPreference = try reader.readValue("Fragment_Preference")
        scanResponseData = try AdvertisingDataFragment(decoding: &reader)
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(advertisingHandle)
        buffer.append(operation.rawValue)
        buffer.append(fragmentPreference.rawValue)
        scanResponseData.encode(into: &buffer)
    }
}

/// Reads how much data one advertising set holds (Vol 4, Part E, 7.8.57).
public struct LEReadMaximumAdvertisingDataLength: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x003A)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        /// In octets, 0x001F to 0x0672.
        public var maxAdvertisingDataLength: UInt16

        public init(maxAdvertisingDataLength: UInt16) {
            self.maxAdvertisingDataLength = maxAdvertisingDataLength
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            maxAdvertisingDataLength = try reader.readUInt16()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(maxAdvertisingDataLength)
        }
    }
}

/// Reads how many advertising sets there can be at once (Vol 4, Part E, 7.8.58).
public struct LEReadNumberOfSupportedAdvertisingSets: Command, Equatable {
    public static let opcode = Opcode(group: 0x08, command: 0x003B)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}

    public struct ReturnParameters: HCI.ReturnParameters, Equatable {
        public var numSupportedAdvertisingSets: UInt8

        public init(numSupportedAdvertisingSets: UInt8) {
            self.numSupportedAdvertisingSets = numSupportedAdvertisingSets
        }

        public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError) {
            numSupportedAdvertisingSets = try reader.readUInt8()
        }

        public func encodeAfterStatus(into buffer: inout PacketBuffer) {
            buffer.append(numSupportedAdvertisingSets)
        }
    }
}

/// Forgets one advertising set (Vol 4, Part E, 7.8.59).
public struct LERemoveAdvertisingSet: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x003C)

    /// 0x00 to 0xEF.
    public var advertisingHandle: UInt8

    public init(advertisingHandle: UInt8) {
        self.advertisingHandle = advertisingHandle
    }

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        advertisingHandle = try reader.readUInt8()
        try reader.requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(advertisingHandle)
    }
}

/// Forgets all advertising sets (Vol 4, Part E, 7.8.60).
public struct LEClearAdvertisingSets: Command, Equatable {
    public typealias ReturnParameters = StatusReturnParameters

    public static let opcode = Opcode(group: 0x08, command: 0x003D)

    public init() {}

    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        try ByteReader(parameters).requireEnd()
    }

    public func encode(into buffer: inout PacketBuffer) {}
}
