import Foundation

/// The shared state of the two streams of a channel: the received bytes, whether there is space to send, and how the
/// channel has ended.
///
/// The channel closes when both streams are closed, or when both are released.
final class ChannelPipe: @unchecked Sendable {
    // @unchecked: the variables are used under the lock of `condition` only, which the compiler cannot check.

    enum End {
        case closed
        case failed(BackendError)
    }

    /// The state that several threads use.
    struct State {
        var received = ReceivedBytes()
        var hasRoom = true
        var end: End?
        fileprivate var isInputClosed = false
        fileprivate var isOutputClosed = false
    }

    /// Signaled on each change. The state of the pipe and of the streams is used under its lock only.
    let condition = NSCondition()
    var state = State()
    private let backend: any ChannelBackend
    weak var input: ChannelDirection?
    weak var output: ChannelDirection?

    init(_ backend: any ChannelBackend) {
        self.backend = backend
    }

    /// Begins to receive the backend's events.
    func start() {
        backend.start { [weak self] event in self?.take(event) }
    }

    deinit {
        backend.close()
    }

    private func take(_ event: ChannelEvent) {
        condition.lock()
        switch event {
        case .received(let octets): state.received.append(octets)
        case .readyToSend: state.hasRoom = true
        case .closed(let error): state.end = error.map { .failed($0) } ?? .closed
        }
        let (input, output) = (input, output)
        input?.noteChange()
        output?.noteChange()
        condition.broadcast()
        condition.unlock()
    }

    // MARK: Under the lock

    /// Sends as many bytes as there is space for, and returns their number.
    func send(_ octets: UnsafeBufferPointer<UInt8>) -> Int {
        let (count, hasRoom) = unsafe backend.send(octets)
        state.hasRoom = hasRoom
        return count
    }

    func consumed(_ count: Int) {
        backend.consumed(count)
    }

    func close(_ direction: ChannelDirection.Kind) {
        switch direction {
        case .input: state.isInputClosed = true
        case .output: state.isOutputClosed = true
        }
        if state.isInputClosed, state.isOutputClosed { backend.close() }
    }
}

/// Received bytes that the app has not read, in pieces.
///
/// Each array takes memory in addition to its bytes, and a peer may send SDUs of one byte. So short SDUs share a piece.
struct ReceivedBytes {
    /// Bytes are added to the last piece while it has fewer bytes than this.
    private static let joinedLength = 1024

    private var pieces: [[UInt8]] = []
    /// The number of pieces at the front that have been read.
    private var first = 0
    /// The number of bytes of the first piece that have been read.
    private var offset = 0

    /// The number of pieces that have not been read to their end.
    var pieceCount: Int { pieces.count - first }

    var isEmpty: Bool { pieceCount == 0 }

    /// Adds the bytes of an SDU.
    mutating func append(_ octets: [UInt8]) {
        guard !octets.isEmpty else { return }
        let last = pieces.count - 1
        if !isEmpty, pieces[last].count < ReceivedBytes.joinedLength {
            pieces[last] += octets
        } else {
            pieces.append(octets)
        }
    }

    /// Moves as many bytes as are available and fit, and returns their number.
    mutating func read(into buffer: UnsafeMutableBufferPointer<UInt8>) -> Int {
        var count = 0
        while count < buffer.count, !isEmpty {
            let rest = pieces[first][offset...].prefix(buffer.count - count)
            count = unsafe buffer[count...].initialize(fromContentsOf: rest)
            advance(rest.count)
        }
        return count
    }

    /// Removes and returns the rest of the first piece.
    mutating func takeFirst() -> [UInt8] {
        guard !isEmpty else { return [] }
        let rest = Array(pieces[first][offset...])
        advance(rest.count)
        return rest
    }

    private mutating func advance(_ count: Int) {
        offset += count
        guard offset == pieces[first].count else { return }
        pieces[first] = []
        first += 1
        offset = 0
        if first > 32, first * 2 > pieces.count {
            pieces.removeFirst(first)
            first = 0
        }
    }
}

extension ChannelStreams {
    /// Creates the streams of a channel.
    init(_ backend: any ChannelBackend) {
        let pipe = ChannelPipe(backend)
        let input = ChannelInputStream(pipe)
        let output = ChannelOutputStream(pipe)
        pipe.input = input.direction
        pipe.output = output.direction
        self.init(input: input, output: output)
        pipe.start()
    }
}
