import BLEATT
import BLEByteCoding
import BLEGATT
import BluetoothHost
import BluetoothTypes

/// A service of a peer, with its handles; see ``RemotePeripheral/discoverServices(_:)``.
public typealias RemoteService = DiscoveredService

/// A characteristic of a peer, with its handles and properties; see ``RemotePeripheral/characteristic(_:in:)``.
///
/// It is valid until the peer changes its services. After that its handle is unknown to the peer, or belongs to another
/// attribute. ``RemotePeripheral/characteristic(_:in:)`` then finds the new one.
public typealias RemoteCharacteristic = DiscoveredCharacteristic

/// A descriptor of a peer's characteristic, with its handle; see ``RemotePeripheral/discoverDescriptors(of:)``.
public typealias RemoteDescriptor = DiscoveredDescriptor

// Discovery. If the peer is bonded, its services are read from the cache instead, while the cache is valid.
extension RemotePeripheral {
    /// Discovers all services with their includes, characteristics and descriptors, in the order of their handles.
    ///
    /// - Throws:
    ///   - ``BLEError/attribute(_:handle:)`` if the peer refuses
    ///   - ``BLEError/malformedResponse(_:)`` if the peer breaks the protocol, or has too many attributes
    ///   - ``BLEError/security(_:)`` if the peer requires a secure link, and the link cannot be secured
    ///   - ``BLEError/disconnected(_:)`` if the link ends, or ``disconnect()`` was called
    ///   - ``BLEError/cancelled`` if the task is cancelled
    public func discoverAll() async throws(BLEError) -> [RemoteService] {
        try await perform(DiscoverAll())
    }

    /// Discovers primary services, without their contents.
    ///
    /// The width of a UUID does not matter. A UUID that occurs several times counts once.
    ///
    /// - Parameter uuids: nil for all.
    /// - Throws: the errors of ``discoverAll()``.
    public func discoverServices(_ uuids: [BluetoothUUID]? = nil) async throws(BLEError) -> [RemoteService] {
        guard let uuids else { return try await perform(DiscoverServices()) }
        var services: [RemoteService] = []
        var asked: Set<BluetoothUUID> = []
        for uuid in uuids where asked.insert(uuid).inserted {
            services += try await perform(DiscoverServicesInAnyWidth(uuid: uuid))
        }
        return services
    }

    /// Discovers the services that a service includes (Vol 3, Part G, 4.5.1).
    ///
    /// - Throws: the errors of ``discoverAll()``.
    public func discoverIncludedServices(of service: RemoteService) async throws(BLEError) -> [IncludedService] {
        try await perform(FindIncludedServices(range: .init(start: service.handle, end: service.endHandle)))
    }

    /// Discovers the characteristics of a service, without their descriptors.
    ///
    /// - Parameters:
    ///   - uuids: nil for all.
    ///   - service: a service of this peer.
    /// - Throws: the errors of ``discoverAll()``.
    public func discoverCharacteristics(
        _ uuids: [BluetoothUUID]? = nil,
        of service: RemoteService
    ) async throws(BLEError) -> [RemoteCharacteristic] {
        let all = try await perform(
            DiscoverCharacteristics(range: .init(start: service.handle, end: service.endHandle))
        )
        guard let uuids else { return all }
        return all.filter { uuids.contains($0.uuid) }
    }

    /// Discovers the descriptors of a characteristic (Vol 3, Part G, 4.7.1).
    ///
    /// - Throws: the errors of ``discoverAll()``.
    public func discoverDescriptors(
        of characteristic: RemoteCharacteristic
    ) async throws(BLEError) -> [RemoteDescriptor] {
        guard let range = characteristic.descriptorRange else { return [] }
        return try await perform(DiscoverDescriptors(range: range))
    }

    // MARK: By UUID

    /// Finds a characteristic of a primary service by UUID, without its descriptors.
    ///
    /// ```swift
    /// let temperature = try await peer.characteristic("2A6E", in: "181A")
    /// print(try await peer.read(temperature))
    /// ```
    ///
    /// Only the services with UUID `service` are discovered, and their characteristics. Of several matching
    /// characteristics, the call returns that with the lowest handle. The widths of the UUIDs do not matter.
    ///
    /// - Parameters:
    ///   - uuid: the UUID of the characteristic.
    ///   - service: the UUID of the service.
    /// - Throws: ``BLEError/notFound(_:peer:)`` if the peer has no such service, or none of them has the
    ///   characteristic; otherwise the errors of ``discoverAll()``.
    public func characteristic(
        _ uuid: BluetoothUUID,
        in service: BluetoothUUID
    ) async throws(BLEError) -> RemoteCharacteristic {
        let services = try await perform(DiscoverServicesInAnyWidth(uuid: service))
        guard !services.isEmpty else { throw .notFound(.service(service), peer: address) }
        for service in services {
            let range = HandleRange(start: service.handle, end: service.endHandle)
            let found = try await perform(DiscoverCharacteristics(range: range, uuid: uuid))
            if let characteristic = found.first { return characteristic }
        }
        throw .notFound(.characteristic(uuid, service: service), peer: address)
    }

    /// Finds a descriptor of a characteristic by UUID. Descriptors that `characteristic` contains are not discovered
    /// again.
    ///
    /// - Parameters:
    ///   - uuid: the UUID of the descriptor.
    ///   - characteristic: a characteristic of this peer.
    /// - Throws: ``BLEError/notFound(_:peer:)`` if the characteristic does not have the descriptor; otherwise the
    ///   errors of ``discoverAll()``.
    public func descriptor(
        _ uuid: BluetoothUUID,
        of characteristic: RemoteCharacteristic
    ) async throws(BLEError) -> RemoteDescriptor {
        var descriptors = characteristic.descriptors
        if descriptors.isEmpty { descriptors = try await discoverDescriptors(of: characteristic) }
        guard let descriptor = descriptors.first(where: { $0.uuid == uuid }) else {
            throw .notFound(.descriptor(uuid, characteristic: characteristic.uuid), peer: address)
        }
        return descriptor
    }
}

/// Discover Primary Service by Service UUID (Vol 3, Part G, 4.4.2), whatever the width in which the server declares the
/// UUID.
///
/// Many servers compare the bytes of the request with those of their declarations. Nearly all of them declare a UUID of
/// the Bluetooth SIG in 16 bits, so the procedure asks for the short form first. If it finds nothing, or if the server
/// refuses this form, it asks for the 128-bit form. Both are one procedure, so procedures queued later are sent after
/// it.
package struct DiscoverServicesInAnyWidth: ClientProcedure {
    package var outcome: Result<[DiscoveredService], ClientError>?
    private var current: DiscoverServicesByUUID
    /// The form to ask for if the current one finds nothing; nil if there is no other.
    private var alternative: BluetoothUUID?
    /// The server's refusal of the first form. The procedure ends in it if the other form finds nothing.
    private var refusal: ClientError?

    /// Creates a discovery of the primary services with this UUID. A server may have several.
    package init(uuid: BluetoothUUID) {
        let shortest = uuid.attributeForm
        current = DiscoverServicesByUUID(uuid: shortest)
        alternative = shortest.width == .bits16 ? BluetoothUUID(uuid.value) : nil
    }

    package mutating func cachedOutput(from services: [DiscoveredService]) -> [DiscoveredService]? {
        current.cachedOutput(from: services)
    }

    package mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<[DiscoveredService]> {
        let step = current.start(mtu: mtu, into: &buffer)
        return follow(step, mtu, &buffer)
    }

    package mutating func receive(
        _ response: RawSpan,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<[DiscoveredService]> {
        // A response contains services, so the server knows this form.
        alternative = nil
        let step = current.receive(response, mtu: mtu, into: &buffer)
        return follow(step, mtu, &buffer)
    }

    package mutating func receive(
        _ error: ErrorResponse,
        mtu: Int,
        into buffer: inout PacketBuffer
    ) -> ClientStep<[DiscoveredService]> {
        let step = current.receive(error, mtu: mtu, into: &buffer)
        guard case .finished(.failure(let failure)) = step, let uuid = alternative, Self.mayDependOnForm(error.error)
        else { return follow(step, mtu, &buffer) }
        refusal = failure
        return ask(for: uuid, mtu, &buffer)
    }

    /// Whether the server may answer a request for the other form differently. It does not if it requires security, or
    /// if its database has changed. The host handles these errors when the procedure ends in them.
    private static func mayDependOnForm(_ error: ATTErrorCode) -> Bool {
        switch error {
        case .insufficientAuthentication, .insufficientAuthorization, .insufficientEncryption,
            .encryptionKeySizeTooShort, .databaseOutOfSync:
            false
        default: true
        }
    }

    private mutating func follow(
        _ step: ClientStep<[DiscoveredService]>,
        _ mtu: Int,
        _ buffer: inout PacketBuffer
    ) -> ClientStep<[DiscoveredService]> {
        guard case .finished(let result) = step else { return step }
        if case .success(let services) = result, !services.isEmpty { return step }
        // Both forms have been tried.
        if let refusal { return .finished(.failure(refusal)) }
        guard case .success = result, let uuid = alternative else { return step }
        return ask(for: uuid, mtu, &buffer)
    }

    /// Asks for the other form.
    private mutating func ask(
        for uuid: BluetoothUUID,
        _ mtu: Int,
        _ buffer: inout PacketBuffer
    ) -> ClientStep<[DiscoveredService]> {
        alternative = nil
        current = DiscoverServicesByUUID(uuid: uuid)
        return current.start(mtu: mtu, into: &buffer)
    }
}
