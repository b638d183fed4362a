import BLEATT
import BLEGATT
import BluetoothHost
import Synchronization

/// The identifier of a client of this server, valid while the client is connected.
public typealias ClientID = LinkIdentifier

/// An event of the adapter's server.
public enum PeripheralEvent: Sendable {
    /// The kind of packets that a client subscribes to.
    public enum SubscriptionKind: String, Sendable {
        /// Notifications, which the client does not confirm.
        case notify
        /// Indications, which the client confirms one by one.
        case indicate
    }

    /// A client has connected. Its address is not verified yet, even if a bond exists with it; see
    /// ``ConnectedClient/isIdentityUnverified``.
    case connected(ClientID, DeviceAddress)
    /// A client has disconnected. Its identifier is not used again.
    case disconnected(ClientID, DisconnectionReason)
    /// A client has read a value, from an offset in bytes.
    case read(ClientID, AttributeHandle, offset: Int)
    /// A client has written bytes to a value, at an offset in bytes. A command has no response.
    case written(ClientID, AttributeHandle, offset: Int, value: [UInt8], isCommand: Bool)
    /// A client has subscribed to the characteristic with this value handle.
    case subscribed(ClientID, AttributeHandle, SubscriptionKind)
    /// A client has unsubscribed from the characteristic with this value handle.
    case unsubscribed(ClientID, AttributeHandle, SubscriptionKind)
    /// The ATT_MTU of a client has changed: 23 to 517 bytes.
    case mtuChanged(ClientID, Int)
    /// The client's link is encrypted with a key of this strength from now on; nil if it is no longer encrypted.
    case encryptionChanged(ClientID, KeyStrength?)
    /// A pairing with a client has begun, by either device.
    case pairingStarted(ClientID)
    /// A pairing with a client has succeeded.
    case paired(ClientID, PairingResult)
    /// A pairing with a client has failed. The link continues, possibly without encryption, unless the client has
    /// disconnected. In that case, ``disconnected(_:_:)`` follows.
    case pairingFailed(ClientID, SecurityError)
    /// As many events were dropped at this place, because the reader was too slow.
    case eventsDropped(Int)
}

/// The peripheral and broadcaster roles of an adapter: its GATT server and its advertisements.
public struct Peripheral: Sendable {
    /// Handles an access to a value that is declared as handled.
    ///
    /// It returns the value for a read, from the offset of the read on. What it returns for a write is ignored. An
    /// `ATTErrorCode` that it throws is the error in the response. Any other error is logged, and the response has the
    /// error Unlikely Error. The first such error for each client is a warning. Later ones are debug messages, because
    /// a client can cause any number of them. A command has no response.
    ///
    /// If the client's link ends while a request is handled, the handler's task is cancelled. A command is handled to
    /// its end.
    public typealias ValueHandler =
        @Sendable (_ client: ClientID, _ access: AccessRequest.Kind) async throws -> [UInt8]

    package let host: BluetoothHost
    let accessQueues = AccessQueues()

    init(host: BluetoothHost) {
        self.host = host
    }

    // MARK: The server

    /// Adds services to the server, in addition to GAP and GATT.
    ///
    /// The accesses of one client are handled strictly in the order in which the client made them, one at a time, also
    /// over several calls of this method. Clients do not wait for each other. While a handler runs, at most one request
    /// for each bearer and 64 commands of its client wait. Further commands are dropped, which the specification allows
    /// (Vol 3, Part F, 3.3.2), and counted in ``ConnectedClient/droppedCommandCount``.
    ///
    /// When a client's link ends, the request that is handled is cancelled, and one that waits is not handled. The
    /// commands are still handled. At most 1,024 accesses of all clients wait or are handled at one time. Beyond that,
    /// a request is answered with an error (Insufficient Resources). A handler that never returns delays its client
    /// only, but it counts until it returns. The server sets no time limit for it: a client gives up after 30 s without
    /// a response and ends the bearer (Vol 3, Part F, 3.3.3). The end of the link cancels the handler's task; the end
    /// of an enhanced bearer does not.
    ///
    /// ```swift
    /// try await adapter.peripheral.publish([lamp]) { client, access in
    ///     switch access {
    ///     case .read(_, let offset): return Array(try await storage.value().dropFirst(offset))
    ///     case .write(let write, _): try await storage.set(write.value)
    ///     case .execute: throw ATTErrorCode.writeNotPermitted
    ///     }
    ///     return []
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - services: the services, in the order of their handles.
    ///   - handler: handles accesses to values that are declared as handled. A request is answered with an error
    ///     (Unlikely Error) if there is none.
    /// - Returns: the services with their handles, in the same order.
    /// - Throws: ``BLEError/invalidArgument(_:)`` if the services cannot be added, and ``BLEError/closed`` after
    ///   ``Adapter/close()``.
    public func publish(
        _ services: [ServiceDefinition],
        handler: ValueHandler? = nil
    ) async throws(BLEError) -> [PublishedService] {
        let accessQueues = accessQueues
        let accessHandler = handler.map { handler -> AccessHandler in
            // The host keeps the handler, so the handler must not keep the host.
            { [weak host] client, request in
                guard let host else { return }
                accessQueues.add(.init(request: request, handler: handler), of: client, on: host)
            }
        }
        return try await Peripheral.publish(services, accessHandler, on: host)
    }

    private static func publish(
        _ services: [ServiceDefinition],
        _ handler: AccessHandler?,
        on host: isolated BluetoothHost
    ) throws(BLEError) -> [PublishedService] {
        guard !host.isClosed else { throw .closed }
        do throws(DatabaseError) {
            return try host.publish(services, handler: handler)
        } catch {
            throw .invalidArgument("\(error)")
        }
    }

    /// Removes a service. Clients that have subscribed to Service Changed are informed. Does nothing if the service was
    /// removed before.
    ///
    /// Notifications and indications of the service that wait to be sent are dropped. Their calls end without an error.
    ///
    /// A service that is published later may get the same handles. So do not use the handles of a removed service.
    public func remove(_ service: PublishedService) async {
        await host.remove(service)
    }

    /// Returns the clients' events from now on. Each call returns a sequence of its own, which ends when the adapter is
    /// closed.
    public func events() async -> Events<PeripheralEvent> {
        let buffer = AsyncEventBuffer<PeripheralEvent, Never>(
            limit: 65_536,
            report: .element { .eventsDropped($0) },
            wakingBy: host.readers
        )
        return Events(buffer: buffer, registration: await host.register(buffer))
    }

    /// The value of an attribute that the server keeps.
    public func value(of handle: AttributeHandle) async -> [UInt8]? {
        await host.value(of: handle)
    }

    /// Sets a value that the server keeps.
    ///
    /// - Throws: ``BLEError/invalidArgument(_:)`` if the attribute keeps no value or its maximum length is shorter, and
    ///   ``BLEError/closed`` after ``Adapter/close()``.
    public func setValue(_ value: [UInt8], of handle: AttributeHandle) async throws(BLEError) {
        guard await !host.isClosed else { throw .closed }
        guard await host.setValue(value, of: handle) else {
            throw .invalidArgument(
                "attribute \(handle) keeps no value, or its maximum length is less than \(value.count) bytes"
            )
        }
    }

    /// Notifies the clients that have subscribed.
    ///
    /// A client's notifications, indications and responses are sent in the order of the calls. A client without room
    /// for the packet is sent it later and delays no other. With `clients`, the call waits until there was room for
    /// each of them. Without, it waits for the fastest client only: a client that is 256 notifications behind misses
    /// those that follow. A call from another thread than the adapter's own (``Adapter/taskExecutor``) may return
    /// earlier: up to 128 notifications wait for the adapter's thread. They are lost if the link ends before they are
    /// sent. A client that disconnects is no error.
    ///
    /// - Parameters:
    ///   - value: the value, of which each client is sent at most its ATT_MTU - 3 bytes, and at most 512.
    ///   - handle: the value handle of a published characteristic.
    ///   - clients: nil for all that have subscribed.
    /// - Throws:
    ///   - ``BLEError/invalidArgument(_:)`` if no published characteristic has this value handle
    ///   - ``BLEError/notSupported(_:)`` if the characteristic does not have the notify property
    ///   - ``BLEError/closed`` after ``Adapter/close()``
    ///   - ``BLEError/cancelled`` if the task is cancelled while it waits
    public nonisolated(nonsending) func notify(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to clients: [ClientID]? = nil
    ) async throws(BLEError) {
        try requireProperty(.notify, of: handle)
        if host.notifyAtOnce(value, of: handle, to: clients) { return }
        do throws(HostError) {
            try await host.waitToNotify(value, of: handle, to: clients)
        } catch {
            throw BLEError(error)
        }
    }

    /// Indicates to the clients that have subscribed, and waits for each to confirm (Vol 3, Part G, 4.11).
    ///
    /// A client's notifications, indications and responses are sent in the order of the calls. An indication waits
    /// until the client has confirmed the previous one, and what follows it waits too, except responses. The link of a
    /// client that does not confirm within 30 s ends. A client that disconnects while the call waits is no error and
    /// does not delay the others. If no client has subscribed, the call returns at once.
    ///
    /// - Parameters:
    ///   - value: the value, of which each client is sent at most its ATT_MTU - 3 bytes, and at most 512.
    ///   - handle: the value handle of a published characteristic.
    ///   - clients: nil for all that have subscribed.
    /// - Throws:
    ///   - ``BLEError/invalidArgument(_:)`` if no published characteristic has this value handle
    ///   - ``BLEError/notSupported(_:)`` if the characteristic does not have the indicate property
    ///   - ``BLEError/closed`` after ``Adapter/close()``
    ///   - ``BLEError/cancelled`` at once if the task is cancelled; the indications may have been sent then
    public func indicate(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to clients: [ClientID]? = nil
    ) async throws(BLEError) {
        try requireProperty(.indicate, of: handle)
        try await translating { () throws(HostError) in try await host.indicate(value, of: handle, to: clients) }
    }

    /// Checks that a published characteristic has a property.
    package nonisolated func requireProperty(
        _ property: CharacteristicProperties,
        of handle: AttributeHandle
    ) throws(BLEError) {
        do throws(HostError) {
            try host.requireProperty(property, of: handle)
        } catch {
            throw BLEError(error)
        }
    }

    /// Ends a client's link and waits until it has ended. Notifications that are still queued are not sent.
    public func disconnect(_ client: ClientID) async {
        await host.disconnect(client)
    }

    // MARK: Advertising

    /// Advertises until the result is stopped or released, also after connections and failures of the controller.
    ///
    /// ```swift
    /// let advertising = try await adapter.peripheral.startAdvertising(configuration)
    /// …
    /// await advertising.stop()
    /// ```
    ///
    /// While the controller is being brought up again, the call waits for it. If the controller cannot advertise in
    /// addition to its connections, the call returns, and advertising begins when a connection has ended.
    ///
    /// - Parameter configuration: the advertised data, and how it is advertised.
    ///   ``/BluetoothHost/AdvertisementConfiguration`` describes the lengths of the data.
    /// - Returns: the advertisement. Keep it: advertising stops when the last reference to it is released.
    /// - Throws:
    ///   - ``BLEError/invalidArgument(_:)`` if a value of the configuration is out of its range or contradicts another
    ///     one, or the data is too long
    ///   - ``BLEError/limitReached(_:)`` if the controller advertises as many sets as it can
    ///   - ``BLEError/notSupported(_:)`` if the controller lacks a feature
    ///   - ``BLEError/controllerFailed(_:)`` if it refuses a command
    ///   - ``BLEError/closed`` after ``Adapter/close()``
    ///   - ``BLEError/cancelled`` at once if the task is cancelled; nothing is advertised then
    public func startAdvertising(
        _ configuration: AdvertisementConfiguration
    ) async throws(BLEError) -> AdvertisingSet {
        let identifier = try await translating { () throws(HostError) in
            try await host.startAdvertising(configuration)
        }
        return AdvertisingSet(host: host, identifier: identifier)
    }
}

extension BluetoothHost {
    fileprivate func register(_ buffer: AsyncEventBuffer<PeripheralEvent, Never>) -> Registration {
        let clients = ClientSet(linkIdentifiers().filter { (try? information(on: $0))?.isCentral == false })
        let observer = observeServer { event in
            clients.receive(event)
            PeripheralEvent.forEach(from: event) { buffer.append($0) }
        }
        let securityObserver = observeSecurity { event in
            guard let (client, event) = PeripheralEvent.from(event) else { return }
            // Links that this device has made are reported by their own events.
            if clients.contains(client) { buffer.append(event) }
        }
        let closeObserver = observe { event in
            if case .closed = event { buffer.finish() }
        }
        return registration(of: [observer, securityObserver, closeObserver])
    }
}

/// An active advertisement. It stops when the last reference to it is released.
public final class AdvertisingSet: Sendable {
    let host: BluetoothHost
    let identifier: AdvertisementIdentifier
    /// Whether ``stop()`` was called.
    private let isStopped = Atomic(false)

    init(host: BluetoothHost, identifier: AdvertisementIdentifier) {
        self.host = host
        self.identifier = identifier
    }

    deinit {
        guard !isStopped.load(ordering: .relaxed) else { return }
        let identifier = identifier
        host.cleanUp { $0.beginStoppingAdvertising(identifier) }
    }

    /// Replaces the data of the periodic train from one of the next events on. A controller that refuses the data
    /// continues with the earlier one.
    ///
    /// Data of more than 252 bytes needs several commands, which a running train does not accept (Vol 4, Part E,
    /// 7.8.62). So the train ends and another one begins: receivers lose it and have to find the new one.
    ///
    /// - Throws:
    ///   - ``BLEError/invalidArgument(_:)`` if the advertisement has no train, the train has subevents, or the data is
    ///     too long for the controller
    ///   - ``BLEError/closed`` if the advertisement was stopped
    public func setPeriodicData(_ data: AdvertisingData) async throws(BLEError) {
        let (host, identifier) = (host, identifier)
        try await translating { () throws(HostError) in try await host.setPeriodicData(data, of: identifier) }
    }

    func transferTrain(serviceData: UInt16, on link: LinkIdentifier) async throws(BLEError) {
        let (host, identifier) = (host, identifier)
        try await translating { () throws(HostError) in
            try await host.transfer(.advertisement(identifier), serviceData: serviceData, on: link)
        }
    }

    /// Stops advertising, and waits until the controller has stopped. Connections made through the advertisement stay.
    /// If the task is cancelled, the call returns at once; advertising stops nevertheless.
    public func stop() async {
        isStopped.store(true, ordering: .relaxed)
        await host.stopAdvertising(identifier)
    }
}

extension PeripheralEvent {
    /// Passes on the public events for an event of the host. Most have one.
    @inline(__always)
    static func forEach(from event: ServerRoleEvent, _ body: (PeripheralEvent) -> Void) {
        switch event {
        case .connected(let client, let address): body(.connected(client, address))
        case .disconnected(let client, let reason): body(.disconnected(client, reason))
        case .mtuChanged(let client, let mtu): body(.mtuChanged(client, mtu))
        case .access(let client, .read(let handle, let offset)): body(.read(client, handle, offset: offset))
        case .access(let client, .written(let write, let isCommand)):
            body(.written(client, write.handle, offset: write.offset, value: write.value, isCommand: isCommand))
        case .access(let client, .configured(let handle, let old, let new)):
            for (bit, kind) in [(ClientConfiguration.notification, SubscriptionKind.notify), (.indication, .indicate)] {
                if new.contains(bit), !old.contains(bit) { body(.subscribed(client, handle, kind)) }
                if old.contains(bit), !new.contains(bit) { body(.unsubscribed(client, handle, kind)) }
            }
        }
    }
}
