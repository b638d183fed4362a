import DequeModule
import ESPHomeProtocol
import Foundation
import Synchronization

/// The last events of a gateway, and the number of events of each kind.
///
/// Peers and clients can cause events, so everything is bounded: the number of events, the lengths of their texts, and
/// the number of subjects that are counted. An event that repeats a recent one replaces it, with a greater count.
public final class EventLog: Sendable {
    private struct Key: Hashable {
        let kind: GatewayEvent.Kind
        let subject: String
    }

    private struct State {
        /// The oldest first.
        var events: Deque<GatewayEvent> = []
        var lastNumber: UInt64 = 0
        var counts: [GatewayEvent.Kind: UInt64] = [:]
        var adapterCounts: [Key: UInt64] = [:]
    }

    /// The greatest number of events that are kept.
    public static let limit = 256
    /// The greatest number of characters of a text.
    static let textLimit = 240
    /// The number of recent events that a new one is compared with.
    static let repetitionDepth = 16
    private static let adapterCountLimit = 256

    private let state = Mutex(State())

    /// Creates a log without events.
    public init() {}

    /// Appends an event.
    ///
    /// - Parameters:
    ///   - kind: the kind of the event.
    ///   - subject: what the event is about.
    ///   - detail: the reason, or more about the subject. Control characters are escaped.
    public func record(_ kind: GatewayEvent.Kind, _ subject: String, _ detail: String? = nil) {
        let subject = subject.printable(limit: Self.textLimit)
        let detail = detail?.printable(limit: Self.textLimit)
        let time = Date()
        state.withLock { state in
            state.lastNumber += 1
            state.counts[kind, default: 0] += 1
            if kind.isAboutAdapter {
                let key = Key(kind: kind, subject: subject)
                if state.adapterCounts[key] != nil || state.adapterCounts.count < Self.adapterCountLimit {
                    state.adapterCounts[key, default: 0] += 1
                }
            }
            var event = GatewayEvent(
                number: state.lastNumber,
                time: time,
                kind: kind,
                subject: subject,
                detail: detail,
                count: 1
            )
            let repeated = state.events.indices.suffix(Self.repetitionDepth).last { index in
                let other = state.events[index]
                return other.kind == kind && other.subject == subject && other.detail == detail
            }
            if let repeated { event.count += state.events.remove(at: repeated).count }
            if state.events.count == Self.limit { state.events.removeFirst() }
            state.events.append(event)
        }
    }

    /// The events that are kept, the oldest first.
    public var events: [GatewayEvent] { state.withLock { Array($0.events) } }

    /// The number of events of a kind.
    public func count(of kind: GatewayEvent.Kind) -> UInt64 { state.withLock { $0.counts[kind] ?? 0 } }

    /// The number of events of a kind that are about an adapter.
    public func count(of kind: GatewayEvent.Kind, adapter: String) -> UInt64 {
        let key = Key(kind: kind, subject: adapter.printable(limit: Self.textLimit))
        return state.withLock { $0.adapterCounts[key] ?? 0 }
    }
}

extension GatewayEvent.Kind {
    fileprivate var isAboutAdapter: Bool {
        switch self {
        case .adapterOpened, .adapterFailed, .adapterClosed, .adapterReset, .scanRestarted: true
        default: false
        }
    }
}
