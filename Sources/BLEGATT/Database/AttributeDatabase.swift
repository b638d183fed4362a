import BLEATT
import BLEByteCoding
import BluetoothTypes

/// One attribute of the server.
struct Attribute {
    /// The source of its value.
    enum Source {
        case stored(maximumLength: Int)
        case handled
        /// A separate value for each client; the bits that may be set.
        case clientConfiguration(ClientConfiguration, valueHandle: AttributeHandle)
        case clientSupportedFeatures
    }

    /// The properties of an attribute without its value. Copying it changes no reference counts.
    struct Metadata {
        let handle: AttributeHandle
        let type: BluetoothUUID
        let source: Source
        let permissions: AttributePermissions
        /// The last handle of the service for a service declaration; otherwise the attribute's own handle.
        let groupEnd: AttributeHandle
        /// The revision of the database that added the attribute. Requests and prepared writes that arrived earlier do
        /// not reach it: its handle may have belonged to a removed attribute then.
        let publishedAt: UInt64
    }

    let metadata: Metadata
    /// The value, if the server stores it; otherwise empty.
    fileprivate(set) var value: [UInt8]

    init(_ metadata: Metadata, value: [UInt8]) {
        self.metadata = metadata
        self.value = value
    }

    var handle: AttributeHandle { metadata.handle }
    var type: BluetoothUUID { metadata.type }

    /// The value, if the server has one that is the same for all clients.
    var storedValue: [UInt8]? {
        if case .stored = metadata.source { value } else { nil }
    }

    /// Whether it is an include declaration that names the service whose declaration has this handle. The value begins
    /// with that handle (Vol 3, Part G, 3.2).
    func includes(serviceAt handle: AttributeHandle) -> Bool {
        guard type == .include, value.count >= 2 else { return false }
        return UInt16(value[0]) | UInt16(value[1]) << 8 == handle.rawValue
    }
}

/// The attributes of a server in the order of their handles (Vol 3, Part F, 3.2, and Part G, 2.6).
///
/// A lookup by handle takes constant time. A range is walked from its first attribute.
struct AttributeDatabase {
    /// Whether any attribute needs an encrypted link to be read or written.
    var hasProtectedAttributes: Bool {
        attributes.contains { !$0.metadata.permissions.isDisjoint(with: .anyEncrypted) }
    }

    private(set) var attributes: [Attribute] = []
    /// For each handle, the index of the first attribute at or after it.
    private var indices: [UInt16] = []
    private(set) var services: [PublishedService] = []

    /// Creates an empty database.
    init() {}

    // MARK: Looking up

    func index(of handle: AttributeHandle) -> Int? {
        let index = firstIndex(atOrAfter: handle)
        return index < attributes.count && attributes[index].handle == handle ? index : nil
    }

    /// The index of an attribute and its metadata; nil if there is none.
    func lookUp(_ handle: AttributeHandle) -> (index: Int, metadata: Attribute.Metadata)? {
        index(of: handle).map { ($0, attributes[$0].metadata) }
    }

    func attribute(_ handle: AttributeHandle) -> Attribute? {
        index(of: handle).map { attributes[$0] }
    }

    /// The index of the first attribute at or after a handle; the number of attributes if there is none.
    func firstIndex(atOrAfter handle: AttributeHandle) -> Int {
        let position = Int(handle.rawValue)
        return position < indices.count ? Int(indices[position]) : attributes.count
    }

    /// The metadata of a characteristic value and of its Client Characteristic Configuration; nil if there is none.
    func configurable(
        _ valueHandle: AttributeHandle
    ) -> (value: Attribute.Metadata, configuration: Attribute.Metadata)? {
        guard let value = index(of: valueHandle) else { return nil }
        var index = value + 1
        while index < attributes.count {
            if case .clientConfiguration(_, valueHandle) = attributes[index].metadata.source {
                return (attributes[value].metadata, attributes[index].metadata)
            }
            switch attributes[index].type {
            case .characteristic, .primaryService, .secondaryService: return nil
            default: index += 1
            }
        }
        return nil
    }

    /// Whether the attribute at an index is the value of a characteristic with the property Authenticated Signed Writes
    /// (Vol 3, Part G, 3.3.1.1).
    func permitsSignedWrites(at index: Int) -> Bool {
        // The characteristic's declaration precedes the value, and begins with the properties.
        guard index > 0, attributes[index - 1].type == .characteristic,
            let properties = attributes[index - 1].value.first
        else { return false }
        return CharacteristicProperties(rawValue: properties).contains(.authenticatedSignedWrites)
    }

    // MARK: Changing

    /// Sets the value of an attribute that the server stores.
    mutating func setValue(_ value: [UInt8], at index: Int) {
        attributes[index].value = value
    }

    /// Sets the value of an attribute that the server stores. Its memory is kept, unless the old value is shared.
    mutating func setValue(copying value: RawSpan, at index: Int) {
        attributes[index].value.replaceAll(copying: value)
    }

    /// Adds services. Services without a handle follow the last service. If there are too few handles after it, they
    /// get free handles between other services.
    ///
    /// - Parameter revision: the revision of the database with the services.
    /// - Returns: the services with their handles, in the order given.
    mutating func publish(
        _ definitions: [ServiceDefinition],
        at revision: UInt64 = 0
    ) throws(DatabaseError) -> [PublishedService] {
        var builder = DatabaseBuilder(existing: attributes, services: services, revision: revision)
        let published = try builder.add(definitions)
        attributes = builder.attributes
        services.append(contentsOf: published)
        reindex()
        return published
    }

    /// The range of the handles of a service and of the include declarations that name it; nil if there is none.
    func changedRange(removingServiceAt handle: AttributeHandle) -> HandleRange? {
        guard let service = services.first(where: { $0.handle == handle }) else { return nil }
        var range = HandleRange(start: service.handle, end: service.endHandle)
        for attribute in attributes where attribute.includes(serviceAt: handle) {
            range.start = min(range.start, attribute.handle)
            range.end = max(range.end, attribute.handle)
        }
        return range
    }

    /// Removes a service and the include declarations that name it. Returns the range of the service's handles; nil if
    /// there is none.
    mutating func remove(serviceAt handle: AttributeHandle) -> HandleRange? {
        guard let position = services.firstIndex(where: { $0.handle == handle }) else { return nil }
        let range = HandleRange(start: services[position].handle, end: services[position].endHandle)
        services.remove(at: position)
        attributes.removeAll {
            $0.handle >= range.start && $0.handle <= range.end || $0.includes(serviceAt: handle)
        }
        reindex()
        return range
    }

    private mutating func reindex() {
        indices.removeAll(keepingCapacity: true)
        for (index, attribute) in attributes.enumerated() {
            while indices.count <= Int(attribute.handle.rawValue) { indices.append(UInt16(index)) }
        }
    }

    // MARK: Hash

    /// The message whose AES-CMAC, with a key of zeros, is the Database Hash (Vol 3, Part G, 7.3.1).
    var hashInput: [UInt8] {
        var buffer = PacketBuffer(capacity: attributes.count * 16, headroom: 0)
        for attribute in attributes {
            switch attribute.type {
            case .primaryService, .secondaryService, .include, .characteristic, .characteristicExtendedProperties:
                buffer.append(attribute.handle.rawValue)
                attribute.type.encode(into: &buffer)
                buffer.append(attribute.storedValue ?? [])
            case .characteristicUserDescription, .clientCharacteristicConfiguration,
                .serverCharacteristicConfiguration, .characteristicPresentationFormat, .characteristicAggregateFormat:
                buffer.append(attribute.handle.rawValue)
                attribute.type.encode(into: &buffer)
            default:
                break
            }
        }
        return [UInt8](copying: buffer.bytes)
    }
}
