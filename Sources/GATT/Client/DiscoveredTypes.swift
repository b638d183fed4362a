import ATT
import BluetoothTypes

/// A service that a client has discovered.
public struct DiscoveredService: Hashable, Sendable {
    public let uuid: BluetoothUUID
    public let isPrimary: Bool
    /// The handle of the declaration.
    public let handle: AttributeHandle
    /// The last handle that belongs to the service.
    public let endHandle: AttributeHandle
    public internal(set) var includedServices: [IncludedService] = []
    public internal(set) var characteristics: [DiscoveredCharacteristic] = []

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
    public let uuid: BluetoothUUID
    /// The handle of the include declaration.
    public let declarationHandle: AttributeHandle
    /// The included service's own handles.
    public let handle: AttributeHandle
    public let endHandle: AttributeHandle

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
    public let uuid: BluetoothUUID
    /// The handle of the declaration.
    public let handle: AttributeHandle
    public let valueHandle: AttributeHandle
    /// The last handle that belongs to the characteristic.
    public internal(set) var endHandle: AttributeHandle
    public let properties: CharacteristicProperties
    public internal(set) var descriptors: [DiscoveredDescriptor] = []

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
    public let uuid: BluetoothUUID
    public let handle: AttributeHandle

    public init(uuid: BluetoothUUID, handle: AttributeHandle) {
        self.uuid = uuid
        self.handle = handle
    }
}
