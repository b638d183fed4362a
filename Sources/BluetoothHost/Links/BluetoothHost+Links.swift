import BLEATT
import BLEByteCoding
import BLEGATT
import BLEHCI
import BLEL2CAP
import BluetoothTypes

extension BluetoothHost {
    /// Maximum number of unsent Security Manager PDUs per link.
    static let securityReplyLimit = 16
    /// Maximum number of unsent signaling commands per link.
    static let signalingReplyLimit = 8
    /// Maximum number of unsent signaling commands with which the peer is granted credits. Half of the limit of replies
    /// is left for these.
    static let creditGrantLimit = signalingReplyLimit / 2

    func link(_ identifier: LinkIdentifier) throws(HostError) -> Link {
        if let link = links[identifier] { return link }
        throw .disconnected(endReason(of: identifier))
    }

    /// The reason for which a link has ended. It is unspecified if so many links have ended since that the host has
    /// forgotten it.
    func endReason(of identifier: LinkIdentifier) -> DisconnectionReason {
        links.endReason(of: identifier) ?? (power == .closed ? .adapterClosed : .controller(.unspecifiedError))
    }

    func addLink(_ connection: NewConnection) -> Link {
        let identifier = LinkIdentifier(handle: connection.handle, serial: observers.makeIdentifier())
        let identity = gap.identity(of: connection.peerAddress)
        let link = Link(
            identifier,
            connection,
            slot: sender.open(connection.handle),
            identity: identity,
            security: makeSecurity(for: connection, identifier, identity: identity),
            session: ServerSession(server: services.server),
            offeredMTU: configuration.mtu,
            enhancedBearerLimit: configuration.enhancedBearerLimit
        )
        links.insert(link)
        metrics.links.record(links.count)
        logger.info("connected to \(link.peer)")
        reportServerEvents(of: link)
        link.session.asksForAuthorization = services.authorizer != nil
        if link.role == .peripheral { emit(.connected(identifier, link.peer)) }
        prepare(link)
        if link.isGateClosed || link.security.requestsEncryption {
            inform(link) { security, context in security.linkBegan(&context) }
        }
        return link
    }

    /// Prepares a new link: requests longer packets and, as the central, a longer ATT_MTU.
    private func prepare(_ link: Link) {
        guard let information else { return }
        perform(link.control.linkBegan(information), of: link)
        if link.role == .central, configuration.requestsMTU { requestMTU(on: link) }
    }

    /// Requests a longer ATT_MTU, for hosts that do not request it on each new link.
    package func requestMTU(on identifier: LinkIdentifier) throws(HostError) {
        requestMTU(on: try link(identifier))
        endInput()
    }

    private func requestMTU(on link: Link) {
        guard configuration.mtu > Bearer.defaultMTU else { return }
        let identifier = link.identifier
        let run = TypedProcedureRun(ExchangeMTU(offered: configuration.mtu))
        // No app has asked for a value that needs security.
        run.elevatesSecurity = false
        let caller = ProcedureCall.Caller.host { [weak self] _ in
            let mtu = try? run.output()
            self?.assumeIsolated { host in
                guard let link = host.links[identifier] else { return }
                if let mtu {
                    link.att.exchangeMTU(peer: mtu)
                    host.mtuChanged(of: link)
                    host.establish(link)
                } else {
                    link.att.owesMTUExchange = link.isGateClosed
                }
            }
        }
        start(ProcedureCall(run: run, link: identifier, caller: caller), on: link)
    }

    /// Requests a longer ATT_MTU again, if that has failed because the peer's identity was not verified.
    ///
    /// The earlier request may still be in flight. Then its response counts.
    func requestOwedMTU(on link: Link) {
        guard link.att.owesMTUExchange, link.att.canExchangeMTU else { return }
        link.att.owesMTUExchange = false
        requestMTU(on: link)
    }

    func mtuChanged(of link: Link) {
        // The new MTU may be shorter than the last.
        submissions.closeFastPath(to: link.identifier)
        emit(.mtuChanged(link.identifier, link.att.mtu))
    }

    func endAllLinks(_ reason: DisconnectionReason) {
        for link in links.values { endLink(link.handle, reason) }
    }

    func endLink(_ handle: ConnectionHandle, _ controllerReason: DisconnectionReason) {
        guard let link = links.remove(handle) else { return }
        submissions.removeFastPath(to: link.identifier)
        let reason = link.control.ownReason ?? controllerReason
        links.setEndReason(reason, of: link.identifier)
        metrics.links.record(links.count)
        logger.info("disconnected from \(link.peer): \(reason)")
        sender.close(link.slot)
        services.linkEnded()
        perform(isochronous.linkEnded(link.identifier, reason, at: loop.now))
        perform(gap.linkEnded(link.identifier, with: link.addresses, gapContext))
        session.linkEnded(handle, at: loop.now)
        let error = endSecurity(of: link, reason)
        timers.cancel(link.timer?.token)
        link.att.closeClient()
        performClientEffects(of: link)
        endEnhancedBearers(of: link, error)
        endLanes(of: link, error)
        link.channels.linkEnded(reason)
        pumpChannels(of: link)
        perform(link.control.linkEnded(reason), of: link)
        perform(link.sounding.linkEnded(reason), of: link)
        if link.role == .peripheral { emit(.disconnected(link.identifier, reason)) }
        let endObservers = link.observers.ends
        link.observers.ends = [:]
        for observer in endObservers.values {
            switch observer {
            case .app(let observer): deliver(.linkEnd(observer, reason))
            case .host(let observer): observer(reason)
            case .call(let call): end(call, .success(()))
            }
        }
    }

    // MARK: Frames

    func receive(_ fragment: RawSpan, on link: Link, isStart: Bool) {
        // Most frames are in one packet, and need no reassembly.
        if isStart, link.reassembler.isWhole(fragment), let frame = try? Frame(decoding: fragment) {
            return receive(frame, on: link)
        }
        // Moved out of the link during the call, so that accesses cannot overlap and need no exclusivity check.
        var reassembler = Reassembler()
        swap(&reassembler, &link.reassembler)
        let outcome = reassembler.receive(fragment, isStart: isStart) { frame in receive(frame, on: link) }
        swap(&reassembler, &link.reassembler)
        if case .dropped(let violation) = outcome {
            metrics.malformed.increment()
            logger.debug("fragment from \(link.peer) dropped: \(violation)")
        }
    }

    private func receive(_ frame: borrowing Frame, on link: Link) {
        switch frame.channel {
        case .attribute:
            let phase = beginReceiving()
            receiveAttributePDU(frame.payload, on: link)
            turn.phase = phase
        case .signaling:
            // Responses, and the credits without which channels stand still, need no answer.
            let isAnswered = SignalingCode.isAnswered(frame.payload[checked: 0])
            let canAnswer = sender.unsent(.signaling, link.slot) < BluetoothHost.signalingReplyLimit
            guard canAnswer || !isAnswered else { return countFlooding(by: link) }
            receiveSignaling(frame.payload, canAnswer: canAnswer, on: link)
        case .securityManager:
            guard sender.unsent(.security, link.slot) < BluetoothHost.securityReplyLimit else {
                return countFlooding(by: link)
            }
            receiveSecurityPDU(frame.payload, on: link)
        case let channel where channel.isDynamic: receiveChannelFrame(frame.payload, on: channel, of: link)
        default: metrics.unknownChannelFrames.increment()
        }
    }

    /// Sends a frame at once if nothing waits before it. Otherwise queues it until the end of the input.
    func send(
        _ payload: consuming PacketBuffer,
        _ kind: FrameKind,
        on channel: ChannelIdentifier,
        of link: Link
    ) {
        var payload = payload
        guard let send = port.send, sender.beginAtOnce(&payload, on: channel, of: link.slot) else {
            return sender.enqueue(payload, kind, on: channel, of: link.slot)
        }
        metrics.packetsSent.increment()
        transportWillSend()
        send(payload.bytes)
        transportHasSent()
        sender.recycle(payload)
    }

    /// Counts a PDU that was dropped because the peer does not take the answers to earlier ones. A peer that continues
    /// is disconnected.
    func countFlooding(by link: Link) {
        metrics.floodingPDUs.increment()
        let effects = link.control.peerFloods(controlContext)
        guard !effects.isEmpty else { return }
        logger.warning("\(link.peer) sends requests and does not take the answers; it is disconnected")
        perform(effects, of: link)
    }

    // MARK: Time

    /// Sets the link's timer to its earliest deadline.
    ///
    /// A timer that is due before the deadline stays. If it fires early, it finds nothing to end and is set again. So a
    /// request needs no timer of its own.
    func armTimer(of link: Link) {
        if let deadline = link.deadline { armTimer(of: link, by: deadline) }
    }

    /// Sets the link's timer to `deadline`, unless the timer is due earlier.
    func armTimer(of link: Link, by deadline: Instant) {
        if let due = link.timer?.due, due <= deadline { return }
        timers.cancel(link.timer?.token)
        link.timer = DeadlineTimer(token: schedule(.link(link.identifier), at: deadline), due: deadline)
    }

    /// Ends each operation of a link whose deadline has passed. The timer may have been due before the deadline.
    func deadlineReached(of link: Link) {
        link.timer = nil
        let now = loop.now
        perform(link.control.advance(controlContext), of: link)
        guard links[link.identifier] != nil else { return }
        if link.channels.advance(to: now) { perform(link.control.signalingTimedOut(controlContext), of: link) }
        if link.att.advance(to: now) {
            performClientEffects(of: link)
            giveUp(link, .attributeTransactionTimeout)
        }
        advanceEnhancedBearers(of: link, to: now)
        perform(link.sounding.advance(to: now), of: link)
        inform(link) { security, context in security.advance(&context) }
        pumpChannels(of: link)
        if links[link.identifier] != nil { armTimer(of: link) }
    }
}
