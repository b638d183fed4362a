import BLEATT
import BLEGATT
import BluetoothTypes

/// The services that were discovered on one connection to a peripheral. Each handle keeps its object.
struct RemoteDatabase {
    /// The services that service discovery has found; nil before discovery.
    private(set) var services: [CBService]?
    /// All services by their first handle, including those that were only found as included services.
    private var known: [AttributeHandle: CBService] = [:]
    /// The characteristics by their value handles.
    private(set) var characteristics: [AttributeHandle: CBCharacteristic] = [:]
    /// The descriptors by their handles.
    private(set) var descriptors: [AttributeHandle: CBDescriptor] = [:]

    /// The services that are reserved for the host. Apps do not see them.
    private static let hidden: Set<BluetoothUUID> = [.genericAccessService, .genericAttributeService]

    // MARK: Whether an object is one of this connection

    func contains(_ service: CBService) -> Bool {
        service.range.map { known[$0.start] === service } ?? false
    }

    func contains(_ characteristic: CBCharacteristic) -> Bool {
        characteristic.discovered.map { characteristics[$0.valueHandle] === characteristic } ?? false
    }

    func contains(_ descriptor: CBDescriptor) -> Bool {
        descriptor.handle.map { descriptors[$0] === descriptor } ?? false
    }

    // Each check throws if an object is no longer one of this connection, because the peripheral has changed its
    // services. The result of a command for it may belong to another attribute.

    func check(_ service: CBService) throws(BackendError) {
        guard contains(service) else { throw .core(.invalidHandle) }
    }

    func check(_ characteristic: CBCharacteristic) throws(BackendError) {
        guard contains(characteristic) else { throw .core(.invalidHandle) }
    }

    func check(_ descriptor: CBDescriptor) throws(BackendError) {
        guard contains(descriptor) else { throw .core(.invalidHandle) }
    }

    // MARK: Discovery

    // Each `add` removes the objects that the peripheral no longer has, with all that they contain. They were not found
    // again although all were looked for, or another one was found in their place. The place of a service is its first
    // handle, and that of a characteristic is the handle of its value. Included services that were not found again
    // stay, because other services may include them.

    /// Adds services to those found before.
    mutating func add(_ found: [DiscoveredService], areAll: Bool, of peripheral: CBPeripheral) {
        let found = found.filter { !RemoteDatabase.hidden.contains($0.uuid) }
        let objects = found.map { service in
            object(
                service.uuid,
                HandleRange(start: service.handle, end: service.endHandle),
                isPrimary: service.isPrimary,
                of: peripheral
            )
        }
        let before = services
        let present = merge(before?.filter { contains($0) }, objects, areAll: areAll)
        remove(missing(from: present, of: before))
        services = present.sorted(by: RemoteDatabase.precedes)
    }

    /// Adds included services, except those that include `service` themselves.
    ///
    /// - Throws: if `service` is no longer a service of this connection. Nothing is stored then: handles of the
    ///   database before a change must not name attributes of the new one.
    mutating func add(
        _ found: [IncludedService],
        wanted: [BluetoothUUID]?,
        to service: CBService
    ) throws(BackendError) {
        try check(service)
        let objects = found.filter { RemoteDatabase.isWanted($0.uuid, wanted) }.map { included in
            object(
                included.uuid,
                HandleRange(start: included.handle, end: included.endHandle),
                isPrimary: false,
                of: service.peripheral
            )
        }
        let included = RemoteDatabase.withoutCircularReferences(objects, to: service)
        service.content.withLock { content in
            let before = content.includedServices?.filter { contains($0) }
            content.includedServices = merge(before, included, areAll: wanted == nil)
        }
    }

    /// Returns the services that do not include `service`, directly or through others, and are not `service` itself.
    ///
    /// Circular references are not allowed (Vol 3, Part G, 3.2). The objects of a server that has them would never be
    /// released. The time grows linearly with the number of includes.
    private static func withoutCircularReferences(_ services: [CBService], to service: CBService) -> [CBService] {
        var includers: [ObjectIdentifier: [CBService]] = [:]
        var seen: Set<ObjectIdentifier> = []
        var waiting = services.filter { seen.insert(ObjectIdentifier($0)).inserted }
        while let next = waiting.popLast() {
            for included in next.content.withLock({ $0.includedServices }) ?? [] {
                includers[ObjectIdentifier(included), default: []].append(next)
                if seen.insert(ObjectIdentifier(included)).inserted { waiting.append(included) }
            }
        }
        var circular: Set<ObjectIdentifier> = [ObjectIdentifier(service)]
        waiting = [service]
        while let next = waiting.popLast() {
            for includer in includers[ObjectIdentifier(next)] ?? []
            where circular.insert(ObjectIdentifier(includer)).inserted {
                waiting.append(includer)
            }
        }
        return services.filter { !circular.contains(ObjectIdentifier($0)) }
    }

    /// Adds characteristics.
    ///
    /// - Throws: if `service` is no longer a service of this connection.
    mutating func add(
        _ found: [DiscoveredCharacteristic],
        wanted: [BluetoothUUID]?,
        to service: CBService
    ) throws(BackendError) {
        try check(service)
        var objects: [CBCharacteristic] = []
        for discovered in found where RemoteDatabase.isWanted(discovered.uuid, wanted) {
            if let same = characteristics[discovered.valueHandle], same.discovered == discovered,
                same.service === service
            {
                objects.append(same)
                continue
            }
            let characteristic = CBCharacteristic(
                uuid: CBUUID(discovered.uuid),
                content: .init(
                    service: service,
                    properties: CBCharacteristicProperties(rawValue: UInt(discovered.properties.rawValue))
                ),
                discovered: discovered
            )
            if let former = characteristics[discovered.valueHandle] { remove(former) }
            characteristics[discovered.valueHandle] = characteristic
            objects.append(characteristic)
        }
        let before = service.content.withLock { $0.characteristics }
        let present = merge(before?.filter { contains($0) }, objects, areAll: wanted == nil)
        service.content.withLock { $0.characteristics = present }
        for characteristic in missing(from: present, of: before) { remove(characteristic) }
    }

    /// Adds all descriptors of a characteristic.
    ///
    /// - Throws: if `characteristic` is no longer a characteristic of this connection.
    mutating func add(
        _ found: [DiscoveredDescriptor],
        to characteristic: CBCharacteristic
    ) throws(BackendError) {
        try check(characteristic)
        let objects = found.map { discovered in
            if let same = descriptors[discovered.handle], same.uuid.value == discovered.uuid,
                same.characteristic === characteristic
            {
                return same
            }
            let descriptor = CBDescriptor(
                uuid: CBUUID(discovered.uuid),
                handle: discovered.handle,
                characteristic: characteristic
            )
            descriptors[discovered.handle] = descriptor
            return descriptor
        }
        let before = characteristic.content.withLock { $0.descriptors }
        let present = merge(nil, objects, areAll: true)
        characteristic.content.withLock { $0.descriptors = present }
        remove(missing(from: present, of: before))
    }

    // MARK: Notifications

    /// Stores whether the peripheral notifies a value.
    ///
    /// - Throws: if `characteristic` is no longer a characteristic of this connection.
    func setNotifying(_ isNotifying: Bool, of characteristic: CBCharacteristic) throws(BackendError) {
        try check(characteristic)
        characteristic.content.withLock { $0.isNotifying = isNotifying }
    }

    // MARK: Invalidation

    /// Removes and returns the services that overlap a range of handles.
    ///
    /// The time is proportional to the number of attributes, which a server decides.
    mutating func invalidate(_ range: HandleRange) -> [CBService] {
        let invalid = known.values
            .filter { $0.range?.overlaps(range) ?? false }
            .sorted(by: RemoteDatabase.precedes)
        remove(invalid)
        services = services?.filter { contains($0) }
        return invalid
    }

    /// Removes all services, because the connection has ended.
    mutating func invalidate() {
        for characteristic in characteristics.values { characteristic.content.withLock { $0.isNotifying = false } }
        self = RemoteDatabase()
    }

    // MARK: Removal

    // The time of each removal is proportional to the number of objects that are removed. The place of an object may
    // already have another one, which stays.

    private mutating func remove(_ services: [CBService]) {
        for service in services {
            if let start = service.range?.start, contains(service) { known[start] = nil }
            for characteristic in service.content.withLock({ $0.characteristics }) ?? [] { remove(characteristic) }
        }
    }

    private mutating func remove(_ characteristic: CBCharacteristic) {
        if let handle = characteristic.discovered?.valueHandle, contains(characteristic) {
            characteristics[handle] = nil
        }
        let found = characteristic.content.withLock { content in
            content.isNotifying = false
            return content.descriptors
        }
        remove(found ?? [])
    }

    private mutating func remove(_ removed: [CBDescriptor]) {
        for descriptor in removed {
            if let handle = descriptor.handle, contains(descriptor) { descriptors[handle] = nil }
        }
    }

    /// Returns the objects of `before` that are not among those of `present`.
    private func missing<Object: AnyObject>(from present: [Object], of before: [Object]?) -> [Object] {
        let kept = Set(present.map { ObjectIdentifier($0) })
        return before?.filter { !kept.contains(ObjectIdentifier($0)) } ?? []
    }

    // MARK: Objects

    private mutating func object(
        _ uuid: BluetoothUUID,
        _ range: HandleRange,
        isPrimary: Bool,
        of peripheral: CBPeripheral?
    ) -> CBService {
        if let former = known[range.start] {
            if former.range == range, former.uuid.value == uuid {
                // A primary service may have been found as an included service before.
                if isPrimary { former.content.withLock { $0.isPrimary = true } }
                return former
            }
            remove([former])
        }
        let service = CBService(uuid: CBUUID(uuid), isPrimary: isPrimary, range: range, peripheral: peripheral)
        known[range.start] = service
        return service
    }

    private static func isWanted(_ uuid: BluetoothUUID, _ wanted: [BluetoothUUID]?) -> Bool {
        wanted?.contains(uuid) ?? true
    }

    /// Returns the objects that were found, each once, after those of `before` unless all were looked for.
    private func merge<Object: AnyObject>(_ before: [Object]?, _ found: [Object], areAll: Bool) -> [Object] {
        var seen: Set<ObjectIdentifier> = []
        let distinct = found.filter { seen.insert(ObjectIdentifier($0)).inserted }
        guard !areAll, let before else { return distinct }
        return before.filter { !seen.contains(ObjectIdentifier($0)) } + distinct
    }

    private static func precedes(_ first: CBService, _ second: CBService) -> Bool {
        guard let first = first.range?.start, let second = second.range?.start else { return false }
        return first < second
    }
}
