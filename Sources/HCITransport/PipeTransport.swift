import ByteCoding
import Dispatch

/// One end of a pipe in memory: what one end sends, the other receives, in order, on its own queue.
public final class PipeTransport: Transport, @unchecked Sendable {
    private let queue: DispatchQueue
    private weak var other: PipeTransport?
    private var onPacket: (@Sendable (RawSpan) -> Void)?
    private var onEnd: (@Sendable (TransportError) -> Void)?

    private init(queue: DispatchQueue) {
        self.queue = queue
    }

    /// Makes two ends that are joined; each is used on its own queue.
    public static func makePair(_ first: DispatchQueue, _ second: DispatchQueue) -> (PipeTransport, PipeTransport) {
        let ends = (PipeTransport(queue: first), PipeTransport(queue: second))
        ends.0.other = ends.1
        ends.1.other = ends.0
        return ends
    }

    public func start(
        onPacket: @escaping @Sendable (RawSpan) -> Void, onEnd: @escaping @Sendable (TransportError) -> Void
    ) {
        self.onPacket = onPacket
        self.onEnd = onEnd
    }

    public func send(_ packet: RawSpan) {
        guard let other else { return }
        let bytes = [UInt8](copying: packet)
        other.queue.async { other.onPacket?(bytes.rawSpan) }
    }

    public func close() {
        onPacket = nil
        onEnd = nil
        guard let other else { return }
        self.other = nil
        other.queue.async {
            let onEnd = other.onEnd
            other.onPacket = nil
            other.onEnd = nil
            onEnd?(.closedByPeer)
        }
    }
}
