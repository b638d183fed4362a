import Foundation

/// One direction of a channel: the part of its stream that does not read or write.
///
/// The events are used under the lock of the channel's pipe only.
final class ChannelDirection {
    enum Kind {
        case input
        case output
    }

    let pipe: ChannelPipe
    let runLoops = StreamSchedule()
    var events = StreamEvents()
    /// The stream that the delegate is called with.
    weak var stream: Stream?
    private let kind: Kind
    private weak var streamDelegate: (any StreamDelegate)?

    init(_ kind: Kind, of pipe: ChannelPipe) {
        self.kind = kind
        self.pipe = pipe
        runLoops.perform = { [weak self] in self?.callDelegate() }
    }

    func locked<Value>(_ body: () throws -> Value) rethrows -> Value {
        pipe.condition.lock()
        defer { pipe.condition.unlock() }
        return try body()
    }

    // MARK: Of the stream

    var delegate: (any StreamDelegate)? {
        get { locked { streamDelegate } }
        set {
            locked { streamDelegate = newValue }
            runLoops.signal()
        }
    }

    var status: Stream.Status { locked { events.status } }

    var error: (any Error)? {
        locked { if case .ended(let error?) = events.phase { error.error } else { nil } }
    }

    func open() {
        locked {
            events.open()
            noteChange()
        }
    }

    func close() {
        locked {
            events.close()
            pipe.close(kind)
            pipe.condition.broadcast()
        }
    }

    // MARK: Under the lock

    /// Notes that the app has read or written.
    func used() {
        events.used(readiness)
        noteChange()
    }

    /// Notes the events that the delegate is to receive.
    func noteChange() {
        // Received bytes are read before the end of the channel is reported. Nothing is sent after the end.
        let isReady =
            switch kind {
            case .input: !pipe.state.received.isEmpty
            case .output: pipe.state.hasRoom && pipe.state.end == nil
            }
        if isReady {
            events.becomeReady(readiness)
        } else if let end = pipe.state.end {
            events.end(end)
        }
        if !events.pending.isEmpty { runLoops.signal() }
    }

    private var readiness: Stream.Event {
        switch kind {
        case .input: .hasBytesAvailable
        case .output: .hasSpaceAvailable
        }
    }

    // MARK: On the run loop

    /// Calls the delegate with each event that is pending now.
    ///
    /// A call may close the stream, remove it from its run loop, or set another delegate. So each event is taken just
    /// before its call. Events that arrive during the calls wait for the next turn of the run loop.
    private func callDelegate() {
        let due = locked { events.pending }
        for event in StreamEvents.order where due.contains(event) {
            guard let stream, !runLoops.isEmpty, let delegate = take(event) else { continue }
            delegate.stream(stream, handle: event)
        }
    }

    /// Takes an event if it is still pending.
    ///
    /// - Returns: the delegate to call; nil if the event is not pending. Without a delegate, the event stays pending.
    private func take(_ event: Stream.Event) -> (any StreamDelegate)? {
        locked { () -> (any StreamDelegate)? in
            guard let delegate = streamDelegate, events.take(event) else { return nil }
            return delegate
        }
    }
}
