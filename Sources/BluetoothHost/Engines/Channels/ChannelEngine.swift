import BLEL2CAP
import BluetoothTypes
import DequeModule

/// The credit-based channels of one link, and its signaling channel.
///
/// ## Overview
///
/// The engine knows the app's closures for a channel by one token, its observer. The first effect for an observer is
/// ``ChannelEffect/opened(_:_:_:)`` or ``ChannelEffect/failed(_:_:)``; a channel that the peer has opened gets its
/// observer by ``observe(_:_:)``. The last is ``ChannelEffect/failed(_:_:)`` or ``ChannelEffect/ended(_:_:unread:)``,
/// unless the app has rejected the channel.
///
/// After each input, the caller takes commands with ``nextCommand(at:grantsCredits:into:)`` and effects with
/// ``nextEffect()``. It takes frames with ``nextFrame(into:)`` while the link's outbound queue is not full. Each method
/// returns one element, so that a packet needs no array.
///
/// A request for channels is held until ``release(_:)``, so that it keeps its place among the calls of the app.
///
/// After ``linkEnded(_:)`` calls fail at once, and all other inputs have no effect.
struct ChannelEngine {
    /// The app's use of one channel.
    struct Use {
        let name: HostChannelIdentifier
        let psm: SPSM
        /// Nil until ``ChannelEngine/observe(_:_:)``.
        var observer: ObserverToken?
        var isOpening: Bool
        /// The call that waits for the outcome of a reconfiguration.
        var reconfiguration: CallToken?
    }

    enum Phase {
        case connected
        indirect case ended(DisconnectionReason)
    }

    let link: LinkIdentifier
    var channels: CreditBasedChannels
    var signaling: SignalingChannel
    /// The uses of channels, the oldest first. A link has few channels, so searching is fast.
    var uses: [Use] = []
    /// Effects that were not taken yet.
    var effects = Deque<ChannelEffect>()
    var nextNumber: UInt64 = 0
    var phase = Phase.connected

    init(link: LinkIdentifier, role: SignalingChannel.Role) {
        self.link = link
        channels = CreditBasedChannels(yieldsToPeer: role == .peripheral)
        signaling = SignalingChannel(role: role)
    }

    // MARK: State

    /// The number of channels, including those that are opening or ending.
    var count: Int { channels.count }

    /// The earliest time at which ``advance(to:)`` is to be called; nil if there is none.
    var deadline: Instant? { earliest(channels.deadline, signaling.deadline) }

    /// Whether the peer has not answered a command for channels.
    var awaitsAnswer: Bool { channels.hasUnansweredRequest }

    /// Whether a reconfiguration waits until the peer has used some of its credits.
    var holdsReconfiguration: Bool { channels.holdsReconfiguration }

    /// Whether the peer has not answered a request for connection parameters.
    var isParameterRequestPending: Bool { signaling.deadline != nil }

    /// Our identifiers of the channels that are being opened, the oldest first.
    var openings: [ChannelIdentifier] { uses.compactMap { $0.isOpening ? $0.name.channel : nil } }

    /// Whether a channel is being opened.
    var isOpening: Bool { uses.contains { $0.isOpening } }

    /// The number of channels with an observer.
    var observedCount: Int { uses.count { $0.observer != nil } }

    /// Whether the request for a channel waits for ``release(_:)``.
    func isHeld(_ channel: ChannelIdentifier) -> Bool { channels.isHeld(channel) }

    var endError: HostError? {
        if case .ended(let reason) = phase { .disconnected(reason) } else { nil }
    }

    private func index(of name: HostChannelIdentifier) -> Int? {
        uses.firstIndex { $0.name.channel == name.channel && $0.name.number == name.number }
    }

    func index(of channel: ChannelIdentifier) -> Int? {
        uses.firstIndex { $0.name.channel == channel }
    }

    /// The current properties of a channel; nil if the channel has ended.
    func information(on name: HostChannelIdentifier) -> ChannelInformation? {
        guard index(of: name) != nil, let channel = channels[name.channel] else { return nil }
        return ChannelInformation(
            mtu: channel.mtu,
            mps: channel.mps,
            peerMTU: channel.peerMTU,
            peerMPS: channel.peerMPS,
            unreadCount: channel.unreadCount,
            unsentCount: channel.unsentCount,
            unsentByteCount: channel.unsentByteCount
        )
    }

    // MARK: Opening

    /// Checks the lengths of channels that this host would accept or open.
    static func check(_ configuration: CreditBasedChannel.Configuration) throws(HostError) {
        guard configuration.isValid else { throw .invalidChannelLengths }
        try check(mps: configuration.mps)
    }

    private static func check(mps: UInt16) throws(HostError) {
        guard Int(mps) <= Reassembler.defaultMaximumPayloadLength else {
            throw .invalidArgument(
                "this host receives an MPS of at most \(Reassembler.defaultMaximumPayloadLength) bytes"
            )
        }
    }

    /// Requests a channel with LE credit-based flow control. ``observe(_:_:)`` follows.
    mutating func connect(
        to psm: SPSM,
        configuration: CreditBasedChannel.Configuration
    ) throws(HostError) -> HostChannelIdentifier {
        if let endError { throw endError }
        try ChannelEngine.check(configuration)
        let channel: ChannelIdentifier
        do throws(CreditBasedChannels.ConnectionError) {
            channel = try channels.connect(to: psm, configuration: configuration, isHeld: true)
        } catch {
            throw HostError(error)
        }
        return use(channel, psm, isOpening: true)
    }

    /// Requests up to five channels with enhanced credit-based flow control, in one request. ``observe(_:_:)`` follows
    /// for each.
    mutating func connect(
        to psm: SPSM,
        count: Int,
        configuration: CreditBasedChannel.Configuration
    ) throws(HostError) -> [HostChannelIdentifier] {
        if let endError { throw endError }
        try ChannelEngine.check(configuration)
        let list: ChannelIdentifierList
        do throws(CreditBasedChannels.ConnectionError) {
            list = try channels.connect(to: psm, count: count, configuration: configuration, isHeld: true)
        } catch {
            throw HostError(error)
        }
        return list.map { use($0, psm, isOpening: true) }
    }

    mutating func use(_ channel: ChannelIdentifier, _ psm: SPSM, isOpening: Bool) -> HostChannelIdentifier {
        nextNumber += 1
        let name = HostChannelIdentifier(link: link, channel: channel, number: nextNumber)
        uses.append(Use(name: name, psm: psm, isOpening: isOpening))
        return name
    }

    /// Sets the observer of a channel that was requested or accepted.
    ///
    /// - Returns: false if the channel has ended. The observer gets no effects then.
    mutating func observe(_ name: HostChannelIdentifier, _ observer: ObserverToken) -> Bool {
        guard let index = index(of: name) else { return false }
        uses[index].observer = observer
        return true
    }

    /// Ends a channel that no app takes. Its observer gets no further effects.
    mutating func reject(_ name: HostChannelIdentifier) {
        guard let index = index(of: name) else { return }
        if let call = uses.remove(at: index).reconfiguration { effects.append(.finish(call, .channel(.ended(.byUs)))) }
        channels.disconnect(name.channel)
    }

    /// Allows the request for a channel to be sent, with all channels that it asks for.
    mutating func release(_ channel: ChannelIdentifier) { channels.release(channel) }

    /// Ends the opening of a channel with an error.
    ///
    /// - Returns: false if the opening has ended.
    mutating func endOpening(of channel: ChannelIdentifier, _ error: HostError) -> Bool {
        takeEvents()
        guard let index = index(of: channel), uses[index].isOpening else { return false }
        let use = uses.remove(at: index)
        channels.disconnect(channel)
        if let observer = use.observer { effects.append(.failed(observer, error)) }
        return true
    }

    /// Ends the channels of a peer whose identity is no longer verified, for example because encryption has ended.
    /// Requests that are still held stay.
    mutating func peerIsUnverified() {
        // The peer may answer a request before its identity is verified.
        for channel in openings where !channels.isHeld(channel) {
            _ = endOpening(of: channel, .channel(.ended(.unverifiedPeer)))
        }
        channels.peerIsUnverified()
    }

    // MARK: Using

    /// Queues bytes as SDUs of the peer's MTU, until the channel's queue is full.
    ///
    /// - Returns: the number of bytes that were accepted; nil if the channel is not open. If it is less than the whole,
    ///   ``ChannelEffect/hasRoom(_:)`` follows.
    mutating func send(_ bytes: ArraySlice<UInt8>, on name: HostChannelIdentifier) -> Int? {
        guard index(of: name) != nil, let channel = channels[name.channel], channel.isOpen else { return nil }
        var rest = bytes
        while !rest.isEmpty {
            let unit = Array(rest.prefix(channel.peerMTU))
            do throws(CreditBasedChannel.SendError) {
                try channels.send(unit, on: name.channel)
                rest = rest.dropFirst(unit.count)
            } catch {
                if error != .noRoom, rest.count == bytes.count { return nil }
                break
            }
        }
        return bytes.count - rest.count
    }

    /// Returns and removes received SDUs, oldest first, until their total length reaches `limit` bytes or none is left.
    mutating func read(from name: HostChannelIdentifier, limit: Int) -> [[UInt8]] {
        guard index(of: name) != nil else { return [] }
        var units: [[UInt8]] = []
        var count = 0
        while count < limit, let unit = channels.read(from: name.channel) {
            count += unit.count
            units.append(unit)
        }
        return units
    }

    /// Requests other lengths for an enhanced channel.
    ///
    /// - Parameter call: the call that gets the outcome. If this method throws, it gets none.
    mutating func reconfigure(
        _ name: HostChannelIdentifier,
        mtu: UInt16,
        mps: UInt16,
        for call: CallToken
    ) throws(HostError) {
        try ChannelEngine.check(mps: mps)
        guard let index = index(of: name), let list = ChannelIdentifierList(CollectionOfOne(name.channel)) else {
            throw .channel(.ended(.byUs))
        }
        do throws(CreditBasedChannels.ReconfigurationError) {
            try channels.reconfigure(list, mtu: mtu, mps: mps)
        } catch {
            throw HostError(error)
        }
        uses[index].reconfiguration = call
    }

    /// Forgets a call that was cancelled.
    mutating func cancel(_ call: CallToken) {
        for index in uses.indices where uses[index].reconfiguration == call { uses[index].reconfiguration = nil }
    }

    // MARK: Ending

    /// Ends a channel at once, or cancels its opening. Unsent data is lost.
    mutating func disconnect(_ name: HostChannelIdentifier) {
        if index(of: name) != nil { channels.disconnect(name.channel) }
    }

    /// Ends a channel once all queued data is sent. It receives until then.
    mutating func finish(_ name: HostChannelIdentifier) {
        if index(of: name) != nil { channels.finish(name.channel) }
    }

    /// Ends all channels because the link has ended.
    mutating func linkEnded(_ reason: DisconnectionReason) {
        guard endError == nil else { return }
        takeEvents()
        phase = .ended(reason)
        channels.linkEnded()
        takeEvents()
        channels = CreditBasedChannels()
        signaling = SignalingChannel(role: .central)
        uses = []
    }
}
