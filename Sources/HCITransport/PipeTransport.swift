import ByteCoding
import Dispatch

/// One end of an in-memory pipe. Packets sent at one end are received at the other, in order, on its own queue.
///
/// Packets that arrive before an end is started wait until it starts.
public final class PipeTransport: Transport, @unchecked Sendable {
    // @unchecked: used on its queue only, once the pair is made.

    private enum State {
        case idle(waiting: [[UInt8]], hasEnded: Bool)
        case started(onPacket: @Sendable (RawSpan) -> Void, onEnd: @Sendable (TransportError) -> Void)
        case closed
    }

    private let queue: DispatchQueue
    private weak var other: PipeTransport?
    private var state = State.idle(waiting: [], hasEnded: false)

    private init(queue: DispatchQueue) {
        self.queue = queue
    }

    /// Creates two connected ends. Each is used on its own queue.
    public static func makePair(_ first: DispatchQueue, _ second: DispatchQueue) -> (PipeTransport, PipeTransport) {
        let ends = (PipeTransport(queue: first), PipeTransport(queue: second))
        ends.0.other = ends.1
        ends.1.other = ends.0
        return ends
    }

    public func start(
        onPacket: @escaping @Sendable (RawSpan) -> Void,
        onEnd: @escaping @Sendable (TransportError) -> Void
    ) {
        // Runs on the queue to keep the order, and so that no callback runs inside `start`.
        queue.async { self.begin(onPacket, onEnd) }
    }

    private func begin(
        _ onPacket: @escaping @Sendable (RawSpan) -> Void,
        _ onEnd: @escaping @Sendable (TransportError) -> Void
    ) {
        guard case .idle(let waiting, let hasEnded) = state else { return }
        state = .started(onPacket: onPacket, onEnd: onEnd)
        for bytes in waiting { receive(bytes) }
        if hasEnded { receiveEnd() }
    }

    public func send(_ packet: RawSpan) {
        if case .closed = state { return }
        guard let other else { return }
        let bytes = [UInt8](copying: packet)
        other.queue.async { other.receive(bytes) }
    }

    public func close() {
        if case .closed = state { return }
        state = .closed
        guard let other else { return }
        other.queue.async { other.receiveEnd() }
    }

    private func receive(_ bytes: [UInt8]) {
        switch state {
        case .idle(let waiting, let hasEnded): state = .idle(waiting: waiting + [bytes], hasEnded: hasEnded)
        case .started(let onPacket, _): onPacket(bytes.rawSpan)
        case .closed: break
        }
    }

    private func receiveEnd() {
        switch state {
        case .idle(let waiting, _): state = .idle(waiting: waiting, hasEnded: true)
        case .started(_, let onEnd):
            state = .closed
            onEnd(.closedByPeer)
        case .closed: break
        }
    }
}
