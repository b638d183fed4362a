/// A request of a client about Bluetooth. Addresses are 48-bit numbers.
public enum BluetoothRequest: Hashable, Sendable {
    // Scanning.
    case subscribeAdvertisements
    case unsubscribeAdvertisements
    case setScannerMode(isActive: Bool)

    // Connections.
    case subscribeConnectionsFree
    /// Connects to a device.
    /// - `isRandom`: the type of the address; nil if the client does not know it.
    /// - `usesCache`: whether the client has the device's services from an earlier connection.
    case connect(UInt64, isRandom: Bool?, usesCache: Bool)
    case disconnect(UInt64)
    case pair(UInt64)
    case unpair(UInt64)
    case clearCache(UInt64)
    case setConnectionParameters(UInt64, RequestedConnectionParameters)

    // Attributes of a connected device.
    case getServices(UInt64)
    case read(UInt64, handle: UInt16, isDescriptor: Bool)
    case write(UInt64, handle: UInt16, [UInt8], withResponse: Bool, isDescriptor: Bool)
    case notify(UInt64, handle: UInt16, isEnabled: Bool)
}

/// The connection parameters that a client requests, in the units of HCI.
public struct RequestedConnectionParameters: Hashable, Sendable {
    /// The shortest interval, in units of 1.25 ms.
    public var minimumInterval: UInt32
    /// The longest interval, in units of 1.25 ms.
    public var maximumInterval: UInt32
    /// The number of connection events that the device may skip.
    public var latency: UInt32
    /// The supervision timeout, in units of 10 ms.
    public var timeout: UInt32

    public init(minimumInterval: UInt32, maximumInterval: UInt32, latency: UInt32, timeout: UInt32) {
        self.minimumInterval = minimumInterval
        self.maximumInterval = maximumInterval
        self.latency = latency
        self.timeout = timeout
    }
}
