import BLEATT
import BluetoothTypes

/// A service that a client has discovered.
public struct DiscoveredService: Hashable, Sendable {
    /// The type of the service.
    public let uuid: BluetoothUUID
    /// Whether the service is primary. If false, it is secondary.
    public let isPrimary: Bool
    /// The handle of the declaration.
    public let handle: AttributeHandle
    /// The last handle that belongs to the service.
    public let endHandle: AttributeHandle
    /// The services that this one includes; empty if they were not discovered.
    public internal(set) var includedServices: [IncludedService] = []
    /// The characteristics; empty if they were not discovered.
    public internal(set) var characteristics: [DiscoveredCharacteristic] = []

    /// Creates a service, for example from a cache.
    public init(
        uuid: BluetoothUUID,
        isPrimary: Bool,
        handle: AttributeHandle,
        endHandle: AttributeHandle,
        includedServices: [IncludedService] = [],
        characteristics: [DiscoveredCharacteristic] = []
    ) {
        self.uuid = uuid
        self.isPrimary = isPrimary
        self.handle = handle
        self.endHandle = endHandle
        self.includedServices = includedServices
        self.characteristics = characteristics
    }

    var range: HandleRange { HandleRange(start: handle, end: endHandle) }
}

/// A service that another includes.
public struct IncludedService: Hashable, Sendable {
    /// The type of the included service.
    public let uuid: BluetoothUUID
    /// The handle of the include declaration.
    public let declarationHandle: AttributeHandle
    /// The handle of the included service's own declaration.
    public let handle: AttributeHandle
    /// The last handle that belongs to the included service.
    public let endHandle: AttributeHandle

    /// Creates an included service, for example from a cache.
    public init(
        uuid: BluetoothUUID,
        declarationHandle: AttributeHandle,
        handle: AttributeHandle,
        endHandle: AttributeHandle
    ) {
        self.uuid = uuid
        self.declarationHandle = declarationHandle
        self.handle = handle
        self.endHandle = endHandle
    }
}

/// A characteristic that a client has discovered.
public struct DiscoveredCharacteristic: Hashable, Sendable {
    /// The type of the characteristic.
    public let uuid: BluetoothUUID
    /// The handle of the declaration.
    public let handle: AttributeHandle
    /// The handle of the value.
    public let valueHandle: AttributeHandle
    /// The last handle that belongs to the characteristic.
    public internal(set) var endHandle: AttributeHandle
    /// The procedures that the value can be used with.
    public let properties: CharacteristicProperties
    /// The descriptors; empty if they were not discovered.
    public internal(set) var descriptors: [DiscoveredDescriptor] = []

    /// Creates a characteristic, for example from a cache.
    public init(
        uuid: BluetoothUUID,
        handle: AttributeHandle,
        valueHandle: AttributeHandle,
        endHandle: AttributeHandle,
        properties: CharacteristicProperties,
        descriptors: [DiscoveredDescriptor] = []
    ) {
        self.uuid = uuid
        self.handle = handle
        self.valueHandle = valueHandle
        self.endHandle = endHandle
        self.properties = properties
        self.descriptors = descriptors
    }

    /// The range of handles for descriptors; nil if it is empty.
    public var descriptorRange: HandleRange? {
        guard let start = valueHandle.next, start <= endHandle else { return nil }
        return HandleRange(start: start, end: endHandle)
    }
}

/// A descriptor that a client has discovered.
public struct DiscoveredDescriptor: Hashable, Sendable {
    /// The type of the descriptor.
    public let uuid: BluetoothUUID
    /// The handle of the descriptor.
    public let handle: AttributeHandle

    /// Creates a descriptor, for example from a cache.
    public init(uuid: BluetoothUUID, handle: AttributeHandle) {
        self.uuid = uuid
        self.handle = handle
    }
}
