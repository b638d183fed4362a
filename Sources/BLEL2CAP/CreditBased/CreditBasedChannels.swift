import BLEByteCoding
import BluetoothTypes

/// The credit-based channels of one link: opens and accepts them, carries their SDUs, ends them (Vol 3, Part A, 4.22 to
/// 4.28, 10.1 and 10.2).
///
/// The owner passes in frames and commands from the link and the requests of the app. After each call it takes:
///
/// - commands to send, with ``nextCommand(at:identifiers:grantsCredits:into:)`` until there is none;
/// - frames to send, with ``nextFrame(into:)`` while the link has room;
/// - events, with ``nextEvent()``.
///
/// A frame may lead to a command: the last frame of a finishing channel ends the channel. SDUs are cut into K-frames
/// only when a frame is taken, so no more frames wait for the link than the owner asked for.
///
/// A channel is identified by our own endpoint. Its last event is ``Event/failed(_:_:)`` or
/// ``Event/closed(_:_:unread:)``. After that the identifier is invalid, and a later channel may reuse it.
public struct CreditBasedChannels {
    /// The time that a request waits after the peer has answered that it is pending (ERTX timer, Vol 3, Part A, 6.2.2).
    public static let extendedResponseTimeout = Duration.seconds(60)

    /// Maximum number of channels of the link, including those that are opening or ending.
    public let limit: Int
    /// Whether channels that this device has requested and the peer has not accepted yet do not count for
    /// ``SPSMRegistry/Service/channelLimit``.
    ///
    /// If both devices request channels at once, each might refuse the other because of its own request (Vol 3, Part G,
    /// 5.4). Only the central counts its own requests, so the central gets its channels.
    public let yieldsToPeer: Bool
    var channels: [CreditBasedChannel] = []
    var unanswered: [UnansweredRequest] = []
    var outgoing = Queue<OutgoingCommand>()
    /// Held requests for channels, the oldest first.
    var heldRequests: [Request] = []
    /// Reconfigurations that wait until the peers' credits fit, the oldest first.
    var heldReconfigurations: [HeldReconfiguration] = []
    var events = Queue<Event>()
    private var nextIdentifier = ChannelIdentifier.dynamicRange.lowerBound
    /// The index at which the next search for a frame to send starts, so that channels take turns.
    private var turn = 0

    /// - Parameters:
    ///   - limit: maximum number of channels of the link: at most 64, the number of identifiers.
    ///   - yieldsToPeer: whether requests of this device give way to the peer's; see ``yieldsToPeer``.
    public init(limit: Int = 16, yieldsToPeer: Bool = false) {
        self.limit = min(max(limit, 0), ChannelIdentifier.dynamicRange.count)
        self.yieldsToPeer = yieldsToPeer
    }

    // MARK: Opening

    /// Requests a channel with LE credit-based flow control; ``Event/opened(_:)`` or ``Event/failed(_:_:)`` follows.
    ///
    /// - Parameters:
    ///   - spsm: the peer's service.
    ///   - configuration: the lengths and capacities of this end.
    ///   - isHeld: whether the request is sent only after ``release(_:)``.
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

    /// Requests up to five channels with enhanced credit-based flow control in one request. An event for each follows.
    ///
    /// - Parameters:
    ///   - spsm: the peer's service.
    ///   - count: 1 to 5.
    ///   - configuration: the lengths and capacities of this end.
    ///   - isHeld: whether the request is sent only after ``release(_:)`` for one of the channels.
    public mutating func connect(
        to spsm: SPSM,
        count: Int,
        configuration: CreditBasedChannel.Configuration = .init(),
        isHeld: Bool = false
    ) throws(ConnectionError) -> ChannelIdentifierList {
        try checkRequest(to: spsm, count: count, configuration)
        var identifiers: [ChannelIdentifier] = []
        var initialCredits: UInt16 = 0
        for _ in 0..<count {
            identifiers.append(addChannel(to: spsm, .enhanced, configuration))
            initialCredits = channels[channels.count - 1].inbound.takeGrant() ?? 0
        }
        var sources = ChannelIdentifierList()
        // Some peers refuse lists that begin with the highest one.
        for identifier in identifiers.sorted(by: { $0.rawValue < $1.rawValue }) { sources.append(identifier) }
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

    /// Adds a channel with the next free identifier. Identifiers rotate, so that a late frame for an ended channel does
    /// not reach its successor.
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

    /// The current state of a channel; nil if there is none.
    public subscript(identifier: ChannelIdentifier) -> CreditBasedChannel? {
        index(of: identifier).map { channels[$0] }
    }

    /// The number of channels, including those that are opening or ending.
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

    /// Removes and returns the oldest received SDU, if there is one. The peer may then receive credits.
    public mutating func read(from identifier: ChannelIdentifier) -> [UInt8]? {
        guard let index = index(of: identifier) else { return nil }
        return channels[index].inbound.read()
    }

    // MARK: Ending

    /// Ends a channel at once. Unsent SDUs are lost; unread SDUs are part of ``Event/closed(_:_:unread:)``. A channel
    /// that is not open yet is canceled.
    ///
    /// The call has no effect on a channel that does not exist or has already ended.
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

    /// Ends a channel once everything queued is sent, however long the peer grants no credits. Until then it receives.
    public mutating func finish(_ identifier: ChannelIdentifier) {
        guard let index = index(of: identifier), channels[index].isOpen, channels[index].unsentCount > 0 else {
            return disconnect(identifier)
        }
        channels[index].isFinishing = true
    }

    /// Ends all channels because the connection has ended; nothing more is sent.
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
        heldReconfigurations.removeAll()
        _ = outgoing.removeAll()
    }

    /// Ends all open channels, because their frames may come from another device that uses the peer's address.
    public mutating func peerIsUnverified() {
        for index in channels.indices { close(index, .unverifiedPeer) }
    }

    /// Ends an open channel and sends the peer a Disconnection Request.
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

    /// Writes the payload of the next K-frame of any channel. Channels take turns.
    ///
    /// - Returns: the peer's endpoint of the channel, to which the frame goes; nil if no channel has both something to
    ///   send and a credit.
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

    /// Removes and returns the oldest event; nil if there is none.
    public mutating func nextEvent() -> Event? { events.popFirst() }

    // MARK: Finding

    func index(of identifier: ChannelIdentifier) -> Int? {
        channels.firstIndex { $0.identifier == identifier }
    }

    /// The index of the channel with this endpoint of the peer.
    func index(ofRemote remote: ChannelIdentifier) -> Int? {
        channels.firstIndex { $0.remote == remote }
    }
}
