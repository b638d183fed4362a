import ATT
import BluetoothHost
import HCI
import Synchronization

public typealias RemoteService = DiscoveredService
public typealias RemoteCharacteristic = DiscoveredCharacteristic
public typealias RemoteDescriptor = DiscoveredDescriptor

/// How a value is written.
public enum WriteKind: Sendable {
    /// The peer confirms; a value that one request does not hold is written part by part.
    case withResponse
    /// The peer does not confirm; the call waits until there is room for the packet. On other threads than the adapter's own
    /// (``Adapter/taskExecutor``), up to 32 values are taken ahead of that; they are sent in their order, before whatever is
    /// asked for later, or are lost with the link.
    case withoutResponse
    /// The peer gives back what it understood before anything is written.
    case reliable
    /// The peer does not confirm, but knows by a signature who has written (Vol 3, Part G, 4.9.2): for bonded peers whose link
    /// is not encrypted; over an encrypted link the value is written without a response.
    case signed
}

/// A connection to a peripheral.
///
/// ## Sharing a link
///
/// Two devices have at most one link (Vol 6, Part B, 4.5). Each call of ``Central/connect(to:timeout:parameters:)`` returns a
/// `RemotePeripheral` of its own; several of them may share the link. ``disconnect()`` ends the connection for its own
/// `RemotePeripheral`: its subscriptions end, and every later call on it throws ``BLEError/disconnected(_:)``. The link ends
/// with the last one. One that is deallocated without ``disconnect()`` leaves the link as it is and does not count any more.
public final class RemotePeripheral: Sendable {
    public let address: DeviceAddress
    let host: BluetoothHost
    package let link: LinkIdentifier
    /// Whether ``disconnect()`` was called.
    private let isReleased = Atomic(false)
    fileprivate let ending = ConnectionEnd()
    /// Whether `ending` observes the link.
    private let isLinkObserved = Atomic(false)

    /// - Parameter link: on which the caller has a hold, which is taken over.
    init(host: BluetoothHost, link: LinkIdentifier, address: DeviceAddress) {
        self.host = host
        self.link = link
        self.address = address
    }

    deinit {
        guard !isReleased.load(ordering: .relaxed) else { return }
        host.spawn { [link] in $0.discardHold(on: link) }
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

    /// The link as it is.
    public var linkInformation: LinkInformation {
        get async throws(BLEError) {
            let link = try usableLink
            return try await translating { () throws(HostError) in try await host.information(on: link) }
        }
    }

    /// ATT_MTU in bytes; 23 where the link is gone.
    public var mtu: Int {
        get async { (try? await linkInformation.mtu) ?? 23 }
    }

    public var isConnected: Bool {
        get async { (try? await linkInformation) != nil }
    }

    public var connectionParameters: NegotiatedConnectionParameters {
        get async throws(BLEError) { try await linkInformation.parameters }
    }

    /// The strength of the link's signal in dBm; nil where the controller does not know it.
    public func readRSSI() async throws(BLEError) -> Int? {
        let link = try usableLink
        return try await translating { () throws(HostError) in try await host.readRSSI(of: link) }
    }

    public func updateConnectionParameters(_ parameters: ConnectionParameters) async throws(BLEError) {
        let link = try usableLink
        try await translating { () throws(HostError) in try await host.updateParameters(parameters, of: link) }
    }

    /// Asks for other PHYs; the link goes on with what both sides can do.
    public func setPHY(transmit: PHYSet, receive: PHYSet) async throws(BLEError) {
        let link = try usableLink
        try await translating { () throws(HostError) in
            try await host.setPHY(transmit: transmit, receive: receive, of: link)
        }
    }

    /// Asks for Link Layer payloads of 27 to 251 octets.
    public func setDataLength(octets: UInt16) async throws(BLEError) {
        let link = try usableLink
        try await translating { () throws(HostError) in try await host.setDataLength(octets: octets, of: link) }
    }

    /// Ends this connection, once the values written without response have been sent. If no other `RemotePeripheral` shares
    /// the link, the link ends and the call waits for that; see <doc:RemotePeripheral#Sharing-a-link>.
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
        await observeLink()
        return await ending.wait()
    }

    /// Calls `observer` once, when the link has ended or ``disconnect()`` was called; immediately if that has happened.
    ///
    /// - Parameter identifier: for ``ConnectionEnd/removeObserver(_:)``.
    func observeEnd(
        _ identifier: UInt64,
        _ observer: @escaping @Sendable (DisconnectionReason) -> Void
    ) async {
        await observeLink()
        ending.observe(identifier, observer)
    }

    private func observeLink() async {
        guard !isLinkObserved.exchange(true, ordering: .relaxed) else { return }
        await host.observeEnd(of: link) { [ending] in ending.end($0) }
    }

    /// Waits until the link is gone and says why.
    public func disconnection() async -> DisconnectionReason {
        guard !isReleased.load(ordering: .relaxed) else { return RemotePeripheral.releaseReason }
        return await host.disconnection(of: link)
    }

    // MARK: Discovery

    /// Discovers all services with their includes, characteristics and descriptors, in the order of their handles.
    public func discoverAll() async throws(BLEError) -> [RemoteService] {
        try await perform(DiscoverAll())
    }

    /// Discovers primary services, without what is in them.
    ///
    /// - Parameter uuids: nil for all.
    public func discoverServices(_ uuids: [BluetoothUUID]? = nil) async throws(BLEError) -> [RemoteService] {
        guard let uuids else { return try await perform(DiscoverServices()) }
        var services: [RemoteService] = []
        for uuid in uuids { services += try await perform(DiscoverServicesByUUID(uuid: uuid)) }
        return services
    }

    public func discoverIncludedServices(of service: RemoteService) async throws(BLEError) -> [IncludedService] {
        try await perform(FindIncludedServices(range: .init(start: service.handle, end: service.endHandle)))
    }

    /// Discovers the characteristics of a service, without their descriptors.
    ///
    /// - Parameter uuids: nil for all.
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

    public func discoverDescriptors(
        of characteristic: RemoteCharacteristic
    ) async throws(BLEError) -> [RemoteDescriptor] {
        guard let range = characteristic.descriptorRange else { return [] }
        return try await perform(DiscoverDescriptors(range: range))
    }

    // MARK: Values

    /// Reads a value whole, up to 512 octets.
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

    public nonisolated(nonsending) func write(
        _ value: [UInt8],
        to handle: AttributeHandle,
        kind: WriteKind = .withResponse
    ) async throws(BLEError) {
        switch kind {
        case .withResponse, .reliable:
            guard value.count <= maximumAttributeValueLength else {
                throw .invalidArgument("a value has at most 512 octets, not \(value.count)")
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

    /// Writes several values, all or none of them.
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

    // MARK: Notifications

    /// Which of both a subscription asks for, where the characteristic has both.
    public enum Preference: Sendable {
        case notification
        case indication
    }

    /// Has the peer send a characteristic's value whenever it wants to, until the subscription is cancelled or let go.
    public func subscribe(
        to characteristic: RemoteCharacteristic,
        preferring preference: Preference = .notification
    ) async throws(BLEError) -> Subscription {
        let canNotify = characteristic.properties.contains(.notify)
        let canIndicate = characteristic.properties.contains(.indicate)
        guard canNotify || canIndicate else {
            throw .notSupported("characteristic \(characteristic.uuid) has neither notifications nor indications")
        }
        var descriptors = characteristic.descriptors
        if descriptors.isEmpty { descriptors = try await discoverDescriptors(of: characteristic) }
        guard let descriptor = descriptors.first(where: { $0.uuid == .clientCharacteristicConfiguration }) else {
            throw .notFound("characteristic \(characteristic.uuid) has no Client Characteristic Configuration")
        }
        let usesIndications = canIndicate && (preference == .indication || !canNotify)
        let mailbox = Mailbox<HandleValue, BLEError>(limit: 65_536)
        let handle = characteristic.valueHandle
        let subscriber = try await translating { () throws(HostError) in
            try await host.addSubscriber(of: handle, on: link) { mailbox.post($0) }
        }
        let subscription = Subscription(
            peripheral: self,
            mailbox: mailbox,
            subscriber: subscriber,
            handle: handle,
            descriptor: descriptor.handle
        )
        do throws(BLEError) {
            try await write([usesIndications ? 2 : 1, 0], to: descriptor.handle)
        } catch {
            await host.removeSubscriber(subscriber, of: handle, on: link)
            throw error
        }
        await observeEnd(subscriber) { [host, link] reason in
            mailbox.finish(.disconnected(reason))
            host.spawn { $0.removeSubscriber(subscriber, of: handle, on: link) }
        }
        return subscription
    }
}

/// The values that a peer sends of one characteristic. It ends with ``BLEError/disconnected(_:)`` when the link is lost and
/// when ``RemotePeripheral/disconnect()`` is called, also if another `RemotePeripheral` keeps the link.
public final class Subscription: AsyncSequence, Sendable {
    public typealias Element = HandleValue
    public typealias Failure = BLEError

    private let peripheral: RemotePeripheral
    private let mailbox: Mailbox<HandleValue, BLEError>
    private let subscriber: UInt64
    private let handle: AttributeHandle
    private let descriptor: AttributeHandle

    init(
        peripheral: RemotePeripheral,
        mailbox: Mailbox<HandleValue, BLEError>,
        subscriber: UInt64,
        handle: AttributeHandle,
        descriptor: AttributeHandle
    ) {
        self.peripheral = peripheral
        self.mailbox = mailbox
        self.subscriber = subscriber
        self.handle = handle
        self.descriptor = descriptor
    }

    deinit {
        let (subscriber, handle, link) = (subscriber, handle, peripheral.link)
        peripheral.ending.removeObserver(subscriber)
        peripheral.host.spawn { $0.removeSubscriber(subscriber, of: handle, on: link) }
    }

    /// How many values were dropped because they were not taken in time.
    public var droppedCount: Int { mailbox.droppedCount }

    /// Tells the peer to send no more, and ends the sequence.
    public func cancel() async {
        await peripheral.host.removeSubscriber(subscriber, of: handle, on: peripheral.link)
        mailbox.finish()
        try? await peripheral.write([0, 0], to: descriptor)
    }

    public func makeAsyncIterator() -> Iterator {
        Iterator(subscription: self, base: MailboxIterator(mailbox) {})
    }

    public struct Iterator: AsyncIteratorProtocol {
        /// Keeps the subscription alive.
        let subscription: Subscription
        let base: MailboxIterator<HandleValue, BLEError>

        public mutating func next() async throws(BLEError) -> HandleValue? {
            try await base.next(isolation: nil)
        }

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(BLEError) -> HandleValue? {
            try await base.next(isolation: actor)
        }
    }
}
