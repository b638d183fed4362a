import ByteCoding
import Capture

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
public final class ReplayTransport: Transport, @unchecked Sendable {
    // @unchecked: used on its loop only.

    /// Calls `action` on the transport's loop when `delay` has passed, and never before the call returns.
    public typealias Timer = @Sendable (_ delay: Duration, _ action: @escaping @Sendable () -> Void) -> Void

    /// The time within which the awaited packet must follow an early one.
    public static let turnLimit = Duration.seconds(1)
    /// Maximum number of held packets.
    public static let heldLimit = 8

    /// The recording to replay.
    public let recording: PacketRecording
    /// The first difference between the host and the recording; nil if there is none so far.
    public private(set) var difference: ReplayDifference?
    /// The number of packets of the recording that have passed: those passed to the host, and those it sent in turn.
    public private(set) var position = 0

    private let after: Timer
    private let now: @Sendable () -> Duration
    private let patience: Duration
    /// The positions of the packets that the host has not sent yet.
    private var awaited: ArraySlice<Int>
    /// The packets that the host sent before their turn, in the order sent.
    private var held: [[UInt8]] = []
    /// The packet that the host sent last on each link.
    private var lastSent: [UInt16: [UInt8]] = [:]
    private var onPacket: (@Sendable (RawSpan) -> Void)?
    private var onEnd: (@Sendable (TransportError) -> Void)?
    private var onDifference: (@Sendable (ReplayDifference) -> Void)?
    /// Incremented for each wait and on close. A timer of an earlier wait does nothing.
    private var waiting: UInt64 = 0
    private var passedTime: Duration?
    private let startTime: Duration

    /// Creates a replay of a recording.
    ///
    /// - Parameters:
    ///   - recording: the recording to replay.
    ///   - patience: the time that the host may take to send a packet, beyond the recorded time.
    ///   - now: the time on the loop's clock, which only moves forward.
    ///   - after: the loop's timer.
    ///   - onDifference: called on the loop with the first difference.
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

    /// Whether the host has sent all its packets of the recording.
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
        // A sender must not be called back from within its own call.
        if index == position { after(.zero) { [weak self] in self?.proceed() } }
    }

    /// Returns the index in the recording of a packet that the host sends now, or nil if the host must not send it.
    private func turn(of packet: [UInt8]) -> Int? {
        for index in awaited.prefix(ReplayTransport.heldLimit + 1) {
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
        return previous?.bytes == lastSent[link]
    }

    /// The connection handle of an ACL packet.
    private static func link(of packet: [UInt8]) -> UInt16? {
        guard packet.count > 2, packet[0] == 2 else { return nil }
        return (UInt16(packet[1]) | UInt16(packet[2]) << 8) & 0x0FFF
    }

    /// Holds a packet until its turn.
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

    /// Passes the held packets whose turn has come.
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

    /// Ends the transport, as if the recorded controller was unplugged. A recording has no packet for this.
    public func lose() {
        let onEnd = onEnd
        close()
        after(.zero) { onEnd?(.closedByPeer) }
    }

    /// Declares that the host sends no more packets. A packet that it has not sent yet is a difference.
    public func finish() {
        guard difference == nil, let index = awaited.first else { return }
        differ(at: index, held.first)
    }

    /// Skips the packets that the host has sent, then passes the next controller packet to the host when it is due.
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
