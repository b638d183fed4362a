import ByteCoding
import Capture

/// A controller that does again what a recorded one did, and a judge of the host on it.
///
/// What the controller sent is handed to the host, each packet once the host has sent all that it had sent before it, and as
/// long after the packet before it as recorded. What the host sends is compared with the recording, octet by octet and in
/// order; the first ``difference`` ends the transport.
///
/// A host may be ahead of the recording: it sends what its app wants as soon as it may, where the recorded app took its time.
/// What does not wait for each other, as a response to the peer and a command, may have changed places for that. A packet
/// that comes before its turn is held until its turn comes; where that does not come within ``turnLimit``, or more than
/// ``heldLimit`` packets are held, the first of them is the difference. Commands keep their order, and so do a frame's
/// fragments.
///
/// For all packets to be the same, the host must be given the random numbers of the recorded run, hence its seed, and the
/// same calls. A host that has closed the transport, or lost it by ``lose()``, may start it again, and goes on in the
/// recording where it was.
///
/// Like any transport it belongs to a loop, whose time it is told by `after`: on a simulated one a replay takes no longer
/// than its computing.
public final class ReplayTransport: Transport, @unchecked Sendable {
    // @unchecked: used on its loop only.

    /// Calls `action` on the transport's loop when `delay` has passed; never at once.
    public typealias Timer = @Sendable (_ delay: Duration, _ action: @escaping @Sendable () -> Void) -> Void

    /// How long a packet may be sent before its turn.
    public static let turnLimit = Duration.seconds(1)
    /// How many packets may be sent before their turns.
    public static let heldLimit = 8

    /// What is played.
    public let recording: PacketRecording
    /// How the host has first done otherwise than recorded; nil where it has not so far.
    public private(set) var difference: ReplayDifference?
    /// How many packets of the recording have passed: those that the host was given, and those that it has sent in turn.
    public private(set) var position = 0

    private let after: Timer
    private let now: @Sendable () -> Duration
    private let patience: Duration
    /// The positions of the packets that the host has yet to send.
    private var awaited: ArraySlice<Int>
    /// What the host has sent before its turn, in its order.
    private var held: [[UInt8]] = []
    /// What the host has sent last on each link.
    private var lastSent: [UInt16: [UInt8]] = [:]
    private var onPacket: (@Sendable (RawSpan) -> Void)?
    private var onEnd: (@Sendable (TransportError) -> Void)?
    private var onDifference: (@Sendable (ReplayDifference) -> Void)?
    /// Counts what is waited for, so that a timer that has been overtaken does nothing.
    private var waiting: UInt64 = 0
    private var passedTime: Duration?
    private let startTime: Duration

    /// - Parameters:
    ///   - recording: what is played.
    ///   - patience: how much longer than recorded the host may take to send something.
    ///   - now: the time on the loop's clock, which only moves forward.
    ///   - after: the loop's timer.
    ///   - onDifference: is told the first difference, on the loop.
    public init(
        _ recording: PacketRecording,
        patience: Duration = .seconds(60),
        now: @escaping @Sendable () -> Duration,
        after: @escaping Timer,
        onDifference: (@Sendable (ReplayDifference) -> Void)? = nil
    ) {
        self.recording = recording
        self.patience = patience
        self.now = now
        self.after = after
        self.onDifference = onDifference
        startTime = now()
        awaited = recording.packets.indices.filter { recording.packets[$0].direction == .hostToController }[...]
    }

    /// Whether the host has sent all that it was to have sent.
    public var isComplete: Bool { difference == nil && awaited.isEmpty && held.isEmpty }

    public func start(
        onPacket: @escaping @Sendable (RawSpan) -> Void,
        onEnd: @escaping @Sendable (TransportError) -> Void
    ) {
        self.onPacket = onPacket
        self.onEnd = onEnd
        guard difference == nil else { return lose() }
        proceed()
    }

    public func send(_ packet: RawSpan) {
        guard difference == nil, onPacket != nil else { return }
        let bytes = [UInt8](copying: packet)
        guard let index = awaited.first else { return differ(at: recording.packets.count, bytes) }
        guard let turn = turn(of: bytes) else { return differ(at: index, bytes) }
        if let link = ReplayTransport.link(of: bytes) { lastSent[link] = bytes }
        guard turn == index else { return hold(bytes) }
        awaited.removeFirst()
        takeHeld()
        // Whoever sends is not to be called back in the middle of it.
        if index == position { after(.zero) { [weak self] in self?.proceed() } }
    }

    /// Where in the recording a packet stands that the host sends now; nil where it is not to be sent.
    private func turn(of packet: [UInt8]) -> Int? {
        for index in awaited.prefix(ReplayTransport.heldLimit + 1) {
            let expected = recording.packets[index].bytes
            if expected == packet { return isContinued(at: index) ? index : nil }
            // Each command waits for the one before it.
            if expected.first == 1, packet.first == 1 { return nil }
        }
        return nil
    }

    /// Whether a packet of the recording follows, where it is a frame's further fragment, what the host has sent last.
    private func isContinued(at index: Int) -> Bool {
        let packets = recording.packets
        guard let link = ReplayTransport.link(of: packets[index].bytes), packets[index].bytes[2] >> 4 & 3 == 1 else {
            return true
        }
        let previous = packets[..<index].last {
            $0.direction == .hostToController && ReplayTransport.link(of: $0.bytes) == link
        }
        return previous?.bytes == lastSent[link]
    }

    /// The connection handle of an ACL packet.
    private static func link(of packet: [UInt8]) -> UInt16? {
        guard packet.count > 2, packet[0] == 2 else { return nil }
        return (UInt16(packet[1]) | UInt16(packet[2]) << 8) & 0x0FFF
    }

    /// Keeps what has its turn later.
    private func hold(_ packet: [UInt8]) {
        guard let turn = awaited.first, held.count < ReplayTransport.heldLimit else {
            return differ(at: awaited.first ?? recording.packets.count, packet)
        }
        held.append(packet)
        after(ReplayTransport.turnLimit) { [weak self] in
            guard let self, difference == nil, awaited.first == turn else { return }
            differ(at: turn, held.first)
        }
    }

    /// Passes what was sent before its turn, where that has come.
    private func takeHeld() {
        while let index = awaited.first, let place = held.firstIndex(of: recording.packets[index].bytes) {
            held.remove(at: place)
            awaited.removeFirst()
        }
        if awaited.isEmpty, let more = held.first { differ(at: recording.packets.count, more) }
    }

    public func close() {
        onPacket = nil
        onEnd = nil
        waiting += 1
    }

    /// Ends the transport, as when the recorded controller was unplugged, which no packet tells of.
    public func lose() {
        let onEnd = onEnd
        close()
        after(.zero) { onEnd?(.closedByPeer) }
    }

    /// Says that the host will send no more: what it had still to send is a difference.
    public func finish() {
        guard difference == nil, let index = awaited.first else { return }
        differ(at: index, held.first)
    }

    /// Passes what the host has sent, and hands it the next packet when it is time.
    private func proceed() {
        while position < recording.packets.count, recording.packets[position].direction == .hostToController,
            position < awaited.first ?? recording.packets.count
        {
            pass()
        }
        guard onPacket != nil, difference == nil, position < recording.packets.count else { return }
        waiting += 1
        let (turn, next) = (waiting, position)
        let packet = recording.packets[next]
        let gap = next == 0 ? .zero : packet.time - recording.packets[next - 1].time
        let due = (passedTime ?? now()) + gap
        if packet.direction == .controllerToHost {
            after(max(.zero, due - now())) { [weak self] in
                guard let self, waiting == turn else { return }
                pass()
                let bytes = packet.bytes
                onPacket?(bytes.rawSpan)
                after(.zero) { [weak self] in self?.proceed() }
            }
        } else {
            after(max(.zero, due + patience - now())) { [weak self] in
                guard let self, waiting == turn else { return }
                differ(at: next, held.first)
            }
        }
    }

    private func pass() {
        position += 1
        passedTime = now()
    }

    private func differ(at index: Int, _ sent: [UInt8]?) {
        let expected = recording.packets.indices.contains(index) ? recording.packets[index] : nil
        let difference = ReplayDifference(time: now() - startTime, index: index, expected: expected, sent: sent)
        self.difference = difference
        lose()
        onDifference?(difference)
        onDifference = nil
    }
}
