import Foundation

/// The phase of a channel's stream, and the events that its delegate has not received yet.
///
/// Readiness is reported once, and again only after the app has read or written, as on Apple's platforms.
struct StreamEvents {
    enum Phase {
        case notOpen
        case open
        /// The end was reached: an error, or no more bytes.
        case ended(BackendError?)
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

    /// Reports that the app may read or write, unless that was reported and the app has done neither since.
    mutating func becomeReady(_ event: Stream.Event) {
        guard isOpen, !isReadinessTold else { return }
        isReadinessTold = true
        pending.insert(event)
    }

    /// Notes that the app has read or written.
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

    /// The order in which pending events are reported.
    static let order: [Stream.Event] = [
        .openCompleted, .hasBytesAvailable, .hasSpaceAvailable, .errorOccurred, .endEncountered,
    ]

    /// Removes an event that is reported now. Returns whether it was pending.
    mutating func take(_ event: Stream.Event) -> Bool { pending.remove(event) != nil }
}
