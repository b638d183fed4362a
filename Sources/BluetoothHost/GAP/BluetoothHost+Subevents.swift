import BLEByteCoding
import BLEHCI
import BluetoothTypes

// Periodic advertising with responses (Vol 3, Part C, 9.5).
extension BluetoothHost {
    // MARK: The advertiser

    /// Queues data for subevents of an advertisement's train, and waits until the controller has accepted it.
    ///
    /// - Throws: ``HostError/cancelled`` at once if the task is cancelled. Data that the controller does not have is
    ///   not sent then.
    package func sendSubeventData(
        _ data: [PeriodicSubeventData],
        of identifier: AdvertisementIdentifier
    ) async throws(HostError) {
        try await wait(for: .subeventData(identifier)) { host, call in
            do throws(HostError) {
                guard host.power != .closed else { throw .closed }
                host.perform(try host.gap.sendSubeventData(data, of: identifier, for: call, host.gapContext))
            } catch {
                host.end(call, .failure(error))
            }
        }
    }

    /// Calls `observer` on the loop with each event of the subevents of an advertisement's train from now on, until the
    /// advertisement has ended or ``removeSubeventObserver(_:of:)``. The first event has the requests that are open.
    ///
    /// - Throws: ``HostError/closed`` if the advertisement has ended, and ``HostError/invalidArgument(_:)`` if it has
    ///   no subevents.
    package func observeSubevents(
        of identifier: AdvertisementIdentifier,
        _ observer: @escaping @Sendable (SubeventEvent) -> Void
    ) throws(HostError) -> UInt64 {
        let requests = try gap.openSubeventRequests(of: identifier)
        let number = observers.makeIdentifier()
        observers.subevents[identifier, default: [:]][number] = observer
        if !requests.isEmpty { deliver(.subeventEvent(identifier, number, .dataRequested(requests))) }
        endInput()
        return number
    }

    package func removeSubeventObserver(_ number: UInt64, of identifier: AdvertisementIdentifier) {
        // Code of the app that runs at the release may call the host.
        let removed = observers.subevents[identifier]?.removeValue(forKey: number)
        if observers.subevents[identifier]?.isEmpty == true { observers.subevents[identifier] = nil }
        withExtendedLifetime(removed) {}
    }

    func report(_ event: SubeventEvent, of identifier: AdvertisementIdentifier) {
        if event == .ended {
            for observer in (observers.subevents.removeValue(forKey: identifier) ?? [:]).values {
                deliver(.subeventEnd(observer))
            }
        } else {
            for number in (observers.subevents[identifier] ?? [:]).keys {
                deliver(.subeventEvent(identifier, number, event))
            }
        }
    }

    func receive(_ event: borrowing LEPeriodicAdvertisingResponseReport) throws(PacketDecodingError) {
        var effects: [SubeventEffect] = []
        defer { perform(gap.subeventResponses(effects)) }
        try gap.subevents.receive(event, at: loop.now, into: &effects)
    }

    // MARK: The responder

    /// Sends a response to the packet of a subevent.
    ///
    /// - Parameters:
    ///   - data: up to 247 bytes.
    ///   - advertisement: the packet, received by a synchronization that has not ended.
    ///   - subevent: the subevent in which the response is sent; nil for that of the packet.
    ///   - slot: the response slot, 0 to 254.
    package func respond(
        _ data: AdvertisingData,
        to advertisement: PeriodicAdvertisement,
        subevent: UInt8?,
        slot: UInt8
    ) async throws(HostError) {
        _ = try usableInformation()
        guard let place = advertisement.place, let requestSubevent = place.subevent else {
            throw .invalidArgument("the advertisement was not received in a subevent")
        }
        let limit = PeriodicAdvertisingResponsePayload.maximumLength
        guard data.length <= limit else {
            throw .invalidArgument("a response has at most \(limit) bytes, not \(data.length)")
        }
        guard slot <= 254 else { throw .invalidArgument("a response slot is 0 to 254, not \(slot)") }
        guard let handle = gap.synchronizing.handle(of: advertisement.synchronization) else {
            throw .invalidArgument("the train of the advertisement is not received now")
        }
        let command = LESetPeriodicAdvertisingResponseData(
            syncHandle: handle,
            requestEvent: place.event,
            requestSubevent: requestSubevent,
            responseSubevent: subevent ?? requestSubevent,
            responseSlot: slot,
            responseData: .init(data.bytes)
        )
        do throws(CommandFailure) {
            try await perform(command)
        } catch {
            throw .command(error)
        }
    }
}
