import BLEATT
import BLEByteCoding
import BluetoothTypes

/// A GATT server: the database that all clients share. Each client has a ``ServerSession``.
public final class Server {
    /// Computes AES-CMAC of a message with a key of 16 bytes, both most significant byte first.
    public typealias CMAC = (_ key: [UInt8], _ message: [UInt8]) -> [UInt8]

    /// The current attributes, which all sessions share. Their methods call no code of the server, so accesses to them
    /// never overlap.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private(set) var database = AttributeDatabase()
    private let cmac: CMAC?
    /// The value handle of the Database Hash, if the GATT service is published.
    private(set) var databaseHashHandle: AttributeHandle?
    private var serviceChangedHandle: AttributeHandle?
    /// The handles of the GAP service, if it is published.
    private var genericAccess: ClosedRange<AttributeHandle>?
    /// The handles of the GATT service, if it is published.
    private var genericAttribute: ClosedRange<AttributeHandle>?
    /// Counts changes of the database, so that a session knows whether its client has missed one.
    private(set) var revision: UInt64 = 0

    /// Incremented when the configuration of a client changes, so that a cache of the subscribed clients can tell when
    /// it is outdated.
    public var configurationRevision: UInt64 { configurationChanges }
    private var configurationChanges: UInt64 = 0

    func noteConfigurationChange() {
        configurationChanges &+= 1
    }

    /// The Database Hash of the current database, in the byte order of AES-CMAC's result in the specification: most
    /// significant byte first. nil if there is no AES-CMAC.
    public private(set) var databaseHash: UInt128?

    /// The features of clients that sessions record. The owner adds
    /// ``ClientSupportedFeatures/enhancedAttributeBearer`` if it accepts enhanced bearers.
    public var clientFeatures = ClientSupportedFeatures.supported

    /// The shortest encryption key, in bytes, that attributes with a need for encryption accept: 7 to 16.
    public var minimumKeySize: UInt8 {
        didSet { minimumKeySize = Server.keySize(minimumKeySize) }
    }

    /// - Parameters:
    ///   - minimumKeySize: the size of an encryption key that the server accepts at least, in bytes: 7 to 16.
    ///   - cmac: computes the Database Hash; without it the hash is zero.
    public init(minimumKeySize: UInt8 = 16, cmac: CMAC? = nil) {
        self.cmac = cmac
        self.minimumKeySize = Server.keySize(minimumKeySize)
    }

    private static func keySize(_ size: UInt8) -> UInt8 {
        min(max(size, 7), 16)
    }

    /// Whether any attribute needs an encrypted link to be read or written.
    public var hasProtectedAttributes: Bool { database.hasProtectedAttributes }

    /// The value handle of Service Changed, if the GATT service is published.
    public var serviceChanged: AttributeHandle? { serviceChangedHandle }

    /// Publishes services. The owner then reports the changed handles to connected clients by Service Changed.
    ///
    /// A server has one GAP service and one GATT service (Vol 3, Part C, 12, and Part G, 7). Each is the first
    /// published service with its UUID. A further service with that UUID is an ordinary service: the server neither
    /// updates its Database Hash nor sends its Service Changed.
    public func publish(_ definitions: [ServiceDefinition]) throws(DatabaseError) -> [PublishedService] {
        let next = revision + 1
        let published = try database.publish(definitions, at: next)
        for service in published {
            let handles = service.handle...service.endHandle
            switch service.uuid {
            case .genericAccessService where genericAccess == nil: genericAccess = handles
            case .genericAttributeService where genericAttribute == nil:
                genericAttribute = handles
                databaseHashHandle = service.characteristics.first { $0.uuid == .databaseHash }?.valueHandle
                serviceChangedHandle = service.characteristics.first { $0.uuid == .serviceChanged }?.valueHandle
            default: break
            }
        }
        databaseChanged()
        return published
    }

    /// Whether a service is published. It is not after its removal, also if another service has its handles.
    package func isPublished(_ service: PublishedService) -> Bool { database.services.contains(service) }

    /// Returns the range of handles that change if a service is removed: from the first to the last of the service's
    /// handles and of the include declarations that name it.
    ///
    /// The owner takes it before it calls ``remove(serviceAt:)``, and then reports it to connected clients by Service
    /// Changed.
    ///
    /// - Parameter handle: the handle of the service's declaration.
    /// - Returns: the range; nil if there is no such service.
    public func changedRange(removingServiceAt handle: AttributeHandle) -> HandleRange? {
        database.changedRange(removingServiceAt: handle)
    }

    /// Removes a service, and the include declarations of other services that name it (Vol 3, Part G, 3.2). All other
    /// attributes keep their handles.
    ///
    /// - Returns: the range of the service's handles; nil if there is no such service. Connected clients must be
    ///   informed of ``changedRange(removingServiceAt:)``, which may be longer.
    public func remove(serviceAt handle: AttributeHandle) -> HandleRange? {
        guard let range = database.remove(serviceAt: handle) else { return nil }
        if genericAccess?.lowerBound == handle { genericAccess = nil }
        if genericAttribute?.lowerBound == handle {
            genericAttribute = nil
            // The next attributes with these handles are not the hash and Service Changed.
            databaseHashHandle = nil
            serviceChangedHandle = nil
        }
        databaseChanged()
        return range
    }

    /// Whether an attribute belongs to the GAP or the GATT service.
    func isInCoreService(_ handle: AttributeHandle) -> Bool {
        genericAccess?.contains(handle) == true || genericAttribute?.contains(handle) == true
    }

    /// The value of an attribute that the server keeps; nil for any other.
    public func value(of handle: AttributeHandle) -> [UInt8]? {
        database.attribute(handle)?.storedValue
    }

    /// Sets a value that the server keeps. Returns false if there is none, or the value is too long.
    @discardableResult
    public func setValue(_ value: [UInt8], of handle: AttributeHandle) -> Bool {
        guard let attribute = database.lookUp(handle), case .stored(let maximumLength) = attribute.metadata.source,
            value.count <= maximumLength
        else { return false }
        database.setValue(value, at: attribute.index)
        return true
    }

    func setValue(_ value: [UInt8], at index: Int) {
        database.setValue(value, at: index)
    }

    func setValue(copying value: RawSpan, at index: Int) {
        database.setValue(copying: value, at: index)
    }

    private func databaseChanged() {
        revision += 1
        guard let cmac else { return }
        let hash = cmac(Array(repeating: 0, count: 16), database.hashInput)
        databaseHash = hash.count == 16 ? hash.reduce(0) { $0 << 8 | UInt128($1) } : nil
        guard let databaseHashHandle, let index = database.index(of: databaseHashHandle) else { return }
        // The hash is sent least significant byte first (Vol 3, Part G, 7.3).
        database.setValue(hash.reversed(), at: index)
    }
}
