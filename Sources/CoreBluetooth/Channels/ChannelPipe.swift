import Foundation

/// What the two streams of a channel share: the octets that have come, whether there is room for more to go, and how the
/// channel has ended.
///
/// The channel is closed when both streams are, or when neither is kept any more.
final class ChannelPipe: @unchecked Sendable {
    // @unchecked: the variables are used under the lock of `condition` only; the compiler knows no condition.

    enum End {
        case closed
        case failed(EngineError)
    }

    /// What changes while several threads look.
    struct State {
        var received = ReceivedOctets()
        var hasRoom = true
        var end: End?
        fileprivate var isInputClosed = false
        fileprivate var isOutputClosed = false
    }

    /// Signalled on each change. The state, and those of the streams, are used under its lock only.
    let condition = NSCondition()
    var state = State()
    private let engine: any ChannelEngine
    weak var input: ChannelDirection?
    weak var output: ChannelDirection?

    init(_ engine: any ChannelEngine) {
        self.engine = engine
    }

    /// Begins to take what the engine says.
    func start() {
        engine.start { [weak self] event in self?.take(event) }
    }

    deinit {
        engine.close()
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

    /// Sends as many octets as there is room for, and says how many.
    func send(_ octets: UnsafeBufferPointer<UInt8>) -> Int {
        let count = engine.send(octets)
        state.hasRoom = count == octets.count
        return count
    }

    func consumed(_ count: Int) {
        engine.consumed(count)
    }

    func close(_ direction: ChannelDirection.Kind) {
        switch direction {
        case .input: state.isInputClosed = true
        case .output: state.isOutputClosed = true
        }
        if state.isInputClosed, state.isOutputClosed { engine.close() }
    }
}

/// Octets that have come and were not read, in the pieces in which they came.
struct ReceivedOctets {
    private var pieces: [[UInt8]] = []
    /// How many pieces at the front are gone.
    private var first = 0
    /// How many octets of the first piece are gone.
    private var offset = 0

    var isEmpty: Bool { first == pieces.count }

    mutating func append(_ octets: [UInt8]) {
        if !octets.isEmpty { pieces.append(octets) }
    }

    /// Moves as many octets as there are and as fit, and says how many.
    mutating func read(into buffer: UnsafeMutableBufferPointer<UInt8>) -> Int {
        var count = 0
        while count < buffer.count, !isEmpty {
            let rest = pieces[first][offset...].prefix(buffer.count - count)
            count = buffer[count...].initialize(fromContentsOf: rest)
            advance(rest.count)
        }
        return count
    }

    /// Takes the rest of the first piece.
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
    /// The streams of a channel.
    init(_ engine: any ChannelEngine) {
        let pipe = ChannelPipe(engine)
        let input = ChannelInputStream(pipe)
        let output = ChannelOutputStream(pipe)
        pipe.input = input.direction
        pipe.output = output.direction
        self.init(input: input, output: output)
        pipe.start()
    }
}
