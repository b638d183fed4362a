import Foundation

/// What a stream of a channel has been through, and what its delegate is still to be told.
///
/// Readiness is told once, and again only after the app has read or written, as on Apple's platforms.
struct StreamEvents {
    enum Phase {
        case notOpen
        case open
        /// The end was met: an error, or nothing more to come.
        case ended(EngineError?)
        case closed
    }

    var phase = Phase.notOpen
    private(set) var pending: Stream.Event = []
    private var isReadinessTold = false

    var status: Stream.Status {
        switch phase {
        case .notOpen: .notOpen
        case .open: .open
        case .ended(nil): .atEnd
        case .ended: .error
        case .closed: .closed
        }
    }

    var isOpen: Bool { if case .open = phase { true } else { false } }

    mutating func open() {
        guard case .notOpen = phase else { return }
        phase = .open
        pending.insert(.openCompleted)
    }

    mutating func close() {
        phase = .closed
        pending = []
    }

    /// The app may read or write; it is told so unless it was and has done neither since.
    mutating func becomeReady(_ event: Stream.Event) {
        guard isOpen, !isReadinessTold else { return }
        isReadinessTold = true
        pending.insert(event)
    }

    /// The app has read or written.
    mutating func used(_ event: Stream.Event) {
        isReadinessTold = false
        pending.remove(event)
    }

    mutating func end(_ end: ChannelPipe.End) {
        guard isOpen else { return }
        switch end {
        case .closed:
            phase = .ended(nil)
            pending.insert(.endEncountered)
        case .failed(let error):
            phase = .ended(error)
            pending.insert(.errorOccurred)
        }
    }

    /// The events to be told now, in their order.
    mutating func takePending() -> [Stream.Event] {
        let order: [Stream.Event] = [
            .openCompleted, .hasBytesAvailable, .hasSpaceAvailable, .errorOccurred, .endEncountered,
        ]
        defer { pending = [] }
        return order.filter(pending.contains)
    }
}
