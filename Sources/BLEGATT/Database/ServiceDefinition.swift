import BluetoothTypes

/// A service as an app declares it.
public struct ServiceDefinition: Hashable, Sendable {
    /// The type of the service.
    public var uuid: BluetoothUUID
    /// Whether the service is primary. If false, it is secondary.
    public var isPrimary: Bool
    /// The declaration's handle; nil for the next free handle.
    ///
    /// That is the handle after all services. If there are too few handles after it, the service gets the lowest free
    /// handles that are enough.
    public var handle: AttributeHandle?
    /// The last handle that is reserved for the service; nil for the handle of its last attribute.
    public var endHandle: AttributeHandle?
    /// The included services.
    public var includes: [Include]
    /// The characteristics, in the order of their handles.
    public var characteristics: [CharacteristicDefinition]

    /// A service that this one includes.
    public enum Include: Hashable, Sendable {
        /// The service at this index of those published together with this one.
        case index(Int)
        /// The service whose declaration has this handle.
        case handle(AttributeHandle)
    }

    /// Creates a definition. By default, the service is primary and gets the next free handles.
    public init(
        uuid: BluetoothUUID,
        isPrimary: Bool = true,
        handle: AttributeHandle? = nil,
        endHandle: AttributeHandle? = nil,
        includes: [Include] = [],
        characteristics: [CharacteristicDefinition] = []
    ) {
        self.uuid = uuid
        self.isPrimary = isPrimary
        self.handle = handle
        self.endHandle = endHandle
        self.includes = includes
        self.characteristics = characteristics
    }
}

/// A characteristic as an app declares it.
public struct CharacteristicDefinition: Hashable, Sendable {
    /// The source of a value.
    public enum Value: Hashable, Sendable {
        /// Kept by the server. Clients may write it if the permissions allow this, up to the maximum length, at most
        /// 512 bytes.
        case stored([UInt8], maximumLength: Int = 512)
        /// The app answers each read and write.
        case handled
    }

    /// The type of the characteristic.
    public var uuid: BluetoothUUID
    /// The declaration's handle; nil for the next free handle. The value's handle follows it.
    public var handle: AttributeHandle?
    /// The procedures that clients may use.
    public var properties: CharacteristicProperties
    /// The accesses to the value that are allowed, and the security that they need.
    public var permissions: AttributePermissions
    /// The source of the value.
    public var value: Value
    /// Whether the descriptors that the properties require are generated if they are not declared.
    public var generatesDescriptors: Bool
    /// The descriptors, in the order of their handles.
    public var descriptors: [DescriptorDefinition]

    /// Creates a definition. By default, the characteristic gets the next free handles.
    public init(
        uuid: BluetoothUUID,
        handle: AttributeHandle? = nil,
        properties: CharacteristicProperties,
        permissions: AttributePermissions,
        value: Value,
        generatesDescriptors: Bool = true,
        descriptors: [DescriptorDefinition] = []
    ) {
        self.uuid = uuid
        self.handle = handle
        self.properties = properties
        self.permissions = permissions
        self.value = value
        self.generatesDescriptors = generatesDescriptors
        self.descriptors = descriptors
    }
}

/// A descriptor as an app declares it.
///
/// The server generates the Client Characteristic Configuration and Extended Properties descriptors if the properties
/// require them. A declared descriptor replaces the generated one. The value of a declared Client Characteristic
/// Configuration is ignored, because each client has its own.
public struct DescriptorDefinition: Hashable, Sendable {
    /// The type of the descriptor.
    public var uuid: BluetoothUUID
    /// The handle; nil for the next free one.
    public var handle: AttributeHandle?
    /// The source of the value.
    public var value: CharacteristicDefinition.Value
    /// The accesses to the value that are allowed, and the security that they need.
    public var permissions: AttributePermissions

    /// Creates a definition. By default, the descriptor gets the next free handle, and can be read.
    public init(
        uuid: BluetoothUUID,
        handle: AttributeHandle? = nil,
        value: CharacteristicDefinition.Value,
        permissions: AttributePermissions = .read
    ) {
        self.uuid = uuid
        self.handle = handle
        self.value = value
        self.permissions = permissions
    }
}

/// A service that is in the database, with its handles.
public struct PublishedService: Hashable, Sendable {
    /// The type of the service.
    public let uuid: BluetoothUUID
    /// The handle of the declaration.
    public let handle: AttributeHandle
    /// The last handle that belongs to the service.
    public let endHandle: AttributeHandle
    /// The characteristics, in the order of the definition.
    public let characteristics: [PublishedCharacteristic]
    /// The revision of the database that added the service. Its handles may have belonged to another service before,
    /// and may belong to another one later.
    let revision: UInt64
}

/// A characteristic that is in the database, with its handles.
public struct PublishedCharacteristic: Hashable, Sendable {
    /// The type of the characteristic.
    public let uuid: BluetoothUUID
    /// The handle of the declaration.
    public let handle: AttributeHandle
    /// The handle of the value.
    public let valueHandle: AttributeHandle
    /// The handle of the Client Characteristic Configuration; nil if there is none.
    public let clientConfigurationHandle: AttributeHandle?
    /// The handles of the descriptors apart from the Client Characteristic Configuration. Generated descriptors come
    /// first.
    public let descriptorHandles: [AttributeHandle]
}

/// The reason why services cannot be published.
public enum DatabaseError: Error, Hashable, Sendable {
    /// The handle is in use, or is lower than an earlier handle of the service.
    case handleNotFree(AttributeHandle)
    /// There are too few free handles in a row.
    case handlesExhausted
    /// A value is longer than its maximum length, or longer than 512 bytes.
    case valueTooLong(BluetoothUUID, length: Int)
    /// A service includes a service that is not published.
    case noSuchInclude(BluetoothUUID)
}

extension DatabaseError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .handleNotFree(let handle): "attribute handle \(handle) is not free"
        case .handlesExhausted: "there are too few free attribute handles in a row"
        case .valueTooLong(let uuid, let length):
            "the value of \(uuid) has \(length) bytes, more than its maximum length"
        case .noSuchInclude(let uuid): "service \(uuid) includes a service that is not published"
        }
    }
}
