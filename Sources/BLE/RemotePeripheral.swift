import ATT
import BluetoothHost
import HCI
import Synchronization

/// A service of a peer, with its handles.
public typealias RemoteService = DiscoveredService
/// A characteristic of a peer, with its handles and properties.
public typealias RemoteCharacteristic = DiscoveredCharacteristic
/// A descriptor of a peer, with its handle.
public typealias RemoteDescriptor = DiscoveredDescriptor

/// The procedure that writes a value.
public enum WriteKind: Sendable {
    /// The peer confirms. A value that is too long for one request is written in parts.
    case withResponse
    /// The peer does not confirm. The call waits until there is room for the packet. On other threads than the
    /// adapter's own (``Adapter/taskExecutor``), up to 32 values are accepted before there is room. They are sent in
    /// their order, before any later operation, or are lost with the link.
    case withoutResponse
    /// The peer echoes the value before anything is written, so that this side can verify it.
    case reliable
    /// The peer does not confirm, but a signature identifies the writer (Vol 3, Part G, 4.9.2). This is for bonded
    /// peers whose link is not encrypted. Over an encrypted link the value is written without a response.
    case signed
}

/// A connection to a peripheral.
///
/// ## Sharing a link
///
/// Two devices have at most one link (Vol 6, Part B, 4.5). Each call of ``Central/connect(to:timeout:parameters:)``
/// returns a `RemotePeripheral` of its own; several of them may share the link. ``disconnect()`` ends the connection
/// for its own `RemotePeripheral`: its subscriptions end, and every later call on it throws
/// ``BLEError/disconnected(_:)``. The link ends with the last one. A `RemotePeripheral` that is deallocated without
/// ``disconnect()`` leaves the link as it is and no longer counts.
public final class RemotePeripheral: Sendable {
    /// The peripheral's address: its identity address, if a bond revealed it when the link was made.
    public let address: DeviceAddress
    let host: BluetoothHost
    package let link: LinkIdentifier
    /// Whether ``disconnect()`` was called.
    private let isReleased = Atomic(false)
    let ending = ConnectionEnd()
    /// Whether `ending` observes the link.
    private let isLinkObserved = Atomic(false)
    /// The identifier of that observer.
    private let endObserver = Atomic<UInt64>(0)

    /// - Parameter link: a link that the caller holds; this object takes over the hold.
    init(host: BluetoothHost, link: LinkIdentifier, address: DeviceAddress) {
        self.host = host
        self.link = link
        self.address = address
    }

    deinit {
        let isReleased = isReleased.load(ordering: .relaxed)
        let observer = isLinkObserved.load(ordering: .relaxed) ? endObserver.load(ordering: .relaxed) : nil
        guard !isReleased || observer != nil else { return }
        host.cleanUp { [link] host in
            if let observer { host.removeEndObserver(observer, of: link) }
            if !isReleased { host.discardHold(on: link) }
        }
    }

    /// The link, as long as ``disconnect()`` was not called.
    var usableLink: LinkIdentifier {
        get throws(BLEError) {
            guard !isReleased.load(ordering: .relaxed) else { throw .disconnected(RemotePeripheral.releaseReason) }
            return link
        }
    }

    /// The reason of an end that ``disconnect()`` caused.
    private static var releaseReason: DisconnectionReason { .controller(.connectionTerminatedByLocalHost) }

    // MARK: The link

    /// The current link.
    public var linkInformation: LinkInformation {
        get async throws(BLEError) {
            let link = try usableLink
            return try await translating { () throws(HostError) in try await host.information(on: link) }
        }
    }

    /// ATT_MTU in bytes; 23 if the link has ended.
    public var mtu: Int {
        get async { (try? await linkInformation.mtu) ?? 23 }
    }

    /// Whether the link exists and ``disconnect()`` was not called.
    public var isConnected: Bool {
        get async { (try? await linkInformation) != nil }
    }

    /// The interval, latency and supervision timeout in use.
    public var connectionParameters: NegotiatedConnectionParameters {
        get async throws(BLEError) { try await linkInformation.parameters }
    }

    /// The strength of the link's signal in dBm; nil if the controller does not know it.
    public func readRSSI() async throws(BLEError) -> Int? {
        let link = try usableLink
        return try await translating { () throws(HostError) in try await host.readRSSI(of: link) }
    }

    /// Changes the connection's parameters as the central, or requests the change as the peripheral. Waits until the
    /// new parameters are in effect.
    ///
    /// - Throws: ``BLEError/cancelled`` at once if the task is cancelled; the parameters may change nevertheless.
    public func updateConnectionParameters(_ parameters: ConnectionParameters) async throws(BLEError) {
        let link = try usableLink
        try await translating { () throws(HostError) in try await host.updateParameters(parameters, of: link) }
    }

    /// Requests other PHYs; the link then uses PHYs that both sides support.
    ///
    /// - Throws: ``BLEError/cancelled`` at once if the task is cancelled; the PHYs may change nevertheless.
    public func setPHY(transmit: PHYSet, receive: PHYSet) async throws(BLEError) {
        let link = try usableLink
        try await translating { () throws(HostError) in
            try await host.setPHY(transmit: transmit, receive: receive, of: link)
        }
    }

    /// Requests Link Layer payloads of 27 to 251 bytes.
    public func setDataLength(octets: UInt16) async throws(BLEError) {
        let link = try usableLink
        try await translating { () throws(HostError) in try await host.setDataLength(octets: octets, of: link) }
    }

    /// Ends this connection, once the values written without response have been sent. If no other `RemotePeripheral`
    /// shares the link, the link ends and the call waits for that; see <doc:RemotePeripheral#Sharing-a-link>. If the
    /// task is cancelled, the call returns at once; the connection ends nevertheless.
    public func disconnect() async {
        let isFirst = !isReleased.exchange(true, ordering: .relaxed)
        await host.flush(link)
        if isFirst {
            await host.release(link)
            ending.end(RemotePeripheral.releaseReason)
        } else {
            await host.waitIfDisconnecting(link)
        }
    }

    /// Waits until the link has ended or ``disconnect()`` was called.
    ///
    /// - Returns: nil if the task is cancelled first.
    func end() async -> DisconnectionReason? {
        if !isLinkObserved.exchange(true, ordering: .relaxed) {
            let observer = await host.observeEnd(of: link) { [ending] in ending.end($0) }
            endObserver.store(observer, ordering: .relaxed)
        }
        return await ending.wait()
    }

    /// Waits until the link has ended or ``disconnect()`` was called, and returns why.
    ///
    /// - Throws: ``BLEError/cancelled`` at once if the task is cancelled.
    public func disconnection() async throws(BLEError) -> DisconnectionReason {
        guard let reason = await end() else { throw .cancelled }
        return reason
    }

    // MARK: Discovery

    /// Discovers all services with their includes, characteristics and descriptors, in the order of their handles.
    public func discoverAll() async throws(BLEError) -> [RemoteService] {
        try await perform(DiscoverAll())
    }

    /// Discovers primary services, without their contents.
    ///
    /// - Parameter uuids: nil for all.
    public func discoverServices(_ uuids: [BluetoothUUID]? = nil) async throws(BLEError) -> [RemoteService] {
        guard let uuids else { return try await perform(DiscoverServices()) }
        var services: [RemoteService] = []
        for uuid in uuids { services += try await perform(DiscoverServicesByUUID(uuid: uuid)) }
        return services
    }

    /// Discovers the services that a service includes (Vol 3, Part G, 4.5.1).
    public func discoverIncludedServices(of service: RemoteService) async throws(BLEError) -> [IncludedService] {
        try await perform(FindIncludedServices(range: .init(start: service.handle, end: service.endHandle)))
    }

    /// Discovers the characteristics of a service, without their descriptors.
    ///
    /// - Parameters:
    ///   - uuids: nil for all.
    ///   - service: a service of this peer.
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
    public func discoverDescriptors(
        of characteristic: RemoteCharacteristic
    ) async throws(BLEError) -> [RemoteDescriptor] {
        guard let range = characteristic.descriptorRange else { return [] }
        return try await perform(DiscoverDescriptors(range: range))
    }

    // MARK: Values

    /// Reads a whole value, up to 512 bytes.
    public nonisolated(nonsending) func read(_ handle: AttributeHandle) async throws(BLEError) -> [UInt8] {
        try await perform(ReadLongValue(handle: handle))
    }

    /// Reads all values of a type.
    public func read(uuid: BluetoothUUID) async throws(BLEError) -> [TypedValue] {
        try await perform(ReadUsingUUID(uuid: uuid))
    }

    /// Reads several values of variable length with one request.
    public func readMultiple(_ handles: [AttributeHandle]) async throws(BLEError) -> [[UInt8]] {
        try await perform(ReadMultipleVariableValues(handles: handles))
    }

    /// Writes a value, by the procedure of `kind`.
    ///
    /// - Parameters:
    ///   - value: at most 512 bytes; without a response at most ATT_MTU - 3, signed at most ATT_MTU - 15.
    ///   - handle: the handle of a characteristic's value or of a descriptor.
    ///   - kind: the procedure.
    /// - Throws: ``BLEError/invalidArgument(_:)`` if the value is too long, ``BLEError/attribute(_:handle:)`` if the
    ///   peer refuses it.
    public nonisolated(nonsending) func write(
        _ value: [UInt8],
        to handle: AttributeHandle,
        kind: WriteKind = .withResponse
    ) async throws(BLEError) {
        switch kind {
        case .withResponse, .reliable:
            guard value.count <= maximumAttributeValueLength else {
                throw .invalidArgument("a value has at most 512 bytes, not \(value.count)")
            }
            if kind == .reliable {
                try await perform(PreparedWrites([.init(handle: handle, value: value)]))
            } else {
                try await perform(WriteWholeValue(handle: handle, value: value))
            }
        case .withoutResponse:
            let link = try usableLink
            try await translating { () throws(HostError) in
                try await host.writeWithoutResponse(value, to: handle, on: link)
            }
        case .signed:
            let link = try usableLink
            try await translating { () throws(HostError) in try await host.writeSigned(value, to: handle, on: link) }
        }
    }

    /// Writes several values: either all of them, or none.
    public func writeReliably(_ writes: [PreparedWrites.Write]) async throws(BLEError) {
        try await perform(PreparedWrites(writes))
    }

    @inline(__always)
    private nonisolated(nonsending) func perform<P: ClientProcedure>(
        _ procedure: P
    ) async throws(BLEError) -> P.Output {
        let link = try usableLink
        let run = TypedProcedureRun(procedure)
        do throws(HostError) {
            let elevationFailure = try await host.finish(run, on: link)
            do throws(ClientError) {
                return try run.output()
            } catch {
                throw await host.hostError(error, on: link, elevationFailure)
            }
        } catch {
            throw BLEError(error, doing: "the operation")
        }
    }
}
