import Foundation

/// What the peer of a channel sends.
///
/// As with a socket's stream, reading waits where nothing has come yet. What has come before the channel's end is read first.
final class ChannelInputStream: InputStream {
    private let pipe: ChannelPipe
    private var events = StreamEvents()
    private weak var ownDelegate: (any StreamDelegate)?
    /// What ``getBuffer(_:length:)`` has lent last.
    private var lent: UnsafeMutableBufferPointer<UInt8>?
    private let runLoops = StreamSchedule()

    init(_ pipe: ChannelPipe) {
        self.pipe = pipe
        super.init(data: Data())
        runLoops.perform = { [weak self] in self?.tell() }
    }

    deinit {
        lent?.deallocate()
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
            pipe.closeInput()
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

    // MARK: InputStream

    override var hasBytesAvailable: Bool { locked { events.isOpen && !pipe.state.received.isEmpty } }

    /// - Returns: how many octets were read, zero at the end; -1 where the stream is not open or has failed.
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
        guard len > 0 else { return 0 }
        return locked {
            guard waitForOctets() else { return atEnd }
            let count = pipe.state.received.read(into: UnsafeMutableBufferPointer(start: buffer, count: len))
            hasRead(count)
            return count
        }
    }

    /// Lends octets that have come, until the next call.
    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>,
        length len: UnsafeMutablePointer<Int>
    ) -> Bool {
        locked {
            guard events.isOpen, !pipe.state.received.isEmpty else { return false }
            let octets = pipe.state.received.takeFirst()
            let memory = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: octets.count)
            _ = memory.initialize(fromContentsOf: octets)
            lent?.deallocate()
            lent = memory
            buffer.pointee = memory.baseAddress
            len.pointee = octets.count
            hasRead(octets.count)
            return true
        }
    }

    // MARK: Under the lock

    /// Waits for something to read; false where there is nothing and will be nothing.
    private func waitForOctets() -> Bool {
        while events.isOpen {
            if !pipe.state.received.isEmpty { return true }
            pipe.condition.wait()
        }
        return false
    }

    /// What reading gives where nothing will come.
    private var atEnd: Int { if case .ended(nil) = events.phase { 0 } else { -1 } }

    private func hasRead(_ count: Int) {
        pipe.consumed(count)
        events.used(.hasBytesAvailable)
        noteChange()
    }

    /// Sees what there is to be told.
    func noteChange() {
        if !pipe.state.received.isEmpty {
            events.becomeReady(.hasBytesAvailable)
        } else if let end = pipe.state.end {
            events.end(end)
        }
        if !events.pending.isEmpty { runLoops.signal() }
    }

    // MARK: On the run loop

    private func tell() {
        guard let delegate else { return }
        for event in locked({ events.takePending() }) { delegate.stream(self, handle: event) }
    }
}
