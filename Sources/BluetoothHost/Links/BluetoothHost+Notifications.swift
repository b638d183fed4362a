import BLEATT
import BLEByteCoding
import BLEGATT
import BLEHCI
import BluetoothTypes

// Values that the server sends unrequested.
extension BluetoothHost {
    /// The clients that have subscribed to the characteristic whose value has this handle, and whose links are as
    /// secure as it requires.
    package func subscribers(of handle: AttributeHandle, _ configuration: ClientConfiguration) -> [LinkIdentifier] {
        services.links(configuring: handle, among: links.values)
            .filter { $0.session.sendable(of: handle).contains(configuration) }
            .map(\.identifier)
    }

    /// Notifies the clients that have subscribed and whose links are as secure as the characteristic requires.
    ///
    /// A client's notifications, indications and responses leave in the order of the calls. With `clients`, the call
    /// waits until the link of each had room. Without, it waits for the first link only, so that a slow client delays
    /// no other. A client that is ``OutboundLanes/broadcastLimit`` notifications behind misses the next ones; these
    /// are counted. A client that disconnects causes no error. On other threads than the loop's, the notification can
    /// be submitted; the call then returns before it is sent.
    ///
    /// - Parameter clients: the clients to notify; nil for all.
    /// - Throws: ``HostError/cancelled`` if the task is cancelled while it waits.
    package nonisolated(nonsending) func notify(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to clients: [LinkIdentifier]? = nil
    ) async throws(HostError) {
        if notifyAtOnce(value, of: handle, to: clients) { return }
        try await waitToNotify(value, of: handle, to: clients)
    }

    /// Sends or submits a notification, if the caller need not wait.
    ///
    /// - Returns: whether the notification was sent or submitted. Otherwise call ``waitToNotify(_:of:to:)``.
    package nonisolated func notifyAtOnce(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to clients: [LinkIdentifier]? = nil
    ) -> Bool {
        let notification = NotifyCall(value: value, handle: handle, clients: clients, caller: .submission)
        guard isOnLoop else {
            return submissions.submit(notification) { loop.execute { [self] in call(.sendSubmissions, ()) } }
        }
        return notifyOnLoop(notification)
    }

    /// Sends a notification to its clients, if the outbound queues of all their links have room.
    ///
    /// - Precondition: this is called on the host's loop.
    /// - Returns: false if no client was notified.
    private nonisolated func notifyOnLoop(_ notification: borrowing NotifyCall) -> Bool {
        // The function's isolation is only the promise that it runs on the loop. `assumeIsolated` costs an allocation.
        typealias Function = (BluetoothHost, borrowing NotifyCall) -> Bool
        let isolated: (isolated BluetoothHost, borrowing NotifyCall) -> Bool = { $0.notifyAtOnce($1) }
        return unsafe unsafeBitCast(isolated, to: Function.self)(self, notification)
    }

    /// Sends a notification once the links of the clients have room.
    package nonisolated(nonsending) func waitToNotify(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to clients: [LinkIdentifier]? = nil
    ) async throws(HostError) {
        try await wait(for: .lanes) { host, call in
            host.notify(NotifyCall(value: value, handle: handle, clients: clients, caller: .task(call)))
        }
    }

    /// Notifies the clients if the links of all of them have room.
    ///
    /// - Returns: false if no client was notified.
    private func notifyAtOnce(_ call: borrowing NotifyCall) -> Bool {
        let receivers = receivers(of: call)
        for link in receivers where !link.att.canNotifyAtOnce(hasRoom: hasRoom(on: link)) { return false }
        for link in receivers { notify(call.value, of: call.handle, on: link) }
        endInput()
        return true
    }

    /// The links of the wanted clients that have configured the characteristic.
    private func receivers(of call: borrowing NotifyCall) -> [Link] {
        let links = services.links(configuring: call.handle, among: links.values)
        guard let clients = call.clients else { return links }
        return links.filter { clients.contains($0.identifier) }
    }

    func notify(_ call: borrowing NotifyCall) {
        var blocked: [Link] = []
        var sentCount = 0
        for link in receivers(of: call) {
            if !link.att.canNotifyAtOnce(hasRoom: hasRoom(on: link)) {
                if link.session.sendable(of: call.handle).contains(.notification) { blocked.append(link) }
            } else if notify(call.value, of: call.handle, on: link) {
                sentCount += 1
            }
        }
        if call.clients == nil, !blocked.isEmpty {
            queue(call, to: blocked, isAwaited: sentCount == 0)
            if sentCount > 0 { end(call.caller, .success(())) }
        } else {
            queue(call.value, of: call.handle, to: blocked, for: call.caller, awaiting: blocked.count)
        }
        endInput()
    }

    /// Queues a notification to all clients for those whose links have no room. A client that is too far behind is left
    /// out. If the caller waits, the client that is least behind is never left out.
    private func queue(_ call: borrowing NotifyCall, to blocked: [Link], isAwaited: Bool) {
        // Usually there is one client.
        let isOnly = isAwaited && blocked.count == 1
        var takers =
            isOnly ? blocked : blocked.filter { $0.att.lanes.notificationCount < OutboundLanes.broadcastLimit }
        if takers.isEmpty, isAwaited {
            takers = blocked.min { $0.att.lanes.notificationCount < $1.att.lanes.notificationCount }.map { [$0] } ?? []
        }
        if takers.count < blocked.count { metrics.droppedValues.increment(by: blocked.count - takers.count) }
        let caller = isAwaited ? call.caller : .unawaited
        queue(call.value, of: call.handle, to: takers, for: caller, awaiting: isAwaited ? 1 : takers.count)
    }

    /// - Parameter count: the number of clients after which the caller no longer waits.
    private func queue(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to links: [Link],
        for caller: Caller,
        awaiting count: Int
    ) {
        guard count > 0 else { return end(caller, .success(())) }
        let caller = links.count == 1 ? caller : .broadcast(Broadcast(count, caller))
        for link in links {
            submit(.notification(ValueCall(value: value, handle: handle, caller: caller)), on: link)
        }
    }

    /// - Returns: whether the client is subscribed.
    @discardableResult
    func notify(_ value: [UInt8], of handle: AttributeHandle, on link: Link) -> Bool {
        var buffer = sender.takeBuffer()
        guard link.att.notify(value, of: handle, into: &buffer) else {
            sender.recycle(buffer)
            return false
        }
        send(consume buffer, .value, on: .attribute, of: link)
        return true
    }

    /// Notifies the clients that have subscribed, likewise, without waiting for them. `completion` is called on the
    /// loop when the notification has left the lane of one client, or at once if there is none.
    package func beginNotifying(
        _ value: [UInt8],
        of handle: AttributeHandle,
        completion: @escaping @Sendable (Result<Void, HostError>) -> Void
    ) {
        notify(NotifyCall(value: value, handle: handle, clients: nil, caller: .callback(completion)))
    }

    // MARK: Indications

    /// Sends an indication to one client, after the values sent to it before, and waits for its confirmation. Sends
    /// nothing if the client has not subscribed, or its link is not as secure as the characteristic requires.
    ///
    /// - Throws: ``HostError/cancelled`` if the task is cancelled; the indication may have been sent.
    package nonisolated(nonsending) func indicate(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to identifier: LinkIdentifier
    ) async throws(HostError) {
        try await wait(for: .lane(identifier)) { host, call in
            host.beginIndicating(value, of: handle, to: identifier, for: .task(call))
        }
    }

    /// Sends an indication to each client that has subscribed, and waits for all confirmations. A client that
    /// disconnects causes no error.
    ///
    /// - Parameter clients: the clients; nil for all.
    /// - Throws: ``HostError/cancelled`` if the task is cancelled; the indications may have been sent.
    package nonisolated(nonsending) func indicate(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to clients: [LinkIdentifier]?
    ) async throws(HostError) {
        try await wait(for: .lanes) { host, call in
            host.beginIndicating(value, of: handle, toAnyOf: clients, for: .task(call))
        }
    }

    /// Sends an indication to each client that has subscribed, likewise, without waiting. `completion` is called on the
    /// loop when each client has confirmed or disconnected.
    package func beginIndicating(
        _ value: [UInt8],
        of handle: AttributeHandle,
        completion: @escaping @Sendable (Result<Void, HostError>) -> Void
    ) {
        beginIndicating(value, of: handle, toAnyOf: nil, for: .callback(completion))
    }

    private func beginIndicating(
        _ value: [UInt8],
        of handle: AttributeHandle,
        toAnyOf clients: [LinkIdentifier]?,
        for caller: Caller
    ) {
        defer { endInput() }
        let receivers = subscribers(of: handle, .indication).filter { clients?.contains($0) ?? true }
        guard !receivers.isEmpty else { return end(caller, .success(())) }
        let broadcast = Broadcast(receivers.count, caller)
        for receiver in receivers { beginIndicating(value, of: handle, to: receiver, for: .broadcast(broadcast)) }
    }

    /// Sends an indication to one client, likewise. `completion` is called on the loop when the client has confirmed.
    package func beginIndicating(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to client: LinkIdentifier,
        completion: @escaping @Sendable (Result<Void, HostError>) -> Void
    ) {
        beginIndicating(value, of: handle, to: client, for: .callback(completion))
    }

    private func beginIndicating(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to identifier: LinkIdentifier,
        for caller: Caller
    ) {
        defer { endInput() }
        guard let link = links[identifier] else { return end(caller, .failure(endOfLink(identifier))) }
        guard link.session.sendable(of: handle).contains(.indication) else { return end(caller, .success(())) }
        submit(.indication(ValueCall(value: value, handle: handle, caller: caller)), on: link)
    }

    /// Sends an indication that has left its lane. If the client has unsubscribed since, the call ends without sending.
    func indicate(_ call: ValueCall, _ buffer: consuming PacketBuffer, on link: Link) {
        switch link.att.indicate(call, at: loop.now, into: &buffer) {
        case .written:
            send(consume buffer, .value, on: .attribute, of: link)
            if let deadline = link.att.deadline { armTimer(of: link, by: deadline) }
        case .unsubscribed:
            sender.recycle(buffer)
            end(call.caller, .success(()))
        case .refused:
            sender.recycle(buffer)
            end(call.caller, .failure(.disconnected(link.control.ownReason ?? .attributeTransactionTimeout)))
        }
    }

    // MARK: Service Changed

    /// Indicates Service Changed for a range of handles to the clients that have subscribed to it (Vol 3, Part G, 7.1).
    func servicesChanged(_ range: HandleRange) {
        for link in links.values { indicateServiceChanged(range, to: link) }
        endInput()
    }

    func indicateServiceChanged(_ range: HandleRange, to link: Link) {
        guard let handle = services.server.serviceChanged,
            link.session.sendable(of: handle).contains(.indication)
        else { return }
        let value = PacketBuffer.bytes {
            $0.append(range.start.rawValue)
            $0.append(range.end.rawValue)
        }
        let caller = Caller.serviceChanged(revision: link.session.databaseRevision)
        submit(.indication(ValueCall(value: value, handle: handle, caller: caller)), on: link)
    }

    /// Records that a client has confirmed Service Changed. An indication that was not sent does not count.
    func serviceChangedConfirmed(_ revision: UInt64, on link: Link) {
        link.session.serviceChangedConfirmed(revision: revision)
        performServerEffects(of: link)
    }
}

/// A notification requested by an app.
struct NotifyCall: Sendable {
    let value: [UInt8]
    let handle: AttributeHandle
    /// The clients to notify; nil for all.
    let clients: [LinkIdentifier]?
    var caller: Caller
}
