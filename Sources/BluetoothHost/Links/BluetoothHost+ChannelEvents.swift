import BLEByteCoding
import BLEL2CAP
import BluetoothTypes

// The connection between the host and the channels of its links: frames in both directions, and the effects of all
// inputs.
extension BluetoothHost {
    // MARK: Receiving

    /// Handles a frame on the signaling channel.
    ///
    /// - Parameter canAnswer: whether an answer can be sent.
    func receiveSignaling(_ payload: RawSpan, canAnswer: Bool, on link: Link) {
        var buffer = sender.takeBuffer()
        let outcome = link.channels.receiveSignaling(
            payload,
            services: services.channels,
            security: link.session.security,
            parameters: link.control.parameters,
            at: loop.now,
            into: &buffer
        )
        switch outcome {
        case .none, .forChannels, .malformed, .malformedForChannels, .overloaded, .parameterUpdateFinished:
            sender.recycle(buffer)
        case .send, .rejected, .parameterUpdateRequested:
            if canAnswer {
                send(consume buffer, .signaling, on: .signaling, of: link)
            } else {
                sender.recycle(buffer)
            }
        }
        switch outcome {
        case .none, .send: break
        case .forChannels: pumpChannels(of: link)
        case .malformed(let error), .rejected(let error): countMalformed("signaling command", error)
        case .malformedForChannels(let error):
            countMalformed("signaling command", error)
            pumpChannels(of: link)
        case .overloaded:
            metrics.overloadedCommands.increment()
            pumpChannels(of: link)
        case .parameterUpdateRequested(let request):
            perform(link.control.peerRequested(request, controlContext), of: link)
        case .parameterUpdateFinished(let response):
            perform(link.control.signalingFinished(response, controlContext), of: link)
        }
    }

    /// As the peripheral: sends a request for other connection parameters.
    func requestBySignaling(_ request: ConnectionParameterUpdateRequest, of link: Link) {
        var buffer = sender.takeBuffer()
        do throws(SignalingChannel.RequestError) {
            try link.channels.requestParameterUpdate(request, at: loop.now, into: &buffer)
            send(consume buffer, .signaling, on: .signaling, of: link)
            armTimer(of: link)
        } catch {
            sender.recycle(buffer)
            perform(link.control.signalingRefused(error, controlContext), of: link)
        }
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

    // MARK: Sending

    /// Sends the frames and commands of a link's channels until its outbound queue is full, and performs their effects.
    /// Call this after each change of the channels.
    func pumpChannels(of link: Link) {
        sendChannelFrames(of: link)
        performChannelEffects(of: link)
        if let deadline = link.channels.deadline, links[link.identifier] != nil { armTimer(of: link, by: deadline) }
    }

    private func sendChannelFrames(of link: Link) {
        var awaitsGrants = sendChannelCommands(of: link)
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
        // This frame may have been the last one of a channel that finishes.
        if hasSentFrame { awaitsGrants = sendChannelCommands(of: link) }
        sender.awaitChannelRoom(link.slot, grantLimit: awaitsGrants ? BluetoothHost.creditGrantLimit : nil)
    }

    /// - Returns: whether grants of credits wait until others have left the host.
    private func sendChannelCommands(of link: Link) -> Bool {
        while true {
            let grantsCredits = sender.unsent(.signaling, link.slot) < BluetoothHost.creditGrantLimit
            var buffer = sender.takeBuffer()
            guard link.channels.nextCommand(at: loop.now, grantsCredits: grantsCredits, into: &buffer) else {
                sender.recycle(buffer)
                return !grantsCredits
            }
            send(consume buffer, .signaling, on: .signaling, of: link)
        }
    }

    /// Sends the request for channels after it has left its lane.
    func sendRequest(for channels: ChannelIdentifierList, on link: Link) {
        guard let channel = channels.first else { return }
        link.channels.release(channel)
        pumpChannels(of: link)
    }

    // MARK: Effects

    func performChannelEffects(of link: Link) {
        while let effect = link.channels.nextEffect() { perform(effect, of: link) }
    }

    private func perform(_ effect: ChannelEffect, of link: Link) {
        switch effect {
        case .opened(let observer, let name, let psm):
            deliver(.channelOpened(observer, OpenedChannel(identifier: name, psm: psm, peer: link.peer)))
        case .failed(let observer, let error):
            if case .opening(let completion)? = observers.channels.remove(observer) {
                deliver(.channelFailure(completion, error))
            }
        case .accepted(let name, let psm):
            let observer = observers.channels.insert(.accepting)
            if link.channels.observe(name, observer) {
                deliver(.channelAccepted(observer, OpenedChannel(identifier: name, psm: psm, peer: link.peer)))
            } else {
                observers.channels.remove(observer)
            }
        case .readable(let observer): deliver(.channelEvent(observer, .readable))
        case .hasRoom(let observer): deliver(.channelEvent(observer, .hasRoom))
        case .peerReconfigured(let observer): deliver(.channelEvent(observer, .peerReconfigured))
        case .ended(let observer, let end, let unread):
            deliver(.channelEvent(observer, .ended(end, unread: unread)))
        case .finish(let call, let failure): finish(call, failure)
        }
    }

    // MARK: Deliveries

    /// Gives an app the channel that it requested. It returns the handler of the channel's events.
    func completeOpening(_ opened: OpenedChannel, for observer: ObserverToken) {
        guard case .opening(let completion)? = observers.channels[observer] else { return }
        if let handler = completion(.success(opened)) {
            _ = observers.channels.replace(observer, with: .open(handler))
        } else {
            _ = observers.channels.remove(observer)
            reject(opened.identifier)
        }
    }

    /// Gives an app the channel that a peer has opened. It returns the handler of the channel's events.
    func accept(_ opened: OpenedChannel, for observer: ObserverToken) {
        if opened.psm == .enhancedAttribute, let handler = enhancedBearerOpened(opened.identifier) {
            _ = observers.channels.replace(observer, with: .open(handler))
            return
        }
        guard let accept = services.channelAcceptor(at: opened.psm) else {
            observers.channels.remove(observer)
            return reject(opened.identifier)
        }
        let handler = accept(opened)
        _ = observers.channels.replace(observer, with: .open(handler))
    }

    private func reject(_ channel: HostChannelIdentifier) {
        guard let link = links[channel.link] else { return }
        link.channels.reject(channel)
        pumpChannels(of: link)
    }

    /// Gives an app an event of its channel. The app may use the channel; the host then sends the resulting frames.
    func report(_ event: HostChannelEvent, to observer: ObserverToken) {
        if case .ended = event {
            if case .open(let handler)? = observers.channels.remove(observer) { handler(event) }
        } else if case .open(let handler)? = observers.channels[observer] {
            handler(event)
        }
    }
}
