import BLEByteCoding
import Dispatch
import Synchronization

@testable import BLEHCITransport

/// Starts a transport on a queue, and gives a test its deliveries in order.
final class Probe: Sendable {
    enum Event: Equatable {
        case packet([UInt8])
        case ended(TransportError)
    }

    let queue: DispatchQueue
    let transport: any Transport
    /// The number of delivered packets.
    let packetCount = Atomic(0)
    private let events: AsyncStream<Event>
    private let continuation: AsyncStream<Event>.Continuation

    init(_ transport: any Transport, on queue: DispatchQueue) {
        self.queue = queue
        self.transport = transport
        let (events, continuation) = AsyncStream<Event>.makeStream()
        self.events = events
        self.continuation = continuation
        queue.async {
            transport.start(
                onPacket: { packet in
                    self.packetCount.add(1, ordering: .relaxed)
                    continuation.yield(.packet([UInt8](copying: packet)))
                },
                onEnd: { continuation.yield(.ended($0)) }
            )
        }
    }

    /// Connects to a listener.
    ///
    /// - Returns: both ends.
    static func connected(
        to listener: Listener,
        options: TransportOptions = TransportOptions()
    ) async throws -> (Probe, Peer) {
        let queue = DispatchQueue(label: "probe")
        async let peer = listener.accept()
        let transport = try await listener.specification.open(on: queue, options: options)
        return (Probe(transport, on: queue), await peer)
    }

    func next() async -> Event? {
        for await event in events { return event }
        return nil
    }

    func next(_ count: Int) async -> [Event] {
        var all: [Event] = []
        for await event in events {
            all.append(event)
            if all.count == count { break }
        }
        return all
    }

    /// Ends the sequence of events after the work on the queue, and returns the events that were not read.
    func remaining() async -> [Event] {
        await perform { [continuation] _ in continuation.finish() }
        var all: [Event] = []
        for await event in events { all.append(event) }
        return all
    }

    /// Runs `body` with the transport on its queue, and waits for the end.
    func perform(_ body: @escaping @Sendable (any Transport) -> Void) async {
        await withCheckedContinuation { continuation in
            queue.async {
                body(self.transport)
                continuation.resume()
            }
        }
    }

    func send(_ packets: [[UInt8]]) async {
        await perform { transport in
            for packet in packets { transport.send(packet) }
        }
    }
}

extension Transport {
    func send(_ packet: [UInt8]) {
        send(packet.rawSpan)
    }
}

/// Packets of every type that a controller sends.
enum Sample {
    static let commandComplete: [UInt8] = [0x04, 0x0E, 0x04, 0x01, 0x03, 0x0C, 0x00]
    static let advertisingReport: [UInt8] = [
        0x04, 0x3E, 0x0F, 0x02, 0x01, 0x00, 0x01, 0x9A, 0x78, 0x56, 0x34, 0x12, 0xF0, 0x03, 0x02, 0x01, 0x06, 0xC4,
    ]
    static let acl: [UInt8] = [0x02, 0x40, 0x20, 0x07, 0x00, 0x03, 0x00, 0x04, 0x00, 0x0A, 0x03, 0x00]
    static let synchronous: [UInt8] = [0x03, 0x41, 0x00, 0x03, 0x11, 0x22, 0x33]
    static let iso: [UInt8] = [0x05, 0x60, 0x00, 0x02, 0x00, 0xAA, 0xBB]
    static let emptyEvent: [UInt8] = [0x04, 0x10, 0x00]
    static let all = [commandComplete, advertisingReport, acl, synchronous, iso, emptyEvent]
    static let reset: [UInt8] = [0x01, 0x03, 0x0C, 0x00]
}
