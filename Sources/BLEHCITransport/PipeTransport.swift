import BLEByteCoding
import Dispatch

/// One end of an in-memory pipe. Packets sent at one end are received at the other, in order, on its own queue.
///
/// Packets that arrive before an end is started wait until it starts.
public final class PipeTransport: Transport {
    /// The receiver at one end of the pipe. Its methods are called on its queue.
    private final class Receiver: Sendable {
        private enum Phase {
            case idle(waiting: [[UInt8]], hasEnded: Bool)
            case started(onPacket: @Sendable (RawSpan) -> Void, onEnd: @Sendable (TransportError) -> Void)
            case closed
        }

        private final class State {
            var phase = Phase.idle(waiting: [], hasEnded: false)
        }

        let queue: DispatchQueue
        private let state: LoopConfined<State>

        init(queue: DispatchQueue) {
            self.queue = queue
            state = LoopConfined(State(), to: queue)
        }

        var isClosed: Bool { if case .closed = state.value.phase { true } else { false } }

        func start(
            _ onPacket: @escaping @Sendable (RawSpan) -> Void,
            _ onEnd: @escaping @Sendable (TransportError) -> Void
        ) {
            guard case .idle(let waiting, let hasEnded) = state.value.phase else { return }
            state.value.phase = .started(onPacket: onPacket, onEnd: onEnd)
            for bytes in waiting { receive(bytes) }
            if hasEnded { receiveEnd() }
        }

        func receive(_ bytes: [UInt8]) {
            let state = state.value
            switch state.phase {
            case .idle(let waiting, let hasEnded): state.phase = .idle(waiting: waiting + [bytes], hasEnded: hasEnded)
            case .started(let onPacket, _): onPacket(bytes.rawSpan)
            case .closed: break
            }
        }

        func receiveEnd() {
            let state = state.value
            switch state.phase {
            case .idle(let waiting, _): state.phase = .idle(waiting: waiting, hasEnded: true)
            case .started(_, let onEnd):
                state.phase = .closed
                onEnd(.closedByPeer)
            case .closed: break
            }
        }

        func close() {
            state.value.phase = .closed
        }
    }

    private let own: Receiver
    /// The receiver at the other end, which lives as long as its transport.
    private weak let other: Receiver?

    private init(_ own: Receiver, other: Receiver) {
        self.own = own
        self.other = other
    }

    /// Ends the pipe, as the end of a process ends its sockets.
    deinit {
        guard let other else { return }
        other.queue.async { other.receiveEnd() }
    }

    /// Creates two connected ends. Each is used on its own queue.
    public static func makePair(_ first: DispatchQueue, _ second: DispatchQueue) -> (PipeTransport, PipeTransport) {
        let (one, other) = (Receiver(queue: first), Receiver(queue: second))
        return (PipeTransport(one, other: other), PipeTransport(other, other: one))
    }

    public func start(
        onPacket: @escaping @Sendable (RawSpan) -> Void,
        onEnd: @escaping @Sendable (TransportError) -> Void
    ) {
        // Runs on the queue to keep the order, and so that no callback runs inside `start`.
        own.queue.async { [self] in own.start(onPacket, onEnd) }
    }

    public func send(_ packet: RawSpan) {
        guard !own.isClosed, let other else { return }
        let bytes = [UInt8](copying: packet)
        other.queue.async { other.receive(bytes) }
    }

    public func close() {
        guard !own.isClosed else { return }
        own.close()
        guard let other else { return }
        other.queue.async { other.receiveEnd() }
    }
}
