import BluetoothHost
import BluetoothTypes

// Periodic advertising with responses (Vol 3, Part C, 9.5; Vol 6, Part B, 4.4.2.12): trains whose events consist of
// subevents. The advertiser sends data in each subevent. Synchronized devices answer in response slots, without a
// connection.

/// An event of the subevents of an advertisement's train.
public enum PeriodicSubeventEvent: Sendable, Hashable {
    /// The controller requests data for these subevents, and none is queued. Data that is sent now leaves in the next
    /// of these subevents. Without data, the controller sends an empty packet or none.
    case dataRequested([UInt8])
    /// The content of a response slot. The responses to one packet follow in the order of the slots.
    case response(PeriodicResponse)
    /// The controller has not sent the packet of this subevent.
    case notSent(subevent: UInt8)
    /// As many events were dropped at this place, because the reader was too slow.
    case eventsDropped(Int)
}

extension AdvertisingSet {
    /// Returns the events of the train's subevents from now on. Each call returns a sequence of its own, which ends
    /// when the advertisement is stopped or the adapter is closed.
    ///
    /// ```swift
    /// for await event in try await advertising.subeventEvents() {
    ///     switch event {
    ///     case .dataRequested(let subevents):
    ///         try await advertising.send(subevents.map { PeriodicSubeventData(data, subevent: $0, responseSlots: 0..<4) })
    ///     case .response(let response): print(response)
    ///     case .notSent, .eventsDropped: break
    ///     }
    /// }
    /// ```
    ///
    /// - Throws: ``BLEError/invalidArgument(_:)`` if the train has no subevents, and ``BLEError/closed`` if the
    ///   advertisement was stopped.
    public func subeventEvents() async throws(BLEError) -> Events<PeriodicSubeventEvent> {
        let (host, identifier) = (host, identifier)
        let buffer = AsyncEventBuffer<PeriodicSubeventEvent, Never>(
            limit: 8192,
            report: .element { .eventsDropped($0) }
        )
        let observer = try await translating { () throws(HostError) in
            try await host.observeSubevents(of: identifier) { event in
                switch event {
                case .dataRequested(let subevents): buffer.append(.dataRequested(subevents))
                case .response(let response): buffer.append(.response(response))
                case .notSent(let subevent): buffer.append(.notSent(subevent: subevent))
                case .ended: buffer.finish()
                }
            }
        }
        let registration = Registration { [weak host] in
            host?.cleanUp { $0.removeSubeventObserver(observer, of: identifier) }
        }
        return Events(buffer: buffer, registration: registration)
    }

    /// Sends data in subevents of the train, each once, and waits until the controller has accepted all of it.
    ///
    /// The controller requests the data of a subevent some time before it. Data of one subevent waits for that in the
    /// order of the calls; at most 16 packets wait for a subevent. After a reset of the controller, data that it has
    /// not accepted waits further. That the controller has accepted the data does not mean that a device has received
    /// it.
    ///
    /// - Parameter data: the data of any subevents.
    /// - Throws:
    ///   - ``BLEError/invalidArgument(_:)`` if the train has no such subevent or response slot, data is too long, or
    ///     there are more than 16 packets for a subevent
    ///   - ``BLEError/limitReached(_:)`` if packets of earlier calls wait, and more than 16 would wait for a subevent
    ///   - ``BLEError/controllerFailed(_:)`` if the controller refuses the data
    ///   - ``BLEError/closed`` if the advertisement was stopped
    ///   - ``BLEError/cancelled`` at once if the task is cancelled; data that the controller does not have is not sent
    ///     then
    public func send(_ data: [PeriodicSubeventData]) async throws(BLEError) {
        let (host, identifier) = (host, identifier)
        try await translating { () throws(HostError) in try await host.sendSubeventData(data, of: identifier) }
    }

    /// Sends data in a subevent of the train, once; see ``send(_:)``.
    ///
    /// - Parameters:
    ///   - data: up to 249 bytes.
    ///   - subevent: 0 to 127.
    ///   - responseSlots: the slots in which devices may respond.
    /// - Throws: the errors of ``send(_:)``.
    public func send(
        _ data: AdvertisingData,
        subevent: UInt8,
        responseSlots: Range<UInt8> = 0..<0
    ) async throws(BLEError) {
        try await send([PeriodicSubeventData(data, subevent: subevent, responseSlots: responseSlots)])
    }
}

extension AdvertisingSet {
    /// Connects to a device that is synchronized with the train of this advertisement, and listens to a subevent.
    ///
    /// The controller sends the request in the subevent instead of data, again and again until the device answers. If
    /// several calls wait, their requests take turns. Such a device need not advertise. It becomes the peripheral of
    /// the connection. If it is connected already, the result shares its link; see
    /// <doc:RemotePeripheral#Sharing-a-link>. Connections to advertisers wait until these calls have ended.
    ///
    /// - Parameters:
    ///   - address: the public or static random address of the device.
    ///   - subevent: 0 to 127.
    ///   - timeout: how long to repeat the request.
    ///   - parameters: the interval, latency and supervision timeout of the connection.
    /// - Throws:
    ///   - ``BLEError/timedOut(_:)`` if the device has not answered
    ///   - ``BLEError/invalidArgument(_:)`` if the train has no such subevent
    ///   - ``BLEError/closed`` if the advertisement was stopped
    ///   - ``BLEError/notReady`` if the train does not run yet
    ///   - ``BLEError/notSupported(_:)`` if the controller cannot connect in trains
    ///   - ``BLEError/controllerFailed(_:)`` if the controller refuses the request
    ///   - ``BLEError/cancelled`` if the task is cancelled
    public func connect(
        to address: DeviceAddress,
        inSubevent subevent: UInt8,
        timeout: Duration = .seconds(30),
        parameters: ConnectionParameters = ConnectionParameters()
    ) async throws(BLEError) -> RemotePeripheral {
        let (host, identifier) = (host, identifier)
        return try await translating("connecting to \(address) in subevent \(subevent)") { () throws(HostError) in
            let link = try await host.connect(
                to: address,
                inSubevent: subevent,
                of: identifier,
                parameters: parameters,
                timeout: timeout
            )
            return RemotePeripheral(host: host, link: link, address: try await host.information(on: link).peer)
        }
    }
}

extension Central {
    /// Sends a response to a packet of a train with subevents.
    ///
    /// The synchronization that has received the packet must not have ended. The call returns when the controller has
    /// accepted the response; nothing confirms that the advertiser has received it.
    ///
    /// ```swift
    /// let request = PeriodicTrainRequest(address: address, sid: sid, subevents: [3])
    /// for try await case .received(let advertisement) in adapter.central.periodicAdvertising(request) {
    ///     try await adapter.central.respond(answer(advertisement.data), to: advertisement, slot: 1)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - data: up to 247 bytes.
    ///   - advertisement: the packet.
    ///   - slot: the response slot: 0 to 254.
    ///   - subevent: the subevent in which the response is sent; nil for the subevent of the packet. An earlier one is
    ///     one of the next event.
    /// - Throws:
    ///   - ``BLEError/invalidArgument(_:)`` if the packet was not received in a subevent, or its train is not received
    ///     now
    ///   - ``BLEError/invalidArgument(_:)`` if the data is too long, or there is no such slot
    ///   - ``BLEError/controllerFailed(_:)`` if the controller refuses the response, for example because the slot is
    ///     over
    public func respond(
        _ data: AdvertisingData,
        to advertisement: PeriodicAdvertisement,
        slot: UInt8,
        inSubevent subevent: UInt8? = nil
    ) async throws(BLEError) {
        try await translating { () throws(HostError) in
            try await host.respond(data, to: advertisement, subevent: subevent, slot: slot)
        }
    }
}
