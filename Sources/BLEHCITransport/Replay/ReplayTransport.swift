import BLEByteCoding
import BLECapture

/// A simulated controller that replays a recording, and compares the packets of the host with it.
///
/// # Order and timing
/// The replay passes each controller packet to the host once the host has sent all packets recorded before it. The
/// delay after the preceding packet is the recorded delay. Each packet that the host sends is compared with the
/// recording, byte by byte and in order. The first ``difference`` ends the transport.
///
/// A host may be ahead of the recording: it sends packets as soon as it may, but the recorded app took its time.
/// Packets that do not depend on each other, such as a response to the peer and a command, may then have another order.
/// A packet that is sent before its turn is held until its turn comes. If the awaited packet does not follow within
/// ``turnLimit``, the first held packet is the difference. If ``heldLimit`` packets are held already, the next early
/// packet is the difference. Commands keep their order, and so do the fragments of a frame.
///
/// # Requirements
/// The replayed host needs the random numbers of the recorded run, hence its seed, and the same calls. A host that has
/// closed the transport, or lost it by ``lose()``, may start it again. The replay then continues at the same packet.
///
/// Like any transport, it belongs to a loop. The `after` timer provides the loop's time: on a simulated loop, a replay
/// takes only its computing time.
public final class ReplayTransport: Transport {
    /// Calls `action` on the transport's loop when `delay` has passed, and never before the call returns.
    public typealias Timer = @Sendable (_ delay: Duration, _ action: @escaping @Sendable () -> Void) -> Void

    /// The time within which the awaited packet must follow an early one.
    public static let turnLimit = Duration.seconds(1)
    /// Maximum number of held packets.
    public static let heldLimit = 8

    /// The recording to replay.
    public let recording: PacketRecording
    /// The first difference between the host and the recording; nil if there is none so far.
    public var difference: ReplayDifference? { state.difference }
    /// The number of packets of the recording that have passed: those passed to the host, and those it sent in turn.
    public var position: Int { state.position }

    private let after: Timer
    private let now: @Sendable () -> Duration
    private let patience: Duration
    private let startTime: Duration
    private let confined: LoopConfined<State>
    private var state: State { confined.value }

    private final class State {
        var difference: ReplayDifference?
        var position = 0
        /// The positions of the packets that the host has not sent yet.
        var awaited: ArraySlice<Int>
        /// The packets that the host sent before their turn, in the order sent.
        var held: [[UInt8]] = []
        /// The packet that the host sent last on each link.
        var lastSent: [UInt16: [UInt8]] = [:]
        var onPacket: (@Sendable (RawSpan) -> Void)?
        var onEnd: (@Sendable (TransportError) -> Void)?
        var onDifference: (@Sendable (ReplayDifference) -> Void)?
        /// Incremented for each wait and on close. A timer of an earlier wait does nothing.
        var waiting: UInt64 = 0
        var passedTime: Duration?

        init(_ recording: PacketRecording, onDifference: (@Sendable (ReplayDifference) -> Void)?) {
            awaited = recording.packets.indices.filter { recording.packets[$0].direction == .hostToController }[...]
            self.onDifference = onDifference
        }
    }

    /// Creates a replay of a recording.
    ///
    /// - Parameters:
    ///   - recording: the recording to replay.
    ///   - patience: the time that the host may take to send a packet, beyond the recorded time.
    ///   - now: the time on the loop's clock, which only moves forward.
    ///   - after: the loop's timer.
    ///   - checkLoop: stops the program if the caller is not on the loop. Called in debug builds only.
    ///   - onDifference: called on the loop with the first difference.
    public init(
        _ recording: PacketRecording,
        patience: Duration = .seconds(60),
        now: @escaping @Sendable () -> Duration,
        after: @escaping Timer,
        checkLoop: @escaping @Sendable () -> Void = {},
        onDifference: (@Sendable (ReplayDifference) -> Void)? = nil
    ) {
        self.recording = recording
        self.patience = patience
        self.now = now
        self.after = after
        startTime = now()
        confined = LoopConfined(State(recording, onDifference: onDifference), check: checkLoop)
    }

    /// Whether the host has sent all its packets of the recording.
    public var isComplete: Bool { difference == nil && state.awaited.isEmpty && state.held.isEmpty }

    public func start(
        onPacket: @escaping @Sendable (RawSpan) -> Void,
        onEnd: @escaping @Sendable (TransportError) -> Void
    ) {
        state.onPacket = onPacket
        state.onEnd = onEnd
        guard difference == nil else { return lose() }
        proceed()
    }

    public func send(_ packet: RawSpan) {
        guard difference == nil, state.onPacket != nil else { return }
        let bytes = [UInt8](copying: packet)
        guard let index = state.awaited.first else { return differ(at: recording.packets.count, bytes) }
        guard let turn = turn(of: bytes) else { return differ(at: index, bytes) }
        if let link = ReplayTransport.link(of: bytes) { state.lastSent[link] = bytes }
        guard turn == index else { return hold(bytes) }
        state.awaited.removeFirst()
        takeHeld()
        // A sender must not be called back from within its own call.
        if index == position { after(.zero) { [weak self] in self?.proceed() } }
    }

    /// Returns the index in the recording of a packet that the host sends now, or nil if the host must not send it.
    private func turn(of packet: [UInt8]) -> Int? {
        for index in state.awaited.prefix(ReplayTransport.heldLimit + 1) {
            let expected = recording.packets[index].bytes
            if expected == packet { return isContinued(at: index) ? index : nil }
            // Each command waits for the preceding command.
            if expected.first == 1, packet.first == 1 { return nil }
        }
        return nil
    }

    /// Returns false only for a continuing fragment of a frame that does not follow the host's last packet on the link.
    private func isContinued(at index: Int) -> Bool {
        let packets = recording.packets
        guard let link = ReplayTransport.link(of: packets[index].bytes), packets[index].bytes[2] >> 4 & 3 == 1 else {
            return true
        }
        let previous = packets[..<index].last {
            $0.direction == .hostToController && ReplayTransport.link(of: $0.bytes) == link
        }
        return previous?.bytes == state.lastSent[link]
    }

    /// The connection handle of an ACL packet.
    private static func link(of packet: [UInt8]) -> UInt16? {
        guard packet.count > 2, packet[0] == 2 else { return nil }
        return (UInt16(packet[1]) | UInt16(packet[2]) << 8) & 0x0FFF
    }

    /// Holds a packet until its turn.
    private func hold(_ packet: [UInt8]) {
        guard let turn = state.awaited.first, state.held.count < ReplayTransport.heldLimit else {
            return differ(at: state.awaited.first ?? recording.packets.count, packet)
        }
        state.held.append(packet)
        after(ReplayTransport.turnLimit) { [weak self] in
            guard let self, difference == nil, state.awaited.first == turn else { return }
            differ(at: turn, state.held.first)
        }
    }

    /// Passes the held packets whose turn has come.
    private func takeHeld() {
        while let index = state.awaited.first, let place = state.held.firstIndex(of: recording.packets[index].bytes) {
            state.held.remove(at: place)
            state.awaited.removeFirst()
        }
        if state.awaited.isEmpty, let more = state.held.first { differ(at: recording.packets.count, more) }
    }

    public func close() {
        let state = state
        state.onPacket = nil
        state.onEnd = nil
        state.waiting += 1
    }

    /// Ends the transport, as if the recorded controller was unplugged. A recording has no packet for this.
    public func lose() {
        let onEnd = state.onEnd
        close()
        after(.zero) { onEnd?(.closedByPeer) }
    }

    /// Declares that the host sends no more packets. A packet that it has not sent yet is a difference.
    public func finish() {
        guard difference == nil, let index = state.awaited.first else { return }
        differ(at: index, state.held.first)
    }

    /// Skips the packets that the host has sent, then passes the next controller packet to the host when it is due.
    private func proceed() {
        while position < recording.packets.count, recording.packets[position].direction == .hostToController,
            position < state.awaited.first ?? recording.packets.count
        {
            pass()
        }
        guard state.onPacket != nil, difference == nil, position < recording.packets.count else { return }
        state.waiting += 1
        let (turn, next) = (state.waiting, position)
        let packet = recording.packets[next]
        let gap = next == 0 ? .zero : packet.time - recording.packets[next - 1].time
        let due = (state.passedTime ?? now()) + gap
        if packet.direction == .controllerToHost {
            after(max(.zero, due - now())) { [weak self] in
                guard let self, state.waiting == turn else { return }
                pass()
                let bytes = packet.bytes
                state.onPacket?(bytes.rawSpan)
                after(.zero) { [weak self] in self?.proceed() }
            }
        } else {
            after(max(.zero, due + patience - now())) { [weak self] in
                guard let self, state.waiting == turn else { return }
                differ(at: next, state.held.first)
            }
        }
    }

    private func pass() {
        state.position += 1
        state.passedTime = now()
    }

    private func differ(at index: Int, _ sent: [UInt8]?) {
        let expected = recording.packets.indices.contains(index) ? recording.packets[index] : nil
        let difference = ReplayDifference(time: now() - startTime, index: index, expected: expected, sent: sent)
        state.difference = difference
        lose()
        state.onDifference?(difference)
        state.onDifference = nil
    }
}
