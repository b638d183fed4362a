import BLEATT
import BLEByteCoding
import BLEGATT
import BLEL2CAP
import BluetoothTypes

// Enhanced ATT bearers: L2CAP channels to the SPSM of the Enhanced Attribute Protocol (Vol 3, Part G, 5.3).
extension BluetoothHost {
    // MARK: Opening

    /// As the client: opens enhanced bearers on an encrypted link, if the server accepts them. The central does so
    /// automatically.
    package func openEnhancedBearers(on identifier: LinkIdentifier) throws(HostError) {
        let link = try link(identifier)
        openEnhancedBearers(of: link)
        endInput()
    }

    /// Opens enhanced bearers as the central, once the link is encrypted. Ends them if it is not encrypted any more.
    func linkSecurityChanged(of link: Link) {
        if !link.session.security.isEncrypted { endBearers(of: link, .channel(.ended(.byUs))) }
        if link.role == .central { openEnhancedBearers(of: link) }
    }

    private func openEnhancedBearers(of link: Link) {
        guard let enhanced = link.att.enhanced, enhanced.phase == .idle, links[link.identifier] != nil,
            link.session.security.isEncrypted, isGateOpen(on: link), !link.isEnding
        else { return }
        enhanced.phase = .preparing
        let identifier = link.identifier
        let run = TypedProcedureRun(PrepareEnhancedBearers())
        // No app has asked for a value that needs security.
        run.elevatesSecurity = false
        let caller = ProcedureCall.Caller.host { [weak self] _ in
            let isAccepted = (try? run.output()) ?? false
            self?.assumeIsolated { host in
                guard let link = host.links[identifier], let enhanced = link.att.enhanced else { return }
                if isAccepted { host.requestEnhancedBearers(of: link, enhanced) } else { enhanced.phase = .settled }
            }
        }
        start(ProcedureCall(run: run, link: identifier, caller: caller), on: link)
    }

    private func requestEnhancedBearers(of link: Link, _ enhanced: EnhancedBearers) {
        let count = enhanced.beginOpening()
        guard count > 0 else { return }
        let identifier = link.identifier
        do throws(HostError) {
            let names = try link.channels.connect(
                to: .enhancedAttribute,
                count: count,
                configuration: .enhancedBearer(mtu: configuration.mtu)
            )
            request(names, on: link) { [weak self] result in
                self?.assumeIsolated { $0.enhancedBearerAnswered(result, on: identifier) }
            }
        } catch {
            logger.debug("no enhanced bearers to \(link.peer): \(error)")
            enhanced.phase = .settled
        }
    }

    /// Takes the outcome for one of the requested channels.
    private func enhancedBearerAnswered(
        _ result: Result<OpenedChannel, HostError>,
        on identifier: LinkIdentifier
    ) -> ChannelHandler? {
        guard let link = links[identifier], let enhanced = link.att.enhanced else { return nil }
        var handler: ChannelHandler?
        if case .success(let opened) = result { handler = enhancedBearerOpened(opened.identifier) }
        let lacksResources = result.failure == .channel(.refused(.noResourcesAvailable))
        if enhanced.channelAnswered(isOpen: handler != nil, lacksResources: lacksResources) {
            retryEnhancedBearers(of: link, enhanced)
        }
        return handler
    }

    /// Requests channels again after both devices have refused each other's request. The central may do so at once. The
    /// peripheral waits (Vol 3, Part G, 5.4).
    private func retryEnhancedBearers(of link: Link, _ enhanced: EnhancedBearers) {
        if link.role == .central { return requestEnhancedBearers(of: link, enhanced) }
        let parameters = link.control.parameters
        let delay = parameters.interval * (2 * (Int(parameters.latencyInEvents) + 1))
        enhanced.phase = .waiting(until: loop.now + max(delay, .milliseconds(100)))
        armTimer(of: link)
    }

    /// Begins to use a channel as a bearer.
    ///
    /// - Returns: the handler of the channel's events; nil if the link has its maximum number of bearers.
    func enhancedBearerOpened(_ channel: HostChannelIdentifier) -> ChannelHandler? {
        guard let link = links[channel.link], let enhanced = link.att.enhanced,
            let information = link.channels.information(on: channel),
            enhanced.add(EnhancedBearer(channel, mtu: information.mtu, peerMTU: information.peerMTU))
        else { return nil }
        link.att.bearersChanged()
        return { [weak self] event in
            self?.assumeIsolated { $0.received(event, onBearerOf: channel) }
        }
    }

    // MARK: Receiving

    private func received(_ event: HostChannelEvent, onBearerOf channel: HostChannelIdentifier) {
        guard let link = links[channel.link], let bearer = link.att.enhanced?.bearer(on: channel) else { return }
        switch event {
        case .readable: for pdu in readAll(from: channel) { receive(pdu, on: bearer, of: link) }
        case .hasRoom: break
        case .peerReconfigured:
            guard let information = link.channels.information(on: channel) else { return }
            bearer.channelMTUsChanged(to: information.mtu, peerMTU: information.peerMTU)
        case .ended(let end, let unread):
            for pdu in unread { receive(pdu, on: bearer, of: link) }
            endBearer(bearer, .channel(.ended(end)), of: link)
        }
    }

    private func receive(_ pdu: [UInt8], on bearer: EnhancedBearer, of link: Link) {
        guard bearer.isOpen else { return }
        var buffer = sender.takeBuffer()
        let unsentCount = link.channels.information(on: bearer.channel)?.unsentCount ?? 0
        switch link.att.receive(pdu.rawSpan, on: bearer, unsentCount: unsentCount, into: &buffer) {
        case .client(let opcode), .unverifiedResponse(let opcode):
            advance(bearer, opcode, consume buffer, of: link)
            // The server may have reported that its database has changed.
            performClientEffects(of: link)
            pumpClient(of: link)
            if !link.att.lanes.isEmpty { pumpLanes(of: link) }
        case .server(let action):
            performServerEffects(of: link)
            perform(action, consume buffer, on: bearer, of: link)
        case .reply:
            send(consume buffer, .reply, on: bearer, of: link)
        case .oversized:
            metrics.malformed.increment()
            send(consume buffer, .reply, on: bearer, of: link)
        case .indication(let handle, let offset):
            deliver(pdu.rawSpan.extracting(droppingFirst: offset), of: handle, isIndication: true, on: link)
            link.att.confirm(handle, into: &buffer)
            performClientEffects(of: link)
            send(consume buffer, .confirmation, on: bearer, of: link)
            pumpClient(of: link)
        case .notification(let handle, let offset):
            sender.recycle(buffer)
            deliver(pdu.rawSpan.extracting(droppingFirst: offset), of: handle, isIndication: false, on: link)
        case .notifications:
            sender.recycle(buffer)
            receiveNotifications(pdu.rawSpan, on: link)
        case .malformed(let opcode, let error):
            sender.recycle(buffer)
            countMalformed("\(opcode)", error)
        case .dropped(let violation):
            sender.recycle(buffer)
            violated(violation, on: bearer, of: link)
        case .confirmed, .mtuChanged, .lateMTUResponse, .commandDropped, .done:
            sender.recycle(buffer)
        }
    }

    /// Ends a bearer on which the peer has broken the rules. The other bearers and the link stay.
    private func violated(_ violation: BearerViolation, on bearer: EnhancedBearer, of link: Link) {
        metrics.malformed.increment()
        logger.debug("PDU on an enhanced bearer of \(link.peer) dropped: \(violation)")
        if violation == .signedWriteOnEnhancedBearer { return }
        endBearer(bearer, .channel(.ended(.byUs)), of: link)
    }

    // MARK: Client

    /// Sends the next request of each bearer's client, unless one is in flight.
    func pumpEnhancedBearers(of link: Link) {
        for bearer in link.att.enhanced?.bearers ?? [] { pump(bearer, of: link) }
    }

    /// Sends the next request of a bearer's client, unless one is in flight.
    func pump(_ bearer: EnhancedBearer, of link: Link) {
        guard isGateOpen(on: link) else { return }
        var buffer = sender.takeBuffer()
        let opcode = bearer.nextRequest(into: &buffer)
        advance(bearer, opcode, consume buffer, of: link)
    }

    private func advance(
        _ bearer: EnhancedBearer,
        _ opcode: ATTOpcode?,
        _ buffer: consuming PacketBuffer,
        of link: Link
    ) {
        if !bearer.isAnswerAwaited {
            for call in bearer.takeCancelled() { link.att.enhanced?.ended(call) }
        }
        var opcode = opcode
        while performEffects(of: bearer, on: link), opcode == nil { opcode = bearer.nextRequest(into: &buffer) }
        guard let opcode else { return sender.recycle(buffer) }
        do throws(BearerError) {
            try bearer.transactions.requestWillBeSent(opcode, at: loop.now)
        } catch {
            sender.recycle(buffer)
            return endBearer(bearer, .timedOut, of: link)
        }
        send(consume buffer, .request, on: bearer, of: link)
        if let deadline = bearer.transactions.deadline { armTimer(of: link, by: deadline) }
    }

    /// - Returns: whether there was an effect.
    private func performEffects(of bearer: EnhancedBearer, on link: Link) -> Bool {
        var hasEffect = false
        while let output = bearer.client.takeOutput() {
            hasEffect = true
            switch output {
            case .ended(let run):
                guard let call = bearer.takeCall(of: run) else { continue }
                if bearer.isAnswerAwaited { bearer.keepCancelled(call) } else { link.att.enhanced?.ended(call) }
                end(call, .ended(elevationFailure: bearer.elevationFailure))
            case .securityRequired(let error):
                if !elevateSecurity(of: link, after: error) { declineElevation(of: bearer, on: link) }
            // Only the client of the fixed channel learns the server's database.
            case .cacheChanged: break
            }
        }
        return hasEffect
    }

    private func declineElevation(of bearer: EnhancedBearer, on link: Link) {
        var buffer = sender.takeBuffer()
        let opcode = bearer.client.elevationDeclined(mtu: bearer.mtu, into: &buffer)
        advance(bearer, opcode, consume buffer, of: link)
    }

    /// Sends the requests again that servers have refused for lack of security, or ends their procedures.
    ///
    /// - Parameters:
    ///   - failure: why the link could not be made as secure as the server requires; nil if it could.
    ///   - error: the server's refusal.
    func securityElevatedForEnhancedBearers(_ failure: HostError?, _ error: ATTErrorCode, of link: Link) {
        for bearer in link.att.enhanced?.bearers ?? [] where bearer.client.refusalInElevation == error {
            var buffer = sender.takeBuffer()
            bearer.elevationFailure = failure
            let opcode = bearer.client.securityElevated(
                failure == nil ? .success(()) : .failure(error),
                handle: .invalid,
                mtu: bearer.mtu,
                into: &buffer
            )
            advance(bearer, opcode, consume buffer, of: link)
            bearer.elevationFailure = nil
        }
    }

    /// Cancels a procedure on an enhanced bearer.
    ///
    /// - Returns: false if no enhanced bearer has it.
    func cancelOnEnhancedBearer(_ run: ProcedureRun, of link: Link) -> Bool {
        guard let bearer = link.att.enhanced?.bearer(of: run) else { return false }
        bearer.client.cancel(run)
        _ = performEffects(of: bearer, on: link)
        pump(bearer, of: link)
        return true
    }

    // MARK: Server

    private func perform(
        _ action: ServerAction,
        _ buffer: consuming PacketBuffer,
        on bearer: EnhancedBearer,
        of link: Link
    ) {
        if case .respond = action {
            send(consume buffer, .reply, on: bearer, of: link)
        } else {
            perform(action, consume buffer, on: link)
        }
    }

    /// Sends an app's answer, if the request arrived on an enhanced bearer. Drops it if that bearer has ended.
    ///
    /// - Returns: false if no enhanced bearer has or had the request.
    func answerOnEnhancedBearer(_ answer: AnswerCall, of link: Link) -> Bool {
        guard let enhanced = link.att.enhanced else { return false }
        if let mayAuthorize = enhanced.takeOrphan(answer.request) {
            // The link has the authorization, although nobody waits for the response.
            if mayAuthorize, case .authorization(_, isAuthorized: true) = answer {
                link.session.security.isAuthorized = true
            }
            return true
        }
        guard let bearer = enhanced.bearer(awaiting: answer.request) else { return false }
        var buffer = sender.takeBuffer()
        let action = link.att.answer(answer, on: bearer, into: &buffer)
        performServerEffects(of: link)
        perform(action, consume buffer, on: bearer, of: link)
        return true
    }

    // MARK: Sending

    private func send(
        _ buffer: consuming PacketBuffer,
        _ kind: FrameKind,
        on bearer: EnhancedBearer,
        of link: Link
    ) {
        let pdu = [UInt8](copying: buffer.bytes)
        sender.recycle(buffer)
        // The queue of the channel has room for one PDU of each kind, and the bearer sends no second one before the
        // peer has received the first.
        guard link.channels.send(pdu[...], on: bearer.channel) == pdu.count else { return }
        bearer.willQueue(kind)
        pumpChannels(of: link)
    }

    // MARK: Ending

    /// Ends the bearers whose transactions have timed out, and requests channels again if it is time.
    func advanceEnhancedBearers(of link: Link, to now: Instant) {
        guard let enhanced = link.att.enhanced else { return }
        for bearer in enhanced.bearers where bearer.transactions.advance(to: now) {
            logger.info("\(link.peer) has not answered on an enhanced bearer; the bearer is closed")
            endBearer(bearer, .timedOut, of: link)
        }
        if case .waiting(let time) = enhanced.phase, time <= now { requestEnhancedBearers(of: link, enhanced) }
    }

    /// Ends a bearer and its channel. The procedure with a request in flight fails. Procedures that have not started
    /// continue on the fixed channel.
    private func endBearer(_ bearer: EnhancedBearer, _ error: HostError, of link: Link) {
        guard let enhanced = link.att.enhanced, bearer.isOpen else { return }
        link.channels.disconnect(bearer.channel)
        let (running, waiting) = bearer.close()
        enhanced.remove(bearer)
        link.att.bearersChanged()
        for call in bearer.takeCancelled() { enhanced.ended(call) }
        for call in running {
            enhanced.ended(call)
            end(call, .failure(error))
        }
        for call in waiting {
            link.att.startOnFixedChannel(call)
        }
        pumpClient(of: link)
        pumpChannels(of: link)
        if !link.att.lanes.isEmpty { pumpLanes(of: link) }
    }

    /// Ends all bearers of a link that continues.
    func endBearers(of link: Link, _ error: HostError) {
        for bearer in link.att.enhanced?.bearers ?? [] { endBearer(bearer, error, of: link) }
    }

    /// Ends the bearers of a link that has ended, with all their procedures.
    func endEnhancedBearers(of link: Link, _ error: HostError) {
        guard let enhanced = link.att.enhanced else { return }
        enhanced.phase = .settled
        for bearer in enhanced.bearers {
            let (running, waiting) = bearer.close()
            enhanced.remove(bearer)
            for call in running + waiting {
                enhanced.ended(call)
                end(call, .failure(error))
            }
        }
    }
}

extension CreditBasedChannel.Configuration {
    /// The lengths of an enhanced bearer. A K-frame holds the longest PDU (Vol 3, Part G, 5.3.2).
    ///
    /// - Parameter mtu: the ATT_MTU that this host offers, in bytes.
    static func enhancedBearer(mtu: UInt16) -> CreditBasedChannel.Configuration {
        let mtu = max(mtu, UInt16(Bearer.minimumEnhancedMTU))
        return CreditBasedChannel.Configuration(
            mtu: mtu,
            mps: mtu + 2,
            receiveByteCapacity: 4096,
            sendByteCapacity: 4096
        )
    }
}

extension Result {
    fileprivate var failure: Failure? {
        if case .failure(let failure) = self { failure } else { nil }
    }
}
