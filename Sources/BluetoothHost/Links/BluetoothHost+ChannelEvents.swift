import BluetoothTypes
import ByteCoding
import L2CAP

// L2CAP channels: what arrives from the link, what is sent on it, and which events apps receive.
extension BluetoothHost {
    // MARK: What comes

    /// Handles a signaling command.
    ///
    /// - Returns: whether the command was for the channels.
    func receiveChannelCommand(_ payload: RawSpan, on link: Link) -> Bool {
        let outcome = link.channels.receive(
            command: payload,
            services: channelServices,
            security: link.session.security,
            at: loop.now
        )
        switch outcome {
        case .notForChannels: return false
        case .handled: break
        case .malformed(let error): countMalformed("signalling command", error)
        case .overloaded: metrics.overloadedCommands.increment()
        }
        pumpChannels(of: link)
        return true
    }

    func receiveChannelFrame(_ payload: RawSpan, on channel: ChannelIdentifier, of link: Link) {
        switch link.channels.receive(payload, on: channel) {
        case .taken: break
        case .unknownChannel: metrics.unknownChannelFrames.increment()
        case .dropped: metrics.droppedChannelFrames.increment()
        case .violation(let violation):
            metrics.malformed.increment()
            logger.debug("channel of \(link.peer) ended: \(violation)")
        }
        pumpChannels(of: link)
    }

    // MARK: What goes

    /// Sends the frames and commands of a link's channels until its outbound queue is full, and queues the deliveries
    /// of their events. Call this after each change of the channels.
    func pumpChannels(of link: Link) {
        sendChannelFrames(of: link)
        while let event = link.channels.nextEvent() { deliver(.channelEvent(link, event)) }
        if let deadline = link.channels.deadline, links[link.identifier] != nil { armTimer(of: link, by: deadline) }
    }

    private func sendChannelFrames(of link: Link) {
        sendChannelCommands(of: link)
        link.channelsAwaitRoom = false
        var hasSentFrame = false
        while sender.channelRoom(link.slot) > 0 {
            var buffer = sender.takeBuffer()
            guard let channel = link.channels.nextFrame(into: &buffer) else {
                sender.recycle(buffer)
                break
            }
            sender.enqueue(buffer, .channel, on: channel, of: link.slot)
            hasSentFrame = true
        }
        link.channelsAwaitRoom = sender.channelRoom(link.slot) == 0
        // This frame may have been the last one of a channel that finishes.
        if hasSentFrame { sendChannelCommands(of: link) }
    }

    private func sendChannelCommands(of link: Link) {
        while true {
            var buffer = sender.takeBuffer()
            guard
                link.channels.nextCommand(
                    at: loop.now,
                    identifiers: &link.signaling.identifiers,
                    into: &buffer
                )
            else { return sender.recycle(buffer) }
            send(consume buffer, .signaling, on: .signaling, of: link)
        }
    }

    /// Sends the request for channels after it has left its lane.
    func sendRequest(for channels: ChannelIdentifierList, on link: Link) {
        guard let channel = channels.first else { return }
        link.channels.release(channel)
        pumpChannels(of: link)
    }

    // MARK: Who is told

    /// Delivers an event of a channel. The app's closure may use the channel; the host then sends the resulting frames.
    func perform(_ event: CreditBasedChannels.Event, of link: Link) {
        switch event {
        case .opened(let channel):
            opened(channel, of: link)
        case .accepted(let channel):
            accepted(channel, of: link)
        case .failed(let channel, let failure):
            guard let use = link.channelUses.removeValue(forKey: channel) else { break }
            if case .opening(let completion) = use.phase {
                _ = completion(.failure(hostError(failure, on: link)))
            }
        case .received(let channel): tell(channel, of: link, .readable)
        case .hasRoom(let channel): tell(channel, of: link, .hasRoom)
        case .peerReconfigured(let channel): tell(channel, of: link, .peerReconfigured)
        case .reconfigurationFinished(let channels, let outcome):
            for channel in channels {
                guard let call = link.channelUses[channel]?.reconfiguration.take() else { continue }
                end(call, BluetoothHost.result(outcome))
            }
        case .closed(let channel, let reason, let unread):
            guard let use = link.channelUses.removeValue(forKey: channel) else { break }
            let end = channelEnd(reason, of: link)
            if let call = use.reconfiguration { self.end(call, .failure(.channel(.ended(end)))) }
            if case .open(let handler) = use.phase { handler(.ended(end, unread: unread)) }
        }
        if links[link.identifier] != nil { pumpChannels(of: link) }
    }

    private func opened(_ channel: ChannelIdentifier, of link: Link) {
        guard let use = link.channelUses[channel], case .opening(let completion) = use.phase else { return }
        let opened = OpenedChannel(
            identifier: HostChannelIdentifier(link: link.identifier, channel: channel, number: use.number),
            psm: use.psm,
            peer: link.peer
        )
        if let handler = completion(.success(opened)) {
            link.channelUses[channel]?.phase = .open(handler)
        } else {
            link.channelUses[channel] = nil
            link.channels.disconnect(channel)
        }
    }

    private func accepted(_ channel: ChannelIdentifier, of link: Link) {
        guard let psm = link.channels[channel]?.spsm, let accept = channelAcceptors[psm] else {
            return link.channels.disconnect(channel)
        }
        let number = makeIdentifier()
        let opened = OpenedChannel(
            identifier: HostChannelIdentifier(link: link.identifier, channel: channel, number: number),
            psm: psm,
            peer: link.peer
        )
        link.channelUses[channel] = ChannelUse(number: number, psm: psm, phase: .open(accept(opened)))
    }

    private func tell(_ channel: ChannelIdentifier, of link: Link, _ event: HostChannelEvent) {
        if case .open(let handler) = link.channelUses[channel]?.phase { handler(event) }
    }

    // MARK: Words for it

    private func disconnectionReason(of link: Link) -> DisconnectionReason {
        endedLinks[link.identifier] ?? .adapterClosed
    }

    private func channelEnd(_ reason: CreditBasedChannels.CloseReason, of link: Link) -> ChannelEnd {
        switch reason {
        case .byUs: .byUs
        case .byPeer: .byPeer
        case .violation(let violation): .violation(violation)
        case .unverifiedPeer: .unverifiedPeer
        case .linkEnded: .disconnected(disconnectionReason(of: link))
        }
    }

    private func hostError(_ failure: CreditBasedChannels.ConnectionFailure, on link: Link) -> HostError {
        switch failure {
        case .refused(let result): .channel(.refused(result))
        case .rejected: .channel(.notUnderstood)
        case .invalidResponse, .destinationAlreadyAllocated: .channel(.invalidResponse)
        case .timedOut: .timedOut
        case .canceled: .cancelled
        case .linkEnded: .disconnected(disconnectionReason(of: link))
        }
    }

    private static func result(_ outcome: CreditBasedChannels.ReconfigurationOutcome) -> Result<Void, HostError> {
        switch outcome {
        case .answered(.successful): .success(())
        case .answered(let result): .failure(.channel(.reconfigurationRefused(result)))
        case .rejected: .failure(.channel(.notUnderstood))
        case .timedOut: .failure(.timedOut)
        }
    }
}
