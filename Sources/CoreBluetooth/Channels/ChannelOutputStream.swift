import Foundation

/// The stream of the bytes to send to the peer of a channel.
///
/// Writing blocks while there is no space because the peer accepts no more data, like writing to a socket's stream.
final class ChannelOutputStream: OutputStream {
    let direction: ChannelDirection

    init(_ pipe: ChannelPipe) {
        direction = ChannelDirection(.output, of: pipe)
        super.init(toMemory: ())
        direction.stream = self
    }

    @available(*, unavailable)
    required init(toMemory: ()) {
        fatalError("the output stream of a channel is made from the channel, not for memory")
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

    // MARK: OutputStream

    override var hasSpaceAvailable: Bool {
        direction.locked { direction.events.isOpen && direction.pipe.state.hasRoom }
    }

    /// - Returns: the number of accepted bytes, at least 1 if `len` is positive; -1 if the stream is not open or the
    ///   channel has ended.
    override func write(_ buffer: UnsafePointer<UInt8>, maxLength len: Int) -> Int {
        let pipe = direction.pipe
        return direction.locked {
            guard direction.events.isOpen else { return -1 }
            guard len > 0 else { return 0 }
            while direction.events.isOpen {
                let count = unsafe pipe.state.hasRoom ? pipe.send(UnsafeBufferPointer(start: buffer, count: len)) : 0
                if count > 0 {
                    direction.used()
                    return count
                }
                pipe.condition.wait()
            }
            return -1
        }
    }
}
