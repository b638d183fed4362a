/// The assigned UUIDs that the stack itself uses (Assigned Numbers, 3).
extension BluetoothUUID {
    // Services.
    /// The GAP service, 0x1800, which every GATT server has (Vol 3, Part C, 12).
    public static let genericAccessService = BluetoothUUID(0x1800 as UInt16)
    /// The GATT service, 0x1801 (Vol 3, Part G, 7).
    public static let genericAttributeService = BluetoothUUID(0x1801 as UInt16)

    // Declarations.
    /// The declaration of a primary service, 0x2800 (Vol 3, Part G, 3.1).
    public static let primaryService = BluetoothUUID(0x2800 as UInt16)
    /// The declaration of a secondary service, 0x2801, which only other services include (Vol 3, Part G, 3.1).
    public static let secondaryService = BluetoothUUID(0x2801 as UInt16)
    /// The declaration of an included service, 0x2802 (Vol 3, Part G, 3.2).
    public static let include = BluetoothUUID(0x2802 as UInt16)
    /// The declaration of a characteristic, 0x2803 (Vol 3, Part G, 3.3.1).
    public static let characteristic = BluetoothUUID(0x2803 as UInt16)

    // Descriptors.
    /// The descriptor 0x2900 with further properties of a characteristic (Vol 3, Part G, 3.3.3.1).
    public static let characteristicExtendedProperties = BluetoothUUID(0x2900 as UInt16)
    /// The descriptor 0x2901 with a text for the user (Vol 3, Part G, 3.3.3.2).
    public static let characteristicUserDescription = BluetoothUUID(0x2901 as UInt16)
    /// The descriptor 0x2902, with which a client enables notifications and indications (Vol 3, Part G, 3.3.3.3).
    public static let clientCharacteristicConfiguration = BluetoothUUID(0x2902 as UInt16)
    /// The descriptor 0x2903, with which a client enables broadcasts (Vol 3, Part G, 3.3.3.4).
    public static let serverCharacteristicConfiguration = BluetoothUUID(0x2903 as UInt16)
    /// The descriptor 0x2904 with the format and unit of a value (Vol 3, Part G, 3.3.3.5).
    public static let characteristicPresentationFormat = BluetoothUUID(0x2904 as UInt16)
    /// The descriptor 0x2905 with the handles of the presentation formats of a value (Vol 3, Part G, 3.3.3.6).
    public static let characteristicAggregateFormat = BluetoothUUID(0x2905 as UInt16)

    // Characteristics of the GAP and GATT services.
    /// Device Name, 0x2A00, of the GAP service (Vol 3, Part C, 12.1).
    public static let deviceName = BluetoothUUID(0x2A00 as UInt16)
    /// Appearance, 0x2A01, of the GAP service: see ``Appearance`` (Vol 3, Part C, 12.2).
    public static let appearance = BluetoothUUID(0x2A01 as UInt16)
    /// Peripheral Preferred Connection Parameters, 0x2A04, of the GAP service (Vol 3, Part C, 12.3).
    public static let peripheralPreferredConnectionParameters = BluetoothUUID(0x2A04 as UInt16)
    /// Service Changed, 0x2A05, of the GATT service: indicates the range of changed handles (Vol 3, Part G, 7.1).
    public static let serviceChanged = BluetoothUUID(0x2A05 as UInt16)
    /// Central Address Resolution, 0x2AA6, of the GAP service: whether a central resolves private addresses in directed
    /// advertising (Vol 3, Part C, 12.4).
    public static let centralAddressResolution = BluetoothUUID(0x2AA6 as UInt16)
    /// Resolvable Private Address Only, 0x2AC9, of the GAP service (Vol 3, Part C, 12.5).
    public static let resolvablePrivateAddressOnly = BluetoothUUID(0x2AC9 as UInt16)
    /// Client Supported Features, 0x2B29, of the GATT service (Vol 3, Part G, 7.2).
    public static let clientSupportedFeatures = BluetoothUUID(0x2B29 as UInt16)
    /// Database Hash, 0x2B2A, of the GATT service (Vol 3, Part G, 7.3).
    public static let databaseHash = BluetoothUUID(0x2B2A as UInt16)
    /// The key with which a device encrypts its advertising data, 0x2B88 (Vol 3, Part C, 12.6).
    public static let encryptedDataKeyMaterial = BluetoothUUID(0x2B88 as UInt16)
    /// Server Supported Features, 0x2B3A, of the GATT service (Vol 3, Part G, 7.4).
    public static let serverSupportedFeatures = BluetoothUUID(0x2B3A as UInt16)
}
