import BLEATT
import BLEGATT
import BluetoothTypes
import Foundation

/// The handle of a local service, which is known once the host has published the service.
final class LocalServiceHandle: Sendable {
    private let handle = Guarded<AttributeHandle?>(nil)

    /// The handle; nil if the service is not published yet, or could not be published.
    var value: AttributeHandle? { handle.withLock { $0 } }

    func set(_ value: AttributeHandle) {
        handle.withLock { $0 = value }
    }
}

/// The services that a peripheral manager has added.
struct LocalDatabase {
    private struct Entry {
        let service: CBMutableService
        /// Distinguishes the entry from an earlier one of the same service, which was removed.
        let number: UInt64
        /// For services that include this one. It is known before ``published``, which only the manager's queue sets.
        let handle = LocalServiceHandle()
        /// Nil until the manager has handled that the host has published the service.
        var published: PublishedService?
    }

    private var entries: [Entry] = []
    private var lastNumber: UInt64 = 0
    /// The characteristics by their value handles.
    private var characteristics: [AttributeHandle: CBMutableCharacteristic] = [:]

    func characteristic(at handle: AttributeHandle) -> CBMutableCharacteristic? {
        characteristics[handle]
    }

    func handle(of characteristic: CBMutableCharacteristic) -> AttributeHandle? {
        characteristics.first { $0.value === characteristic }?.key
    }

    /// Whether the characteristic belongs to a service that was added and whose publication is not handled yet. It then
    /// has no subscribers.
    func awaitsPublication(_ characteristic: CBMutableCharacteristic) -> Bool {
        entries.contains { entry in
            entry.published == nil && (entry.service.characteristics ?? []).contains { $0 === characteristic }
        }
    }

    /// The characteristics, in the order of their handles.
    var allCharacteristics: [CBMutableCharacteristic] {
        characteristics.sorted { $0.key < $1.key }.map(\.value)
    }

    /// The handles of the published services, in the order in which the services were added.
    var handles: [AttributeHandle] { entries.compactMap { $0.published?.handle } }

    func handle(of service: CBService) -> AttributeHandle? {
        entries.first { $0.service === service }?.published?.handle
    }

    /// Returns the handle of a service that was added, for a service that includes it. It may not be known yet.
    private func handleForInclusion(_ service: CBService) -> LocalServiceHandle? {
        entries.first { $0.service === service }?.handle
    }

    /// A service that is about to be published.
    struct Addition {
        /// The service without the services that it includes.
        let definition: ServiceDefinition
        /// The handles of the included services.
        let included: [LocalServiceHandle]
        /// The number of the service's entry.
        let number: UInt64
        /// To be set when the service is published.
        let handle: LocalServiceHandle
    }

    /// Notes a service that is about to be published, and makes it immutable.
    ///
    /// - Returns: nil if it is in the database of this or another manager already, includes a service that is not in
    ///   this one, or contains an object that is not local.
    mutating func add(_ service: CBMutableService) -> Addition? {
        guard let parts = service.definition(handleOfIncluded: { handleForInclusion($0) }), service.beginPublication()
        else { return nil }
        lastNumber += 1
        let entry = Entry(service: service, number: lastNumber, published: nil)
        entries.append(entry)
        return Addition(
            definition: parts.service,
            included: parts.included,
            number: entry.number,
            handle: entry.handle
        )
    }

    /// Stores the handles of a published service. Returns false if the entry was removed before it was published, even
    /// if the service was added again.
    mutating func publish(_ number: UInt64, _ published: PublishedService) -> Bool {
        guard let index = entries.firstIndex(where: { $0.number == number }) else { return false }
        let service = entries[index].service
        entries[index].published = published
        let local = (service.characteristics ?? []).compactMap { $0 as? CBMutableCharacteristic }
        for (characteristic, published) in zip(local, published.characteristics) {
            characteristics[published.valueHandle] = characteristic
        }
        return true
    }

    mutating func remove(_ service: CBMutableService) {
        guard let entry = entries.first(where: { $0.service === service }) else { return }
        _ = remove(entry.number)
    }

    /// Removes an entry. Returns false if it was removed before.
    mutating func remove(_ number: UInt64) -> Bool {
        guard let index = entries.firstIndex(where: { $0.number == number }) else { return false }
        let entry = entries.remove(at: index)
        for characteristic in entry.published?.characteristics ?? [] {
            characteristics[characteristic.valueHandle] = nil
        }
        entry.service.endPublication()
        return true
    }

    mutating func removeAll() {
        for entry in entries { entry.service.endPublication() }
        entries = []
        characteristics = [:]
    }
}

extension CBMutableService {
    /// Whether a characteristic has a value that the host answers with, and yet could be written or notified.
    var hasCachedValueThatChanges: Bool {
        (characteristics ?? []).contains { characteristic in
            guard let characteristic = characteristic as? CBMutableCharacteristic, characteristic.cachedValue != nil
            else {
                return false
            }
            let readOnly: CBCharacteristicProperties = [.read, .broadcast, .extendedProperties]
            let readOnlyPermissions: CBAttributePermissions = [.readable, .readEncryptionRequired]
            return !readOnly.isSuperset(of: characteristic.properties)
                || !readOnlyPermissions.isSuperset(of: characteristic.permissions)
        }
    }

    /// The definition of the service for the host without its included services, and the handles of these.
    ///
    /// - Returns: nil if the service contains an object that is not local, or includes a service without a handle.
    func definition(
        handleOfIncluded handle: (CBService) -> LocalServiceHandle?
    ) -> (service: ServiceDefinition, included: [LocalServiceHandle])? {
        var definition = ServiceDefinition(uuid: uuid.value, isPrimary: isPrimary)
        var handles: [LocalServiceHandle] = []
        for included in includedServices ?? [] {
            guard let handle = handle(included) else { return nil }
            handles.append(handle)
        }
        for characteristic in characteristics ?? [] {
            guard let characteristic = characteristic as? CBMutableCharacteristic else { return nil }
            definition.characteristics.append(characteristic.definition)
        }
        return (definition, handles)
    }
}

extension CBMutableCharacteristic {
    fileprivate var definition: CharacteristicDefinition {
        let properties = properties
        var sent = CharacteristicProperties(rawValue: UInt8(truncatingIfNeeded: properties.rawValue))
        if properties.contains(.notifyEncryptionRequired) { sent.insert(.notify) }
        if properties.contains(.indicateEncryptionRequired) { sent.insert(.indicate) }
        var descriptors = (descriptors ?? []).compactMap { $0 as? CBMutableDescriptor }.map { descriptor in
            DescriptorDefinition(uuid: descriptor.uuid.value, value: .stored(descriptor.octets))
        }
        if !properties.isDisjoint(with: [.notifyEncryptionRequired, .indicateEncryptionRequired]) {
            // Subscribing requires encryption, even if reading the value does not. The explicit descriptor declares
            // that.
            descriptors.insert(
                DescriptorDefinition(
                    uuid: .clientCharacteristicConfiguration,
                    value: .stored([0, 0]),
                    permissions: [.read, .write, .writeEncrypted]
                ),
                at: 0
            )
        }
        return CharacteristicDefinition(
            uuid: uuid.value,
            properties: sent,
            permissions: AttributePermissions(permissions),
            value: cachedValue.map { .stored(Array($0)) } ?? .handled,
            descriptors: descriptors
        )
    }
}

extension AttributePermissions {
    /// Creates the host's permissions. A permission that requires encryption includes the plain one.
    init(_ permissions: CBAttributePermissions) {
        self = []
        if permissions.contains(.readable) { insert(.read) }
        if permissions.contains(.writeable) { insert(.write) }
        if permissions.contains(.readEncryptionRequired) { formUnion([.read, .readEncrypted]) }
        if permissions.contains(.writeEncryptionRequired) { formUnion([.write, .writeEncrypted]) }
    }
}
