/// The kind of data in an AD structure (Assigned Numbers, 2.3; Core Specification Supplement, Part A).
public struct ADType: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8

    @inlinable
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let flags = ADType(rawValue: 0x01)
    public static let incompleteServiceUUIDs16 = ADType(rawValue: 0x02)
    public static let completeServiceUUIDs16 = ADType(rawValue: 0x03)
    public static let incompleteServiceUUIDs32 = ADType(rawValue: 0x04)
    public static let completeServiceUUIDs32 = ADType(rawValue: 0x05)
    public static let incompleteServiceUUIDs128 = ADType(rawValue: 0x06)
    public static let completeServiceUUIDs128 = ADType(rawValue: 0x07)
    public static let shortenedLocalName = ADType(rawValue: 0x08)
    public static let completeLocalName = ADType(rawValue: 0x09)
    public static let txPowerLevel = ADType(rawValue: 0x0A)
    public static let peripheralConnectionIntervalRange = ADType(rawValue: 0x12)
    public static let solicitedServiceUUIDs16 = ADType(rawValue: 0x14)
    public static let solicitedServiceUUIDs128 = ADType(rawValue: 0x15)
    public static let serviceData16 = ADType(rawValue: 0x16)
    public static let publicTargetAddress = ADType(rawValue: 0x17)
    public static let randomTargetAddress = ADType(rawValue: 0x18)
    public static let appearance = ADType(rawValue: 0x19)
    public static let advertisingInterval = ADType(rawValue: 0x1A)
    public static let leRole = ADType(rawValue: 0x1C)
    public static let solicitedServiceUUIDs32 = ADType(rawValue: 0x1F)
    public static let serviceData32 = ADType(rawValue: 0x20)
    public static let serviceData128 = ADType(rawValue: 0x21)
    public static let uri = ADType(rawValue: 0x24)
    public static let advertisingIntervalLong = ADType(rawValue: 0x2F)
    public static let manufacturerSpecificData = ADType(rawValue: 0xFF)

    /// Whether it is a list of services, complete or not, of any UUID width.
    package var isServiceList: Bool { (0x02...0x07).contains(rawValue) }
}

/// The discoverability and BR/EDR support of a device (Core Specification Supplement, Part A, 1.3).
public struct AdvertisingFlags: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8

    @inlinable
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// LE Limited Discoverable Mode: discoverable for a limited time (Vol 3, Part C, 9.2.3).
    public static let limitedDiscoverable = AdvertisingFlags(rawValue: 1 << 0)
    /// LE General Discoverable Mode (Vol 3, Part C, 9.2.4).
    public static let generalDiscoverable = AdvertisingFlags(rawValue: 1 << 1)
    /// The device does not support BR/EDR.
    public static let brEdrNotSupported = AdvertisingFlags(rawValue: 1 << 2)
    /// The controller supports LE and BR/EDR to the same device at the same time.
    public static let simultaneousLEAndBREDR = AdvertisingFlags(rawValue: 1 << 3)
}

/// The GAP roles of a device (Core Specification Supplement, Part A, 1.17).
public enum LERole: UInt8, Sendable {
    /// The device is only a peripheral.
    case onlyPeripheral = 0
    /// The device is only a central.
    case onlyCentral = 1
    /// The device has both roles and prefers to be the peripheral.
    case peripheralPreferred = 2
    /// The device has both roles and prefers to be the central.
    case centralPreferred = 3
}
