import BLEATT
import BLEByteCoding
import BLEL2CAP
import BluetoothTypes

// Packets received and sent on the link, and their effects.
extension ChannelEngine {
    /// Takes the payload of a K-frame.
    mutating func receive(_ payload: RawSpan, on channel: ChannelIdentifier) -> CreditBasedChannels.FrameOutcome {
        channels.receive(payload, on: channel)
    }

    /// Takes the payload of a frame on the signaling channel.
    ///
    /// - Parameters:
    ///   - services: the services that the peer may request channels to.
    ///   - security: the link's security, for services that require it.
    ///   - parameters: the connection parameters in use, which restrict those that a peripheral may request.
    ///   - buffer: an empty buffer for the answer.
    mutating func receiveSignaling(
        _ payload: RawSpan,
        services: borrowing SPSMRegistry,
        security: LinkSecurity,
        parameters: NegotiatedConnectionParameters,
        at now: Instant,
        into buffer: inout PacketBuffer
    ) -> SignalingOutcome {
        guard endError == nil else { return .none }
        switch channels.receive(command: payload, services: services, security: security, at: now) {
        case .handled: return .forChannels
        case .malformed(let error): return .malformedForChannels(error)
        case .overloaded: return .overloaded
        case .notForChannels: break
        }
        switch signaling.receive(payload, into: &buffer) {
        // Only the time ends a request without an answer.
        case .none, .parameterUpdateTimedOut: return .none
        case .send: return .send
        case .malformed(let error): return .malformed(error)
        case .rejected(let error): return .rejected(error)
        case .parameterUpdateRequested(let request, let identifier):
            let isAllowed = parameters.allow(request)
            signaling.answer(isAllowed ? .accepted : .rejected, identifier: identifier, into: &buffer)
            return isAllowed ? .parameterUpdateRequested(request) : .send
        case .parameterUpdateFinished(let response): return .parameterUpdateFinished(response)
        }
    }

    /// As the peripheral: writes a request for other connection parameters. After the link's end, none can be sent.
    mutating func requestParameterUpdate(
        _ request: ConnectionParameterUpdateRequest,
        at now: Instant,
        into buffer: inout PacketBuffer
    ) throws(SignalingChannel.RequestError) {
        guard endError == nil else { throw .requestPending }
        try signaling.requestParameterUpdate(request, at: now, into: &buffer)
    }

    /// Writes the payload of the next K-frame of any channel. Channels take turns.
    ///
    /// - Returns: the peer's endpoint of the channel; nil if no channel has both something to send and a credit.
    mutating func nextFrame(into buffer: inout PacketBuffer) -> ChannelIdentifier? {
        channels.nextFrame(into: &buffer)
    }

    /// Writes the next signaling command of the channels.
    ///
    /// - Returns: whether there was a command.
    mutating func nextCommand(at now: Instant, grantsCredits: Bool = true, into buffer: inout PacketBuffer) -> Bool {
        channels.nextCommand(
            at: now,
            identifiers: &signaling.identifiers,
            grantsCredits: grantsCredits,
            into: &buffer
        )
    }

    /// Ends the requests whose time has expired.
    ///
    /// - Returns: whether a request for connection parameters was among them.
    mutating func advance(to now: Instant) -> Bool {
        channels.advance(to: now)
        return signaling.advance(to: now) == .parameterUpdateTimedOut
    }

    // MARK: Effects

    /// Removes and returns the oldest effect; nil if there is none.
    mutating func nextEffect() -> ChannelEffect? {
        while effects.isEmpty, let event = channels.nextEvent() { take(event) }
        return effects.popFirst()
    }

    /// Turns the waiting events into effects, before the uses of channels change for another reason.
    mutating func takeEvents() {
        while let event = channels.nextEvent() { take(event) }
    }

    private mutating func take(_ event: CreditBasedChannels.Event) {
        switch event {
        case .opened(let channel):
            guard let index = index(of: channel), uses[index].isOpening else { break }
            uses[index].isOpening = false
            if let observer = uses[index].observer {
                effects.append(.opened(observer, uses[index].name, uses[index].psm))
            }
        case .accepted(let channel):
            guard let psm = channels[channel]?.spsm else { break }
            effects.append(.accepted(use(channel, psm, isOpening: false), psm))
        case .failed(let channel, let failure):
            guard let index = index(of: channel) else { break }
            let error = HostError(failure, endReason)
            if let observer = uses.remove(at: index).observer { effects.append(.failed(observer, error)) }
        case .received(let channel):
            if let observer = observer(of: channel) { effects.append(.readable(observer)) }
        case .hasRoom(let channel):
            if let observer = observer(of: channel) { effects.append(.hasRoom(observer)) }
        case .peerReconfigured(let channel):
            if let observer = observer(of: channel) { effects.append(.peerReconfigured(observer)) }
        case .reconfigurationFinished(let list, let outcome):
            for channel in list {
                guard let index = index(of: channel), let call = uses[index].reconfiguration.take() else { continue }
                effects.append(.finish(call, outcome.failure))
            }
        case .closed(let channel, let reason, let unread):
            guard let index = index(of: channel) else { break }
            let use = uses.remove(at: index)
            let end = ChannelEnd(reason, endReason)
            if let call = use.reconfiguration { effects.append(.finish(call, .channel(.ended(end)))) }
            if let observer = use.observer { effects.append(.ended(observer, end, unread: unread)) }
        }
    }

    private func observer(of channel: ChannelIdentifier) -> ObserverToken? {
        index(of: channel).flatMap { uses[$0].observer }
    }

    /// The reason for which the link has ended.
    private var endReason: DisconnectionReason {
        if case .ended(let reason) = phase { reason } else { .adapterClosed }
    }
}
