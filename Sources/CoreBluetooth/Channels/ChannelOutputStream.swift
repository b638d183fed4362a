import Foundation

/// What is sent to the peer of a channel.
///
/// As with a socket's stream, writing waits where there is no room at all: the peer takes no more for now.
final class ChannelOutputStream: OutputStream {
    private let pipe: ChannelPipe
    private var events = StreamEvents()
    private weak var ownDelegate: (any StreamDelegate)?
    private let runLoops = StreamSchedule()

    init(_ pipe: ChannelPipe) {
        self.pipe = pipe
        super.init(toMemory: ())
        runLoops.perform = { [weak self] in self?.tell() }
    }

    @available(*, unavailable)
    required init(toMemory: ()) {
        fatalError("a channel's stream has a channel")
    }

    private func locked<Value>(_ body: () throws -> Value) rethrows -> Value {
        pipe.condition.lock()
        defer { pipe.condition.unlock() }
        return try body()
    }

    // MARK: Stream

    override var delegate: (any StreamDelegate)? {
        get { locked { ownDelegate } }
        set {
            locked { ownDelegate = newValue }
            runLoops.signal()
        }
    }

    override var streamStatus: Stream.Status { locked { events.status } }

    override var streamError: (any Error)? {
        locked { if case .ended(let error?) = events.phase { error.error } else { nil } }
    }

    override func open() {
        locked {
            events.open()
            noteChange()
        }
    }

    override func close() {
        locked {
            events.close()
            pipe.closeOutput()
            pipe.condition.broadcast()
        }
    }

    override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        runLoops.add(aRunLoop, mode)
    }

    override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        runLoops.remove(aRunLoop, mode)
    }

    override func property(forKey key: Stream.PropertyKey) -> AnyObject? { nil }

    override func setProperty(_ property: AnyObject?, forKey key: Stream.PropertyKey) -> Bool { false }

    // MARK: OutputStream

    override var hasSpaceAvailable: Bool { locked { events.isOpen && pipe.state.hasRoom } }

    /// - Returns: how many octets were taken, at least one; -1 where the stream is not open, or the channel has ended.
    override func write(_ buffer: UnsafePointer<UInt8>, maxLength len: Int) -> Int {
        locked {
            guard events.isOpen else { return -1 }
            guard len > 0 else { return 0 }
            while events.isOpen {
                let count = pipe.state.hasRoom ? pipe.send(UnsafeBufferPointer(start: buffer, count: len)) : 0
                if count > 0 {
                    events.used(.hasSpaceAvailable)
                    noteChange()
                    return count
                }
                pipe.condition.wait()
            }
            return -1
        }
    }

    // MARK: Under the lock

    /// Sees what there is to be told.
    func noteChange() {
        if let end = pipe.state.end {
            events.end(end)
        } else if pipe.state.hasRoom {
            events.becomeReady(.hasSpaceAvailable)
        }
        if !events.pending.isEmpty { runLoops.signal() }
    }

    // MARK: On the run loop

    private func tell() {
        guard let delegate else { return }
        for event in locked({ events.takePending() }) { delegate.stream(self, handle: event) }
    }
}
