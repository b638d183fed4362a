import Foundation

@testable import CoreBluetooth

/// A channel with a limited send buffer, which delivers the events that the test requests.
final class ScriptedChannel: ChannelBackend {
    private struct State {
        var deliver: (@Sendable (ChannelEvent) -> Void)?
        var room: Int
        var sent: [UInt8] = []
        var refusedCount = 0
        var consumed = 0
        var isClosed = false
    }

    private let state: Guarded<State>

    init(room: Int = .max) { state = Guarded(State(room: room)) }

    var sent: [UInt8] { state.withLock { $0.sent } }
    /// The number of writes that were refused because the channel had no space.
    var refusedCount: Int { state.withLock { $0.refusedCount } }
    var consumed: Int { state.withLock { $0.consumed } }
    var isClosed: Bool { state.withLock { $0.isClosed } }

    func deliver(_ event: ChannelEvent) { state.withLock { $0.deliver }?(event) }

    /// Enlarges the free space, and reports it.
    func makeRoom(_ count: Int) {
        state.withLock { $0.room += count }
        deliver(.readyToSend)
    }

    func start(_ deliver: @escaping @Sendable (ChannelEvent) -> Void) { state.withLock { $0.deliver = deliver } }

    func send(_ octets: UnsafeBufferPointer<UInt8>) -> (count: Int, hasRoom: Bool) {
        state.withLock { state -> (count: Int, hasRoom: Bool) in
            let count = min(octets.count, state.room)
            state.sent += octets.prefix(count)
            state.room -= count
            if count == 0 { state.refusedCount += 1 }
            return (count, state.room > 0)
        }
    }

    func consumed(_ count: Int) { state.withLock { $0.consumed += count } }
    func close() { state.withLock { $0.isClosed = true } }
}
