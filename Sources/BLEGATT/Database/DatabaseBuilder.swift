import BLEATT
import BLEByteCoding
import BluetoothTypes

/// Builds the attributes of services (Vol 3, Part G, 3).
struct DatabaseBuilder {
    private typealias Content = (source: Attribute.Source, value: [UInt8])

    private(set) var attributes: [Attribute]
    private let services: [PublishedService]
    private let revision: UInt64
    private var nextHandle: AttributeHandle?

    /// - Parameter revision: the revision of the database with the new services.
    init(existing: [Attribute], services: [PublishedService], revision: UInt64) {
        attributes = existing
        self.services = services
        self.revision = revision
        let end = services.map { $0.endHandle }.max() ?? .invalid
        nextHandle = end.next
    }

    /// The handles that a service of a batch will have, so that earlier services of the batch can include it.
    private struct Plan {
        let definition: ServiceDefinition
        let handle: AttributeHandle
        let end: AttributeHandle
    }

    mutating func add(_ definitions: [ServiceDefinition]) throws(DatabaseError) -> [PublishedService] {
        var plans: [Plan] = []
        for definition in definitions { plans.append(try plan(definition, after: plans)) }
        var published: [PublishedService] = []
        for plan in plans { published.append(try lay(plan, among: plans)) }
        attributes.sort { $0.handle < $1.handle }
        for (first, second) in zip(attributes, attributes.dropFirst()) where first.handle == second.handle {
            throw .handleNotFree(second.handle)
        }
        return published
    }

    /// Assigns handles to a service.
    ///
    /// A service without a handle follows the last one. If there are too few handles after that one, the service gets
    /// the lowest free handles that are enough. Removed services leave such handles.
    private mutating func plan(_ definition: ServiceDefinition, after plans: [Plan]) throws(DatabaseError) -> Plan {
        guard let handle = definition.handle ?? nextHandle else { return try planInGap(definition, among: plans) }
        let end: AttributeHandle
        do throws(DatabaseError) {
            end = try lastHandle(of: definition, at: handle)
        } catch {
            guard definition.handle == nil, error == .handlesExhausted else { throw error }
            return try planInGap(definition, among: plans)
        }
        for service in services where handle <= service.endHandle && service.handle <= end {
            throw .handleNotFree(handle)
        }
        for other in plans where handle <= other.end && other.handle <= end { throw .handleNotFree(handle) }
        if end >= (nextHandle ?? .last) { nextHandle = end.next }
        return Plan(definition: definition, handle: handle, end: end)
    }

    /// Assigns the lowest free handles before other services to a service.
    private func planInGap(_ definition: ServiceDefinition, among plans: [Plan]) throws(DatabaseError) -> Plan {
        var used = services.map { HandleRange(start: $0.handle, end: $0.endHandle) }
        used += plans.map { HandleRange(start: $0.handle, end: $0.end) }
        used.sort { $0.start < $1.start }
        var handle = AttributeHandle.first
        for range in used {
            if handle < range.start, let end = try? lastHandle(of: definition, at: handle), end < range.start {
                return Plan(definition: definition, handle: handle, end: end)
            }
            guard let next = range.end.next else { break }
            handle = next
        }
        throw .handlesExhausted
    }

    /// Returns the last handle of a service whose declaration has `handle`.
    private func lastHandle(
        of definition: ServiceDefinition,
        at handle: AttributeHandle
    ) throws(DatabaseError) -> AttributeHandle {
        var cursor = HandleCursor(next: handle)
        _ = try cursor.take(nil)
        for _ in definition.includes { _ = try cursor.take(nil) }
        for characteristic in definition.characteristics {
            _ = try cursor.take(characteristic.handle)
            _ = try cursor.take(nil)
            for descriptor in characteristic.completeDescriptors { _ = try cursor.take(descriptor.handle) }
        }
        let end = definition.endHandle ?? cursor.last
        guard end >= cursor.last else { throw .handleNotFree(end) }
        return end
    }

    private mutating func lay(_ plan: Plan, among plans: [Plan]) throws(DatabaseError) -> PublishedService {
        let definition = plan.definition
        var cursor = HandleCursor(next: plan.handle)
        add(
            try cursor.take(nil),
            definition.isPrimary ? .primaryService : .secondaryService,
            .read,
            declaration { definition.uuid.wireForm.encode(into: &$0) },
            groupEnd: plan.end
        )
        for include in definition.includes {
            let target = try resolve(include, of: definition, among: plans)
            add(
                try cursor.take(nil),
                .include,
                .read,
                declaration { buffer in
                    buffer.append(target.handle.rawValue)
                    buffer.append(target.end.rawValue)
                    // The declaration has only 16-bit UUIDs (Vol 3, Part G, 3.2).
                    if target.uuid.width == .bits16 { target.uuid.encode(into: &buffer) }
                }
            )
        }
        var characteristics: [PublishedCharacteristic] = []
        for characteristic in definition.characteristics {
            characteristics.append(try lay(characteristic, &cursor))
        }
        return PublishedService(
            uuid: definition.uuid,
            handle: plan.handle,
            endHandle: plan.end,
            characteristics: characteristics,
            revision: revision
        )
    }

    private mutating func lay(
        _ definition: CharacteristicDefinition,
        _ cursor: inout HandleCursor
    ) throws(DatabaseError) -> PublishedCharacteristic {
        let handle = try cursor.take(definition.handle)
        let valueHandle = try cursor.take(nil)
        add(
            handle,
            .characteristic,
            .read,
            declaration { buffer in
                buffer.append(definition.properties.rawValue)
                buffer.append(valueHandle.rawValue)
                definition.uuid.wireForm.encode(into: &buffer)
            }
        )
        add(
            valueHandle,
            definition.uuid.wireForm,
            definition.permissions,
            try content(definition.value, definition.uuid)
        )
        var clientConfigurationHandle: AttributeHandle?
        var descriptorHandles: [AttributeHandle] = []
        for descriptor in definition.completeDescriptors {
            let handle = try cursor.take(descriptor.handle)
            var content = try content(descriptor.value, descriptor.uuid)
            if descriptor.uuid == .clientCharacteristicConfiguration {
                clientConfigurationHandle = handle
                content = (.clientConfiguration(definition.allowedConfiguration, valueHandle: valueHandle), [])
            } else {
                descriptorHandles.append(handle)
            }
            add(handle, descriptor.uuid.wireForm, descriptor.permissions, content)
        }
        return PublishedCharacteristic(
            uuid: definition.uuid,
            handle: handle,
            valueHandle: valueHandle,
            clientConfigurationHandle: clientConfigurationHandle,
            descriptorHandles: descriptorHandles
        )
    }

    private func resolve(
        _ include: ServiceDefinition.Include,
        of definition: ServiceDefinition,
        among plans: [Plan]
    ) throws(DatabaseError) -> (handle: AttributeHandle, end: AttributeHandle, uuid: BluetoothUUID) {
        switch include {
        case .index(let index):
            guard plans.indices.contains(index) else { throw .noSuchInclude(definition.uuid) }
            return (plans[index].handle, plans[index].end, plans[index].definition.uuid)
        case .handle(let handle):
            if let plan = plans.first(where: { $0.handle == handle }) {
                return (handle, plan.end, plan.definition.uuid)
            }
            guard let service = services.first(where: { $0.handle == handle }) else {
                throw .noSuchInclude(definition.uuid)
            }
            return (handle, service.endHandle, service.uuid)
        }
    }

    private func content(
        _ value: CharacteristicDefinition.Value,
        _ uuid: BluetoothUUID
    ) throws(DatabaseError) -> Content {
        switch value {
        case .handled: return (uuid == .clientSupportedFeatures ? .clientSupportedFeatures : .handled, [])
        case .stored(let bytes, let maximumLength):
            guard bytes.count <= min(maximumLength, maximumAttributeValueLength) else {
                throw .valueTooLong(uuid, length: bytes.count)
            }
            return (.stored(maximumLength: min(maximumLength, maximumAttributeValueLength)), bytes)
        }
    }

    private func declaration(_ encode: (inout PacketBuffer) -> Void) -> Content {
        (.stored(maximumLength: 0), PacketBuffer.bytes(encode))
    }

    private mutating func add(
        _ handle: AttributeHandle,
        _ type: BluetoothUUID,
        _ permissions: AttributePermissions,
        _ content: Content,
        groupEnd: AttributeHandle? = nil
    ) {
        let metadata = Attribute.Metadata(
            handle: handle,
            type: type,
            source: content.source,
            permissions: permissions,
            groupEnd: groupEnd ?? handle,
            publishedAt: revision
        )
        attributes.append(Attribute(metadata, value: content.value))
    }
}

/// A cursor that returns handles in rising order, explicit or the next free one.
private struct HandleCursor {
    private var next: AttributeHandle?
    private(set) var last = AttributeHandle.invalid

    init(next: AttributeHandle) {
        self.next = next
    }

    mutating func take(_ explicit: AttributeHandle?) throws(DatabaseError) -> AttributeHandle {
        guard let next else { throw .handlesExhausted }
        if let explicit, explicit < next { throw .handleNotFree(explicit) }
        let handle = explicit ?? next
        guard handle != .invalid else { throw .handleNotFree(handle) }
        last = handle
        self.next = handle.next
        return handle
    }
}

extension CharacteristicDefinition {
    /// The bits that a client may set in the Client Characteristic Configuration.
    var allowedConfiguration: ClientConfiguration {
        var configuration: ClientConfiguration = []
        if properties.contains(.notify) { configuration.insert(.notification) }
        if properties.contains(.indicate) { configuration.insert(.indication) }
        return configuration
    }

    /// The declared descriptors, and those that the properties require and the app did not declare.
    var completeDescriptors: [DescriptorDefinition] {
        guard generatesDescriptors else { return descriptors }
        var complete: [DescriptorDefinition] = []
        func isMissing(_ uuid: BluetoothUUID) -> Bool { !descriptors.contains { $0.uuid == uuid } }
        if !allowedConfiguration.isEmpty, isMissing(.clientCharacteristicConfiguration) {
            var permissions: AttributePermissions = [.read, .write]
            // A client that may not read the value must not receive its notifications either.
            if self.permissions.contains(.readEncrypted) { permissions.insert(.writeEncrypted) }
            if self.permissions.contains(.readAuthenticated) { permissions.insert(.writeAuthenticated) }
            if self.permissions.contains(.readSecureConnections) { permissions.insert(.writeSecureConnections) }
            if self.permissions.contains(.readAuthorized) { permissions.insert(.writeAuthorized) }
            complete.append(
                DescriptorDefinition(
                    uuid: .clientCharacteristicConfiguration,
                    value: .stored([0, 0]),
                    permissions: permissions
                )
            )
        }
        if properties.contains(.extendedProperties), isMissing(.characteristicExtendedProperties) {
            let isWritable = descriptors.contains {
                $0.uuid == .characteristicUserDescription && !$0.permissions.isDisjoint(with: .anyWrite)
            }
            complete.append(
                DescriptorDefinition(
                    uuid: .characteristicExtendedProperties,
                    value: .stored([isWritable ? 0x03 : 0x01, 0x00])
                )
            )
        }
        return complete + descriptors
    }
}

extension BluetoothUUID {
    /// The Attribute Protocol has no 32-bit UUIDs (Vol 3, Part F, 3.2.1).
    var wireForm: BluetoothUUID { width == .bits32 ? attributeForm : self }
}
