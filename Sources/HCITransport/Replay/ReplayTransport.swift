import ByteCoding
import Capture

/// A controller that does again what a recorded one did, and a judge of the host on it.
///
/// What the controller sent is handed to the host, each packet once the host has sent all that it had sent before it, and as
/// long after the packet before it as recorded. What the host sends is compared with the recording, octet by octet and in
/// order; the first ``difference`` ends the transport. A host may be ahead of the recording: it sends what its app wants as
/// soon as it may, where the recorded app took its time.
///
/// For all packets to be the same, the host must be given the random numbers of the recorded run, hence its seed, and the
/// same calls. A host that has closed the transport, or lost it by ``lose()``, may start it again, and goes on in the
/// recording where it was.
///
/// Like any transport it belongs to a loop, whose time it is told by `after`: on a simulated one a replay takes no longer
/// than its computing.
public final class ReplayTransport: Transport, @unchecked Sendable {
    /// Calls `action` on the transport's loop when `delay` has passed; never at once.
    public typealias Timer = @Sendable (_ delay: Duration, _ action: @escaping @Sendable () -> Void) -> Void

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
    public var isComplete: Bool { difference == nil && awaited.isEmpty }

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
        guard let index = awaited.first else {
            return differ(at: recording.packets.count, [UInt8](copying: packet))
        }
        let expected = recording.packets[index].bytes
        guard expected.rawSpan.elementsEqual(packet) else {
            return differ(at: index, [UInt8](copying: packet))
        }
        awaited.removeFirst()
        // Whoever sends is not to be called back in the middle of it.
        if index == position { after(.zero) { [weak self] in self?.proceed() } }
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
        differ(at: index, nil)
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
                differ(at: next, nil)
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
