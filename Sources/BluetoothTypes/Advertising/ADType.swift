/// The kind of data in an AD structure (Assigned Numbers, 2.3; Core Specification Supplement, Part A).
public struct ADType: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8

    @inlinable
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Discoverability and BR/EDR support: see ``AdvertisingFlags`` (1.3).
    public static let flags = ADType(rawValue: 0x01)
    /// Some of the device's 16-bit service UUIDs (1.1).
    public static let incompleteServiceUUIDs16 = ADType(rawValue: 0x02)
    /// All of the device's 16-bit service UUIDs (1.1).
    public static let completeServiceUUIDs16 = ADType(rawValue: 0x03)
    /// Some of the device's 32-bit service UUIDs (1.1).
    public static let incompleteServiceUUIDs32 = ADType(rawValue: 0x04)
    /// All of the device's 32-bit service UUIDs (1.1).
    public static let completeServiceUUIDs32 = ADType(rawValue: 0x05)
    /// Some of the device's 128-bit service UUIDs (1.1).
    public static let incompleteServiceUUIDs128 = ADType(rawValue: 0x06)
    /// All of the device's 128-bit service UUIDs (1.1).
    public static let completeServiceUUIDs128 = ADType(rawValue: 0x07)
    /// The start of the device's name, in UTF-8 (1.2).
    public static let shortenedLocalName = ADType(rawValue: 0x08)
    /// The whole name of the device, in UTF-8 (1.2).
    public static let completeLocalName = ADType(rawValue: 0x09)
    /// The power at which the packet was sent, in dBm: a signed byte (1.5).
    public static let txPowerLevel = ADType(rawValue: 0x0A)
    /// The minimum and maximum connection interval that the peripheral prefers, each 16 bits in units of 1.25 ms (1.9).
    public static let peripheralConnectionIntervalRange = ADType(rawValue: 0x12)
    /// 16-bit UUIDs of services that the peripheral looks for on a central (1.10).
    public static let solicitedServiceUUIDs16 = ADType(rawValue: 0x14)
    /// 128-bit UUIDs of services that the peripheral looks for on a central (1.10).
    public static let solicitedServiceUUIDs128 = ADType(rawValue: 0x15)
    /// A 16-bit service UUID and the data of that service (1.11).
    public static let serviceData16 = ADType(rawValue: 0x16)
    /// Public addresses of the devices that the advertising is for (1.13).
    public static let publicTargetAddress = ADType(rawValue: 0x17)
    /// Random addresses of the devices that the advertising is for (1.14).
    public static let randomTargetAddress = ADType(rawValue: 0x18)
    /// The external appearance of the device: see ``Appearance`` (1.12).
    public static let appearance = ADType(rawValue: 0x19)
    /// The advertising interval: 16 bits in units of 0.625 ms (1.15).
    public static let advertisingInterval = ADType(rawValue: 0x1A)
    /// The GAP roles of the device: see ``LERole`` (1.17).
    public static let leRole = ADType(rawValue: 0x1C)
    /// 32-bit UUIDs of services that the peripheral looks for on a central (1.10).
    public static let solicitedServiceUUIDs32 = ADType(rawValue: 0x1F)
    /// A 32-bit service UUID and the data of that service (1.11).
    public static let serviceData32 = ADType(rawValue: 0x20)
    /// A 128-bit service UUID and the data of that service (1.11).
    public static let serviceData128 = ADType(rawValue: 0x21)
    /// A URI, in UTF-8, whose first code point stands for its scheme (1.18).
    public static let uri = ADType(rawValue: 0x24)
    /// The advertising interval, if it needs 24 or 32 bits, in units of 0.625 ms (1.15).
    public static let advertisingIntervalLong = ADType(rawValue: 0x2F)
    /// AD structures that are encrypted: see ``EncryptedDataKeyMaterial`` (1.23).
    public static let encryptedData = ADType(rawValue: 0x31)
    /// A ``CompanyIdentifier`` and data that the company defines (1.4).
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
