import BLEGATT
import BluetoothTypes

// Values to several clients whose caller waits for the clients.
extension BluetoothHost {
    /// Sends a value to each of the clients, behind the values that were sent to it before, without waiting. Clients
    /// that have configured notifications get one, and others an indication. Clients that have not subscribed, or whose
    /// links are not as secure as the characteristic requires, get nothing.
    ///
    /// `completion` is called on the loop when each client has taken the value or can no longer take it. A notification
    /// is taken when it has left its lane, an indication when the client has confirmed it. If no client gets the value,
    /// `completion` is called at once.
    ///
    /// With several clients, `completion` waits for each of them at most ``UpdatesInFlight/timeout``. A client that
    /// has not taken the value by then is behind: calls do not wait for it until it has taken all its values. If all
    /// clients are behind, calls wait for the first one to take the value. A client for which
    /// ``OutboundLanes/broadcastLimit`` values wait misses the next ones; these are counted. The client for which the
    /// fewest values wait never misses one. An only client gets all values, however long it takes.
    package func beginSending(
        _ value: [UInt8],
        of handle: AttributeHandle,
        to clients: [LinkIdentifier],
        completion: @escaping @Sendable (Result<Void, HostError>) -> Void
    ) {
        defer { endInput() }
        let receivers = clients.compactMap { links[$0] }.filter { !$0.session.sendable(of: handle).isEmpty }
        var takers = receivers.filter { $0.att.lanes.valueCount < OutboundLanes.broadcastLimit }
        if takers.isEmpty, let first = receivers.min(by: { $0.att.lanes.valueCount < $1.att.lanes.valueCount }) {
            takers = [first]
        }
        if takers.count < receivers.count { metrics.droppedValues.increment(by: receivers.count - takers.count) }
        let caller = Caller.callback(completion)
        guard receivers.count > 1 else {
            guard let only = receivers.first else { return end(caller, .success(())) }
            return send(ValueCall(value: value, handle: handle, caller: caller), to: only)
        }
        for link in takers where !link.att.hasUnsentValue { link.att.isBehind = false }
        let awaited = takers.filter { !$0.att.isBehind }
        let broadcast = Broadcast(max(awaited.count, 1), caller)
        for link in takers {
            let isAwaited = awaited.isEmpty || !link.att.isBehind
            let call = ValueCall(value: value, handle: handle, caller: isAwaited ? .broadcast(broadcast) : .unawaited)
            send(call, to: link)
        }
        guard !awaited.isEmpty, !broadcast.hasEnded else { return }
        updates.append(
            UpdatesInFlight.Update(
                broadcast: broadcast,
                links: awaited.map(\.identifier),
                deadline: loop.now + UpdatesInFlight.timeout
            )
        )
        setUpdateTimer()
    }

    /// Sends a value as a notification or an indication, or queues it behind the values before it.
    private func send(_ call: ValueCall, to link: Link) {
        guard link.session.sendable(of: call.handle).contains(.notification) else {
            return submit(.indication(call), on: link)
        }
        guard link.att.canNotifyAtOnce(hasRoom: hasRoom(on: link)) else {
            return submit(.notification(call), on: link)
        }
        notify(call.value, of: call.handle, on: link)
        end(call.caller, .success(()))
    }

    /// Ends the wait for the clients that have not taken a value in time. No other value waits for them any more.
    func updateDeadlineReached() {
        updates.hasTimer = false
        for update in updates.due(at: loop.now) {
            for link in update.links.compactMap({ links[$0] }) where link.att.hasUnsentValue(of: update.broadcast) {
                link.att.isBehind = true
            }
        }
        for update in updates.remove(where: { !isAwaited($0) }) {
            if let result = update.broadcast.end() { end(update.broadcast.caller, result) }
        }
        setUpdateTimer()
    }

    /// Whether a client that is not behind has not taken the value.
    private func isAwaited(_ update: UpdatesInFlight.Update) -> Bool {
        update.links.contains { identifier in
            guard let link = links[identifier], !link.att.isBehind else { return false }
            return link.att.hasUnsentValue(of: update.broadcast)
        }
    }

    private func setUpdateTimer() {
        guard !updates.hasTimer, let deadline = updates.deadline else { return }
        updates.hasTimer = true
        _ = schedule(.update, at: deadline)
    }
}
