import BluetoothTypes
import ByteCoding

/// The credit-based channels of one link: opens and accepts them, carries their SDUs, ends them (Vol 3, Part A, 4.22 to
/// 4.28, 10.1 and 10.2).
///
/// The owner hands in what comes from the link and what the app wants. After each call it takes what is to be sent, with
/// ``nextCommand(at:identifiers:into:)`` until there is no more and with ``nextFrame(into:)`` for as long as the link has
/// room, and what has happened, with ``nextEvent()``. A frame may bring about a command: the last one of a channel that
/// finishes. SDUs are cut into K-frames only as they are taken, so what waits for the link is never more than the owner
/// asked for.
///
/// A channel is named by our own end of it. Its last event is ``Event/failed(_:_:)`` or ``Event/closed(_:_:unread:)``;
/// after that the name means nothing, and later another channel.
public struct CreditBasedChannels {
    /// How long a request waits after the peer has said that an answer takes time (ERTX timer, Vol 3, Part A, 6.2.2).
    public static let extendedResponseTimeout = Duration.seconds(60)

    /// How many channels the link has at most, those that are being made or ended included.
    public let limit: Int
    var channels: [CreditBasedChannel] = []
    var unanswered: [UnansweredRequest] = []
    var outgoing = Queue<OutgoingCommand>()
    /// Requests for channels that the owner holds, the oldest first.
    var heldRequests: [Request] = []
    var events = Queue<Event>()
    private var nextIdentifier = ChannelIdentifier.dynamicRange.lowerBound
    /// Where the next search for something to send starts, so that each channel has its turn.
    private var turn = 0

    /// - Parameter limit: how many channels the link has at most: up to 64, as many as there are names.
    public init(limit: Int = 16) {
        self.limit = min(max(limit, 0), ChannelIdentifier.dynamicRange.count)
    }

    // MARK: Opening

    /// Asks for a channel with LE credit-based flow control; ``Event/opened(_:)`` or ``Event/failed(_:_:)`` follows.
    ///
    /// - Parameter isHeld: whether the request is sent only after ``release(_:)``.
    public mutating func connect(
        to spsm: SPSM,
        configuration: CreditBasedChannel.Configuration = .init(),
        isHeld: Bool = false
    ) throws(ConnectionError) -> ChannelIdentifier {
        try checkRequest(to: spsm, count: 1, configuration)
        let identifier = addChannel(to: spsm, .le, configuration)
        let channel = channels.count - 1
        append(
            .leConnection(
                LECreditBasedConnectionRequest(
                    spsm: spsm,
                    source: identifier,
                    mtu: UInt16(truncatingIfNeeded: channels[channel].mtu),
                    mps: UInt16(truncatingIfNeeded: channels[channel].mps),
                    initialCredits: channels[channel].inbound.takeGrant() ?? 0
                )
            ),
            isHeld: isHeld
        )
        return identifier
    }

    /// Asks for up to five channels with enhanced credit-based flow control in one request; an event for each follows.
    ///
    /// - Parameters:
    ///   - count: 1 to 5.
    ///   - isHeld: whether the request is sent only after ``release(_:)`` for one of the channels.
    public mutating func connect(
        to spsm: SPSM,
        count: Int,
        configuration: CreditBasedChannel.Configuration = .init(),
        isHeld: Bool = false
    ) throws(ConnectionError) -> ChannelIdentifierList {
        try checkRequest(to: spsm, count: count, configuration)
        var sources = ChannelIdentifierList()
        var initialCredits: UInt16 = 0
        for _ in 0..<count {
            sources.append(addChannel(to: spsm, .enhanced, configuration))
            initialCredits = channels[channels.count - 1].inbound.takeGrant() ?? 0
        }
        let raised = configuration.raised(for: .enhanced)
        append(
            .connection(
                CreditBasedConnectionRequest(
                    spsm: spsm,
                    mtu: raised.mtu,
                    mps: raised.mps,
                    initialCredits: initialCredits,
                    sources: sources
                )
            ),
            isHeld: isHeld
        )
        return sources
    }

    private mutating func append(_ request: Request, isHeld: Bool) {
        if isHeld { heldRequests.append(request) } else { outgoing.append(.request(request)) }
    }

    private func checkRequest(
        to spsm: SPSM,
        count: Int,
        _ configuration: CreditBasedChannel.Configuration
    ) throws(ConnectionError) {
        guard spsm.isValid else { throw .invalidSPSM(spsm) }
        guard configuration.isValid else { throw .invalidConfiguration }
        guard (1...ChannelIdentifierList.capacity).contains(count) else { throw .invalidCount(count) }
        guard channels.count + count <= limit else { throw .tooManyChannels }
    }

    /// Adds a channel under the next free name; names are used in turn, so that a late frame for one that is gone does not
    /// reach its successor.
    ///
    /// - Precondition: there are fewer channels than ``limit``.
    mutating func addChannel(
        to spsm: SPSM,
        _ variant: CreditBasedChannel.Variant,
        _ configuration: CreditBasedChannel.Configuration
    ) -> ChannelIdentifier {
        var identifier: ChannelIdentifier
        repeat {
            identifier = ChannelIdentifier(rawValue: nextIdentifier)
            nextIdentifier =
                nextIdentifier == ChannelIdentifier.dynamicRange.upperBound
                ? ChannelIdentifier.dynamicRange.lowerBound : nextIdentifier + 1
        } while index(of: identifier) != nil
        channels.append(CreditBasedChannel(identifier, spsm: spsm, variant: variant, configuration: configuration))
        return identifier
    }

    // MARK: Using

    /// A channel as it is.
    public subscript(identifier: ChannelIdentifier) -> CreditBasedChannel? {
        index(of: identifier).map { channels[$0] }
    }

    /// How many channels there are, those that are being made or ended included.
    public var count: Int { channels.count }

    /// Queues an SDU.
    public mutating func send(
        _ unit: consuming [UInt8],
        on identifier: ChannelIdentifier
    ) throws(CreditBasedChannel.SendError) {
        guard let index = index(of: identifier), channels[index].isOpen, !channels[index].isFinishing else {
            throw .notOpen
        }
        try channels[index].outbound.append(unit)
    }

    /// Takes the oldest SDU that has come, if there is one; the peer may then be given credits.
    public mutating func read(from identifier: ChannelIdentifier) -> [UInt8]? {
        guard let index = index(of: identifier) else { return nil }
        return channels[index].inbound.read()
    }

    /// Says that we receive other lengths on channels of the enhanced variant; they hold once the peer has agreed, which
    /// ``Event/reconfigurationFinished(_:_:)`` tells.
    public mutating func reconfigure(
        _ identifiers: ChannelIdentifierList,
        mtu: UInt16,
        mps: UInt16
    ) throws(ReconfigurationError) {
        guard !identifiers.isEmpty, !identifiers.hasDuplicates else { throw .invalidChannels }
        guard CreditBasedChannel.Variant.enhanced.allows(mtu: mtu, mps: mps) else { throw .invalidParameters }
        for identifier in identifiers {
            guard let index = index(of: identifier), channels[index].isOpen else { throw .notOpen(identifier) }
            guard channels[index].variant == .enhanced else { throw .notEnhanced(identifier) }
            guard mtu >= channels[index].mtu else { throw .reductionOfMTUNotAllowed }
            guard identifiers.count == 1 || mps >= channels[index].mps else { throw .reductionOfMPSNotAllowed }
            guard !channels[index].isReconfiguring else { throw .pending }
        }
        for identifier in identifiers {
            if let index = index(of: identifier) { channels[index].isReconfiguring = true }
        }
        outgoing.append(
            .request(.reconfigure(CreditBasedReconfigureRequest(mtu: mtu, mps: mps, destinations: identifiers)))
        )
    }

    // MARK: Ending

    /// Ends a channel at once: what is not sent is lost, what is not read comes with ``Event/closed(_:_:unread:)``. One
    /// that is not open yet is given up.
    ///
    /// A channel that does not exist, or has been ended before, is left alone.
    public mutating func disconnect(_ identifier: ChannelIdentifier) {
        guard let index = index(of: identifier) else { return }
        switch channels[index].phase {
        case .connecting:
            channels[index].phase = .abandoned
            events.append(.failed(identifier, .canceled))
            removeHeldRequest(for: identifier)
        case .open:
            close(index, .byUs)
        case .abandoned, .disconnecting:
            break
        }
    }

    /// Ends a channel once all that was queued is sent, however long the peer gives no credits; until then it receives.
    public mutating func finish(_ identifier: ChannelIdentifier) {
        guard let index = index(of: identifier), channels[index].isOpen, channels[index].unsentCount > 0 else {
            return disconnect(identifier)
        }
        channels[index].isFinishing = true
    }

    /// Ends all channels because the link is gone; nothing is sent any more.
    public mutating func linkEnded() {
        for index in channels.indices {
            let identifier = channels[index].identifier
            switch channels[index].phase {
            case .connecting: events.append(.failed(identifier, .linkEnded))
            case .open: events.append(.closed(identifier, .linkEnded, unread: channels[index].inbound.readAll()))
            case .abandoned, .disconnecting: break
            }
        }
        channels.removeAll()
        unanswered.removeAll()
        heldRequests.removeAll()
        _ = outgoing.removeAll()
    }

    /// Ends all open channels: their frames may be those of another device that uses the peer's address.
    public mutating func peerIsUnverified() {
        for index in channels.indices { close(index, .unverifiedPeer) }
    }

    /// Ends an open channel and asks the peer to.
    mutating func close(_ index: Int, _ reason: CloseReason) {
        guard case .open(let remote) = channels[index].phase else { return }
        let identifier = channels[index].identifier
        let unread = channels[index].startDisconnecting(from: remote)
        events.append(.closed(identifier, reason, unread: unread))
        outgoing.append(.request(.disconnection(DisconnectionRequest(destination: remote, source: identifier))))
    }

    // MARK: Frames

    /// Takes the payload of a K-frame.
    public mutating func receive(_ payload: RawSpan, on identifier: ChannelIdentifier) -> FrameOutcome {
        guard let index = index(of: identifier) else { return .unknownChannel }
        guard channels[index].isOpen else { return .dropped }
        do throws(CreditBasedChannel.Violation) {
            if try channels[index].inbound.receive(payload), channels[index].unreadCount == 1 {
                events.append(.received(identifier))
            }
            return .taken
        } catch {
            close(index, .violation(error))
            return .violation(error)
        }
    }

    /// Writes the payload of the next K-frame of any channel, each in turn, and returns the peer's end of the channel, to
    /// which the frame goes; nil where no channel has both something to send and a credit.
    public mutating func nextFrame(into buffer: inout PacketBuffer) -> ChannelIdentifier? {
        for step in 0..<channels.count {
            let index = (turn + step) % channels.count
            guard case .open(let remote) = channels[index].phase else { continue }
            guard channels[index].outbound.writeFrame(into: &buffer) else { continue }
            turn = index + 1
            if channels[index].isFinishing {
                if channels[index].unsentCount == 0 { close(index, .byUs) }
            } else if channels[index].outbound.takeRoom() {
                events.append(.hasRoom(channels[index].identifier))
            }
            return remote
        }
        return nil
    }

    /// Takes what has happened, in order, until there is no more.
    public mutating func nextEvent() -> Event? { events.popFirst() }

    // MARK: Finding

    func index(of identifier: ChannelIdentifier) -> Int? {
        channels.firstIndex { $0.identifier == identifier }
    }

    /// The channel with this peer's end.
    func index(ofRemote remote: ChannelIdentifier) -> Int? {
        channels.firstIndex { $0.remote == remote }
    }
}
