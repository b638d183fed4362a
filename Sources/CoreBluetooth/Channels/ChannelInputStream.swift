import Foundation

/// The stream of the bytes that the peer of a channel sends.
///
/// Reading blocks until bytes arrive, like reading from a socket's stream. Bytes that arrived before the channel's end
/// are read first.
@safe final class ChannelInputStream: InputStream {
    let direction: ChannelDirection
    /// The memory that ``getBuffer(_:length:)`` returned last. It is valid until the next call, and freed only once.
    private var lent: UnsafeMutableBufferPointer<UInt8>?

    init(_ pipe: ChannelPipe) {
        direction = ChannelDirection(.input, of: pipe)
        super.init(data: Data())
        direction.stream = self
    }

    deinit {
        unsafe lent?.deallocate()
    }

    // MARK: Stream

    override var delegate: (any StreamDelegate)? {
        get { direction.delegate }
        set { direction.delegate = newValue }
    }

    override var streamStatus: Stream.Status { direction.status }

    override var streamError: (any Error)? { direction.error }

    override func open() { direction.open() }

    override func close() { direction.close() }

    override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { direction.runLoops.add(aRunLoop, mode) }

    override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        direction.runLoops.remove(aRunLoop, mode)
    }

    override func property(forKey key: Stream.PropertyKey) -> AnyObject? { nil }

    override func setProperty(_ property: AnyObject?, forKey key: Stream.PropertyKey) -> Bool { false }

    // MARK: InputStream

    override var hasBytesAvailable: Bool {
        direction.locked { direction.events.isOpen && !direction.pipe.state.received.isEmpty }
    }

    /// - Returns: the number of bytes read; 0 at the end; -1 if the stream is not open or has failed.
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
        guard len > 0 else { return 0 }
        return direction.locked {
            guard waitForBytes() else { return atEnd }
            let memory = unsafe UnsafeMutableBufferPointer(start: buffer, count: len)
            let count = unsafe direction.pipe.state.received.read(into: memory)
            hasRead(count)
            return count
        }
    }

    /// Lends received bytes until the next call.
    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>,
        length len: UnsafeMutablePointer<Int>
    ) -> Bool {
        direction.locked {
            guard direction.events.isOpen, !direction.pipe.state.received.isEmpty else { return false }
            let octets = direction.pipe.state.received.takeFirst()
            let memory = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: octets.count)
            _ = unsafe memory.initialize(fromContentsOf: octets)
            unsafe lent?.deallocate()
            unsafe lent = memory
            unsafe buffer.pointee = memory.baseAddress
            unsafe len.pointee = octets.count
            hasRead(octets.count)
            return true
        }
    }

    // MARK: Under the lock

    /// Waits for bytes to read. Returns false if none will arrive.
    private func waitForBytes() -> Bool {
        while direction.events.isOpen {
            if !direction.pipe.state.received.isEmpty { return true }
            direction.pipe.condition.wait()
        }
        return false
    }

    /// The result of a read if no bytes will arrive.
    private var atEnd: Int { if case .ended(nil) = direction.events.phase { 0 } else { -1 } }

    private func hasRead(_ count: Int) {
        direction.pipe.consumed(count)
        direction.used()
    }
}
