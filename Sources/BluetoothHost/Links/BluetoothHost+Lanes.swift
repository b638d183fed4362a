import BLEATT
import BLEByteCoding
import BLEGATT
import BLEL2CAP
import BLESMP
import BluetoothTypes

// The order in which the calls of apps leave the host: see `OutboundLanes`.
extension BluetoothHost {
    /// Whether the link's outbound queue has room for another frame of an app.
    func hasRoom(on link: Link) -> Bool {
        sender.room(link.slot) > 0
    }

    /// Whether the link's client may send: not while the peer is bonded and its identity unverified.
    func isGateOpen(on link: Link) -> Bool { !link.isGateClosed }

    func conditions(on link: Link) -> ATTRouter.Conditions {
        ATTRouter.Conditions(hasRoom: hasRoom(on: link), isGateOpen: isGateOpen(on: link))
    }

    // MARK: Submitting

    /// Starts a client procedure, or queues it behind the calls before it.
    func submit(_ call: borrowing ProcedureCall) {
        // A cancellation can arrive before its call.
        guard !call.run.hasEnded else {
            end(call, .ended())
            return endInput()
        }
        guard let link = links[call.link] else {
            end(call, .failure(endOfLink(call.link)))
            return endInput()
        }
        guard link.att.canStartAtOnce(call, isGateOpen: isGateOpen(on: link)) else {
            link.att.append(.procedure(copy call))
            pumpLanes(of: link)
            return endInput()
        }
        start(call, on: link)
        endInput()
    }

    /// Gives a procedure to the link's client, which reports when it has ended.
    func start(_ call: borrowing ProcedureCall, on link: Link) {
        if let bearer = link.att.start(call) { return pump(bearer, of: link) }
        if link.client.isClosed {
            performClientEffects(of: link)
        } else {
            pumpClient(of: link)
        }
    }

    /// Cancels a procedure for its caller. If its request was sent, the host still waits for the response and ignores
    /// it.
    func cancel(_ run: ProcedureRun, on identifier: LinkIdentifier) {
        guard let link = links[identifier] else { return run.cancel() }
        if cancelOnEnhancedBearer(run, of: link) {
            pumpLanes(of: link)
            return endInput()
        }
        if let call = link.att.cancel(run) {
            end(call, .failure(.cancelled))
        } else {
            performClientEffects(of: link)
            pumpClient(of: link)
        }
        pumpLanes(of: link)
        endInput()
    }

    /// Sends a write without response, or queues it behind the calls before it.
    func submit(_ call: borrowing WriteCall) {
        guard let link = links[call.link] else {
            end(call, .failure(endOfLink(call.link)))
            return endInput()
        }
        guard link.att.canSendAtOnce(call, conditions(on: link)) else {
            if case .submission = call.caller, link.isGateClosed {
                // The next caller waits for the loop, and gets the error if the peer's identity could not be verified.
                submissions.closeFastPath(to: call.link)
            }
            link.att.append(.write(copy call))
            pumpLanes(of: link)
            return endInput()
        }
        send(call, on: link)
        endInput()
    }

    /// Sends a write without response if no other call waits before it and it can be sent now.
    ///
    /// - Returns: nil if the write was not sent and has not failed.
    func sendAtOnce(_ call: borrowing WriteCall) -> Result<Void, HostError>? {
        guard let link = links[call.link] else { return .failure(endOfLink(call.link)) }
        guard link.att.canSendAtOnce(call, conditions(on: link)) else { return nil }
        do throws(HostError) {
            try write(call, on: link)
            endInput()
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    /// Queues a value behind the calls before it, or sends it.
    func submit(_ work: OutboundLanes.Work, on link: Link) {
        link.att.append(work)
        pumpLanes(of: link)
    }

    func endOfLink(_ identifier: LinkIdentifier) -> HostError {
        .disconnected(endReason(of: identifier))
    }

    // MARK: Sending

    /// Sends the calls that wait on a link, oldest first, until the next one cannot be sent.
    func pumpLanes(of link: Link) {
        // The end of a call may run code that submits another: the loop below sends that one as well.
        guard link.att.beginPumping() else { return }
        while sendNextCall(on: link) {}
        verifyIdentityForClientLane(of: link)
        resumeDrains(of: link)
    }

    /// - Returns: whether a call has left its lane.
    private func sendNextCall(on link: Link) -> Bool {
        var buffer = sender.takeBuffer()
        switch link.att.pump(conditions(on: link), into: &buffer) {
        case .idle:
            sender.recycle(buffer)
            return false
        case .started:
            sender.recycle(buffer)
        case .startedOnEnhancedBearer(let bearer):
            sender.recycle(buffer)
            pump(bearer, of: link)
        case .client(let opcode):
            advanceClient(of: link, opcode, consume buffer)
        case .write(let call, let signature):
            send(call, signature, consume buffer, on: link)
            writeSent(call, on: link)
        case .refusedWrite(let call, let error):
            sender.recycle(buffer)
            end(call, .failure(error))
        case .channelRequest(let channels):
            sender.recycle(buffer)
            sendRequest(for: channels, on: link)
        case .notification(let call, let isWritten):
            if isWritten {
                send(consume buffer, .value, on: .attribute, of: link)
            } else {
                sender.recycle(buffer)
            }
            end(call.caller, .success(()))
        case .notifications(let calls):
            send(consume buffer, .value, on: .attribute, of: link)
            for call in calls { end(call.caller, .success(())) }
        case .indication(let call):
            indicate(call, consume buffer, on: link)
        case .server(let action):
            performServerEffects(of: link)
            perform(action, consume buffer, on: link)
        }
        return true
    }

    private func send(_ call: borrowing WriteCall, on link: Link) {
        do throws(HostError) {
            try write(call, on: link)
            writeSent(call, on: link)
        } catch {
            end(call, .failure(error))
        }
    }

    private func writeSent(_ call: borrowing WriteCall, on link: Link) {
        if call.opensFastPath {
            submissions.openFastPath(to: call.link, maximumLength: link.att.longestCommandValue)
        }
        end(call, .success(()))
    }

    /// Appends a command to the link's outbound queue.
    private func write(_ call: borrowing WriteCall, on link: Link) throws(HostError) {
        var buffer = sender.takeBuffer()
        do throws(HostError) {
            let signature = try link.att.write(call, into: &buffer)
            send(call, signature, consume buffer, on: link)
        } catch {
            sender.recycle(buffer)
            throw error
        }
    }

    /// Sends a command that the router wrote. A signed command is written here, because the router has no keys.
    private func send(
        _ call: borrowing WriteCall,
        _ signature: WriteCall.Signature?,
        _ buffer: consuming PacketBuffer,
        on link: Link
    ) {
        if let signature { sign(call.value, to: call.handle, signature, into: &buffer) }
        send(consume buffer, .value, on: .attribute, of: link)
    }

    private func end(_ call: borrowing WriteCall, _ result: Result<Void, HostError>) {
        guard case .submission = call.caller else { return end(call.caller, result) }
        submissions.writeSent(to: call.link)
        if case .failure = result { submissions.closeFastPath(to: call.link) }
    }

    // MARK: Ending

    /// Ends all calls that wait on a link that has ended.
    func endLanes(of link: Link, _ error: HostError) {
        let calls = link.att.removeCalls()
        for item in calls.unsent { end(item.work, error, on: link) }
        if let indication = calls.unconfirmed { end(indication.caller, .failure(error)) }
        for call in calls.drains { end(.task(call), .success(())) }
    }

    /// Ends the calls of a link that end because the server has changed attributes in a range.
    func endCalls(of link: Link, changedIn range: HandleRange) {
        let items = link.att.endCalls(changedIn: range)
        performClientEffects(of: link)
        for item in items { end(item.work, .client(.attributesChanged), on: link) }
        guard !link.att.lanes.isEmpty else { return resumeDrains(of: link) }
        // The next call may not have to wait. It is sent after the confirmation of the change: before that, the server
        // ignores commands of this client (Vol 3, Part G, 2.5.2.1).
        let identifier = link.identifier
        deliver(
            .action { [weak self] in
                self?.assumeIsolated { host in
                    if let link = host.links[identifier] { host.pumpLanes(of: link) }
                }
            }
        )
    }

    private func end(_ work: OutboundLanes.Work, _ error: HostError, on link: Link) {
        switch work {
        case .procedure(let call): end(call, .failure(error))
        case .write(let call): end(call, .failure(error))
        case .channelRequest(let channels): for channel in channels { endOpening(of: channel, on: link, error) }
        // A notification does not fail because its client disconnects.
        case .notification(let call): end(call.caller, .success(()))
        case .indication(let call): end(call.caller, .failure(error))
        case .answer: break
        }
    }

    /// Starts to verify the identity of a bonded peer for which the client lane waits.
    private func verifyIdentityForClientLane(of link: Link) {
        guard !link.att.lanes.client.isEmpty, links[link.identifier] != nil,
            link.att.needsVerification(isGateOpen: isGateOpen(on: link))
        else { return }
        require(SecurityRequirement(.clientLane, for: .demand), of: link)
    }

    /// Resumes or ends the calls in the client lane, which have waited for the peer's identity to be verified.
    func clientLaneVerified(_ result: Result<KeyStrength, HostError>, on link: Link) {
        guard links[link.identifier] != nil else { return }
        switch result {
        case .success: _ = link.att.verificationEnded(isVerified: true)
        // The policy or bonds changed during the verification, and the calls need no verification.
        case .failure where !link.isGateClosed: _ = link.att.verificationEnded(isVerified: true)
        case .failure(let error):
            for item in link.att.verificationEnded(isVerified: false) { end(item.work, error, on: link) }
            pumpChannels(of: link)
        }
        pumpLanes(of: link)
    }

    // MARK: Draining

    /// Waits until the controller has sent all packets that were written to the link before this call. Cancelling the
    /// task ends the wait.
    ///
    /// - Parameter includingIndications: whether the call also waits for indications that cannot be sent before earlier
    ///   ones are confirmed.
    package func flush(_ identifier: LinkIdentifier, includingIndications: Bool = false) async {
        _ = try? await wait(for: .lane(identifier)) { host, call in
            guard let link = host.links[identifier] else { return host.end(call, .success(())) }
            link.att.drain(
                call,
                includingIndications: includingIndications,
                unsentPackets: host.sender.unsentPackets(link.slot)
            )
            host.resumeDrains(of: link)
        }
    }

    /// Ends the calls that wait until earlier packets of their link are sent, after the controller has reported some as
    /// sent.
    func packetsSent(_ count: Int, of link: Link) {
        resumeDrains(of: link)
        guard !link.att.drains.isEmpty else { return }
        let calls = link.att.packetsSent(count, unsentPackets: sender.unsentPackets(link.slot))
        for call in calls { end(.task(call), .success(())) }
    }

    /// Ends the calls that wait until their link's packets are sent, if all are sent.
    func resumeDrains(of link: Link) {
        guard !link.att.drains.isEmpty, sender.isDrained(link.slot) else { return }
        for call in link.att.takeDrained() { end(.task(call), .success(())) }
    }
}
