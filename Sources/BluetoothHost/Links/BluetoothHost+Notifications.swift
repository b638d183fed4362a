import ATT
import BluetoothTypes
import ByteCoding
import GATT
import HCI

// What the server sends by itself.
extension BluetoothHost {
    /// The clients that want to be sent the characteristic whose value has this handle, and may be: where it asks for a
    /// secure link, theirs is one now.
    package func subscribers(of handle: AttributeHandle, _ configuration: ClientConfiguration) -> [LinkIdentifier] {
        subscriptions.links(configuring: handle, among: links.values, server)
            .filter { $0.session.sendable(of: handle).contains(configuration) }
            .map(\.identifier)
    }

    /// Notifies the clients that have subscribed and whose links are as secure as the characteristic requires.
    ///
    /// A client's notifications, indications and responses leave in the order of the calls. With `clients`, the call waits
    /// until there was room for each of them. Without, it waits for the first only, so that a slow client delays no other;
    /// a client that is ``OutboundLanes/notificationLimit`` notifications behind misses those that follow, which is counted. A client that disconnects is no error. On other threads than the loop's, the
    /// notification can be submitted; the call then returns before it is sent.
    ///
    /// - Parameter clients: nil for all.
    /// - Throws: ``HostError/cancelled`` if the task is cancelled while it waits.
    package nonisolated(nonsending) func notify(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to clients: [LinkIdentifier]? = nil
    ) async throws(HostError) {
        let notification = NotifyCall(value: value, handle: handle, clients: clients, caller: .submission)
        if isOnLoop {
            if LoopQuery.notifyAtOnce(self, notification) { return }
        } else if submissions.submit(notification, { loop.execute { [self] in call(.sendSubmissions, ()) } }) {
            return
        }
        try await wait(for: .lanes) { host, call in
            var notification = notification
            notification.caller = .task(call)
            host.notify(notification)
        }
    }

    /// Notifies the clients if all of them have room.
    ///
    /// - Returns: false if nothing was done.
    fileprivate func notifyAtOnce(_ call: borrowing NotifyCall) -> Bool {
        for link in receivers(of: call) where !link.att.canNotifyAtOnce(hasRoom: hasRoom(on: link)) { return false }
        for link in receivers(of: call) { notify(call.value, of: call.handle, on: link) }
        endInput()
        return true
    }

    /// The links whose clients have ever configured the characteristic, of those that are wanted.
    private func receivers(of call: borrowing NotifyCall) -> [Link] {
        let links = subscriptions.links(configuring: call.handle, among: links.values, server)
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

    /// Queues a notification to all clients for those that have no room. One that is too far behind is left out, except the
    /// one that is the least behind if the caller waits.
    private func queue(_ call: borrowing NotifyCall, to blocked: [Link], isAwaited: Bool) {
        // Mostly there is one client.
        let isOnly = isAwaited && blocked.count == 1
        var takers =
            isOnly ? blocked : blocked.filter { $0.att.lanes.notificationCount < OutboundLanes.notificationLimit }
        if takers.isEmpty, isAwaited {
            takers = blocked.min { $0.att.lanes.notificationCount < $1.att.lanes.notificationCount }.map { [$0] } ?? []
        }
        if takers.count < blocked.count { metrics.droppedValues.increment(by: blocked.count - takers.count) }
        let caller = isAwaited ? call.caller : .unawaited
        queue(call.value, of: call.handle, to: takers, for: caller, awaiting: isAwaited ? 1 : takers.count)
    }

    /// - Parameter count: the number of clients after which the caller need not wait any longer.
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
    private func notify(_ value: [UInt8], of handle: AttributeHandle, on link: Link) -> Bool {
        var buffer = sender.takeBuffer()
        guard link.att.notify(value, of: handle, into: &buffer) else {
            sender.recycle(buffer)
            return false
        }
        send(consume buffer, .value, on: .attribute, of: link)
        return true
    }

    /// Notifies the clients that have subscribed, likewise, without waiting for them. `completion` is called on the loop when
    /// the notification has left the lane of one client, or at once if there is none.
    package func beginNotifying(
        _ value: [UInt8],
        of handle: AttributeHandle,
        completion: @escaping @Sendable (Result<Void, HostError>) -> Void
    ) {
        notify(NotifyCall(value: value, handle: handle, clients: nil, caller: .callback(completion)))
    }

    /// Notifies one client, behind the values that were sent to it before. `completion` is called on the loop when the
    /// notification has left its lane.
    package func beginNotifying(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to client: LinkIdentifier,
        completion: @escaping @Sendable (Result<Void, HostError>) -> Void
    ) {
        notify(NotifyCall(value: value, handle: handle, clients: [client], caller: .callback(completion)))
    }

    // MARK: Indications

    /// Indicates to one client, behind the values that were sent to it before, and waits for its confirmation. Nothing is
    /// sent if the client has not subscribed, or its link is not as secure as the characteristic requires.
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

    /// Indicates to the clients that have subscribed and waits for the confirmation of each. A client that disconnects is no
    /// error.
    ///
    /// - Parameter clients: nil for all.
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

    /// Indicates to the clients that have subscribed, likewise, without waiting for them. `completion` is called on the loop when
    /// each has confirmed or disconnected.
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

    /// Indicates to one client, likewise. `completion` is called on the loop with the client's confirmation.
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

    /// Sends an indication that has left its lane. One that the client has unsubscribed from since is done.
    func indicate(_ call: ValueCall, _ buffer: consuming PacketBuffer, on link: Link) {
        switch link.att.indicate(call, at: loop.now, into: &buffer) {
        case .written:
            send(consume buffer, .value, on: .attribute, of: link)
            armTimer(of: link)
        case .unsubscribed:
            sender.recycle(buffer)
            end(call.caller, .success(()))
        case .refused:
            sender.recycle(buffer)
            end(call.caller, .failure(.disconnected(link.ownReason ?? .attributeTransactionTimeout)))
        }
    }

    // MARK: Service Changed

    /// Tells the clients that want to know that the services in a range are others (Vol 3, Part G, 7.1).
    func servicesChanged(_ range: HandleRange) {
        for link in links.values { indicateServiceChanged(range, to: link) }
        endInput()
    }

    func indicateServiceChanged(_ range: HandleRange, to link: Link) {
        guard let handle = server.serviceChanged, link.session.sendable(of: handle).contains(.indication) else {
            return
        }
        let value = PacketBuffer.bytes {
            $0.append(range.start.rawValue)
            $0.append(range.end.rawValue)
        }
        let identifier = link.identifier
        let caller = Caller.callback { [weak self] result in
            guard case .success = result else { return }
            self?.assumeIsolated { host in
                guard let link = host.links[identifier] else { return }
                link.session.serviceChangedConfirmed()
                host.performServerEffects(of: link)
            }
        }
        submit(.indication(ValueCall(value: value, handle: handle, caller: caller)), on: link)
    }
}

/// A notification that an app asked for.
struct NotifyCall: Sendable {
    let value: [UInt8]
    let handle: AttributeHandle
    /// Nil for all clients.
    let clients: [LinkIdentifier]?
    var caller: Caller
}

extension LoopQuery<NotifyCall, Bool> {
    fileprivate static let notifyAtOnce = LoopQuery { $0.notifyAtOnce($1) }
}
