/// The assigned UUIDs that the stack itself uses (Assigned Numbers, 3).
extension BluetoothUUID {
    // Services.
    public static let genericAccessService = BluetoothUUID(0x1800 as UInt16)
    public static let genericAttributeService = BluetoothUUID(0x1801 as UInt16)

    // Declarations.
    public static let primaryService = BluetoothUUID(0x2800 as UInt16)
    public static let secondaryService = BluetoothUUID(0x2801 as UInt16)
    public static let include = BluetoothUUID(0x2802 as UInt16)
    public static let characteristic = BluetoothUUID(0x2803 as UInt16)

    // Descriptors.
    public static let characteristicExtendedProperties = BluetoothUUID(0x2900 as UInt16)
    public static let characteristicUserDescription = BluetoothUUID(0x2901 as UInt16)
    public static let clientCharacteristicConfiguration = BluetoothUUID(0x2902 as UInt16)
    public static let serverCharacteristicConfiguration = BluetoothUUID(0x2903 as UInt16)
    public static let characteristicPresentationFormat = BluetoothUUID(0x2904 as UInt16)
    public static let characteristicAggregateFormat = BluetoothUUID(0x2905 as UInt16)

    // Characteristics of the GAP and GATT services.
    public static let deviceName = BluetoothUUID(0x2A00 as UInt16)
    public static let appearance = BluetoothUUID(0x2A01 as UInt16)
    public static let peripheralPreferredConnectionParameters = BluetoothUUID(0x2A04 as UInt16)
    public static let serviceChanged = BluetoothUUID(0x2A05 as UInt16)
    public static let centralAddressResolution = BluetoothUUID(0x2AA6 as UInt16)
    public static let resolvablePrivateAddressOnly = BluetoothUUID(0x2AC9 as UInt16)
    public static let clientSupportedFeatures = BluetoothUUID(0x2B29 as UInt16)
    public static let databaseHash = BluetoothUUID(0x2B2A as UInt16)
    public static let serverSupportedFeatures = BluetoothUUID(0x2B3A as UInt16)
}
