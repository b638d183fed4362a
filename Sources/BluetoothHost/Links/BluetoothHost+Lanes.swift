import ATT
import BluetoothTypes
import ByteCoding
import GATT
import L2CAP

// The order in which the calls of apps leave the host: see `OutboundLanes`.
extension BluetoothHost {
    /// Whether the link's outbound queue takes another frame of an app.
    func hasRoom(on link: Link) -> Bool {
        sender.room(link.slot) > 0
    }

    // MARK: Submitting

    /// Starts a client procedure, or queues it behind the calls before it.
    func submit(_ call: borrowing ProcedureCall) {
        // A cancellation can arrive before its call.
        guard !call.run.hasEnded else { return call.end(.ended()) }
        guard let link = links[call.link] else { return call.end(.failure(endOfLink(call.link))) }
        guard link.lanes.client.isEmpty, !link.protection.awaitsProof else {
            link.lanes.append(.procedure(copy call), sequence: makeIdentifier())
            pumpLanes(of: link)
            return sendPending()
        }
        start(call, on: link)
        sendPending()
    }

    /// Gives a procedure to the link's client, which puts out its end.
    func start(_ call: borrowing ProcedureCall, on link: Link) {
        link.procedureCalls.append(copy call)
        link.client.perform(call.run)
        if link.client.isClosed {
            takeOutputs(ofClientOf: link)
        } else {
            pumpClient(of: link)
        }
    }

    /// Ends a procedure that its caller cancels: at once if it waits in its lane, else when its response has come.
    func cancel(_ run: ProcedureRun, on identifier: LinkIdentifier) {
        guard let link = links[identifier] else { return run.cancel() }
        if let call = link.lanes.remove(run) {
            call.end(.failure(.cancelled))
            pumpLanes(of: link)
            sendPending()
        } else {
            link.client.cancel(run)
            takeOutputs(ofClientOf: link)
            pumpClient(of: link)
            pumpLanes(of: link)
            sendPending()
        }
    }

    /// Sends a write without response, or queues it behind the calls before it.
    func submit(_ call: borrowing WriteCall) {
        guard let link = links[call.link] else { return end(call, .failure(endOfLink(call.link))) }
        guard link.lanes.client.isEmpty, canSend(call, on: link) else {
            if case .submission = call.caller, link.protection.awaitsProof {
                // The next caller waits, and learns whether the peer's identity could be verified.
                submissions.closeFastPath(to: call.link)
            }
            link.lanes.append(.write(copy call), sequence: makeIdentifier())
            pumpLanes(of: link)
            return sendPending()
        }
        send(call, on: link)
        sendPending()
    }

    /// Sends a write without response if no call is before it and it can be sent now.
    ///
    /// - Returns: nil if nothing was done.
    func sendAtOnce(_ call: borrowing WriteCall) -> Result<Void, HostError>? {
        guard let link = links[call.link] else { return .failure(endOfLink(call.link)) }
        guard link.lanes.client.isEmpty, canSend(call, on: link) else { return nil }
        do throws(HostError) {
            try write(call, on: link)
            sendPending()
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    /// Queues a value behind the calls before it, or sends it.
    func submit(_ work: OutboundLanes.Work, on link: Link) {
        link.lanes.append(work, sequence: makeIdentifier())
        pumpLanes(of: link)
    }

    func endOfLink(_ identifier: LinkIdentifier) -> HostError {
        .disconnected(endedLinks[identifier] ?? .adapterClosed)
    }

    // MARK: Sending

    /// Sends the calls that wait on a link, the oldest first, as far as they can be sent.
    func pumpLanes(of link: Link) {
        // A call that ends may run code that submits the next: the loop below continues with it.
        guard !link.isPumpingLanes else { return }
        link.isPumpingLanes = true
        while sendNextCall(on: link) {}
        link.isPumpingLanes = false
        verifyIdentityForClientLane(of: link)
        resumeDrains(of: link)
    }

    /// - Returns: whether a call has left its lane.
    private func sendNextCall(on link: Link) -> Bool {
        let client = link.lanes.client.first.flatMap { canSend($0.work, on: link) ? $0.sequence : nil }
        let server = link.lanes.server.first.flatMap { canSend($0.work, on: link) ? $0.sequence : nil }
        switch (client, server) {
        case (let client?, let server?): return client < server ? sendClientCall(on: link) : sendServerCall(on: link)
        case (_?, nil): return sendClientCall(on: link)
        case (nil, _?): return sendServerCall(on: link)
        case (nil, nil):
            guard isBlockedByIndication(link), let answer = link.lanes.popAnswer() else { return false }
            send(answer, on: link)
            return true
        }
    }

    /// Whether a call waits though it can be sent; for tests.
    func hasSendableCall(on link: Link) -> Bool {
        (link.lanes.client.first.map { canSend($0.work, on: link) } ?? false)
            || (link.lanes.server.first.map { canSend($0.work, on: link) } ?? false)
    }

    private func sendClientCall(on link: Link) -> Bool {
        switch link.lanes.popClient()?.work {
        case .procedure(let call): start(call, on: link)
        case .write(let call): send(call, on: link)
        case .notification, .indication, .answer, nil: return false
        }
        return true
    }

    private func sendServerCall(on link: Link) -> Bool {
        switch link.lanes.popServer()?.work {
        case .notification(let call): notify(call, on: link)
        case .indication(let call): indicate(call, on: link)
        case .answer(let answer): send(answer, on: link)
        case .procedure, .write, nil: return false
        }
        return true
    }

    private func canSend(_ work: OutboundLanes.Work, on link: Link) -> Bool {
        switch work {
        case .procedure: !link.protection.awaitsProof
        case .write(let call): canSend(call, on: link)
        case .notification: hasRoom(on: link)
        case .indication: link.indicationInFlight == nil
        case .answer: true
        }
    }

    private func canSend(_ call: borrowing WriteCall, on link: Link) -> Bool {
        // A signature proves the client's identity to the server and nothing about the server, so it need not wait.
        let isGateOpen = call.signature != nil || !link.protection.awaitsProof
        return isGateOpen && hasRoom(on: link) && !link.client.isBusyForCommands
    }

    private func isBlockedByIndication(_ link: Link) -> Bool {
        guard case .indication? = link.lanes.server.first?.work else { return false }
        return link.indicationInFlight != nil
    }

    private func send(_ call: borrowing WriteCall, on link: Link) {
        do throws(HostError) {
            try write(call, on: link)
            if call.opensFastPath { submissions.openFastPath(to: call.link, maximumLength: link.bearer.mtu - 3) }
            end(call, .success(()))
        } catch {
            end(call, .failure(error))
        }
    }

    private func end(_ call: borrowing WriteCall, _ result: Result<Void, HostError>) {
        guard case .submission = call.caller else { return end(call.caller, result) }
        submissions.writeSent(to: call.link)
        if case .failure = result { submissions.closeFastPath(to: call.link) }
    }

    // MARK: Ending

    /// Ends all calls that wait on a link that has ended.
    func endLanes(of link: Link, _ reason: DisconnectionReason) {
        let error = HostError.disconnected(reason)
        for item in link.lanes.removeAll() { end(item.work, on: link, error) }
        if let indication = link.indicationInFlight.take() { end(indication.caller, .failure(error)) }
        let drains = link.drains
        link.drains = []
        for drain in drains { drain.call.end(.success(())) }
    }

    private func end(_ work: OutboundLanes.Work, on link: Link, _ error: HostError) {
        switch work {
        case .procedure(let call): call.end(.failure(error))
        case .write(let call): end(call, .failure(error))
        // A client that disconnects is no failure of a notification.
        case .notification(let call): end(call.caller, .success(()))
        case .indication(let call): end(call.caller, .failure(error))
        case .answer: break
        }
    }

    /// Begins to verify the identity of a bonded peer that the client lane waits for.
    private func verifyIdentityForClientLane(of link: Link) {
        guard !link.lanes.client.isEmpty, link.protection.awaitsProof, !link.isVerifyingForLane,
            links[link.identifier] != nil
        else { return }
        link.isVerifyingForLane = true
        let identifier = link.identifier
        whenProven(link) { [weak self] result in
            self?.assumeIsolated { host in
                guard let link = host.links[identifier] else { return }
                link.isVerifyingForLane = false
                if case .failure(let error) = result {
                    for item in link.lanes.removeAllOfClient() { host.end(item.work, on: link, error) }
                }
                host.pumpLanes(of: link)
            }
        }
    }

    // MARK: Draining

    /// Waits until the controller has sent all that was written on a link before. Cancelling the task ends the wait.
    package func flush(_ identifier: LinkIdentifier) async {
        try? await wait { host, call in
            guard let link = host.links[identifier] else { return call.end(.success(())) }
            link.drains.append(Link.Drain(sequence: host.makeIdentifier(), call: call))
            host.resumeDrains(of: link)
        }
    }

    /// Ends the calls that wait until their link's packets are sent, if they are.
    func resumeDrains(of link: Link) {
        guard !link.drains.isEmpty, sender.isDrained(link.slot) else { return }
        let drains = link.drains
        link.drains = drains.filter { link.lanes.hasUnsentValue(before: $0.sequence) && $0.call.isWaiting }
        for drain in drains where !link.lanes.hasUnsentValue(before: drain.sequence) { drain.call.end(.success(())) }
    }
}
