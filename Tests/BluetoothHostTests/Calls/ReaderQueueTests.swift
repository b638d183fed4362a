import BLEGATT
import BluetoothTesting
import BluetoothTypes
import Synchronization
import Testing

@testable import BluetoothHost

/// What happened, in order.
private final class History: Sendable {
    private let events = Mutex<[String]>([])

    var all: [String] { events.withLock { $0 } }

    func add(_ event: String) {
        events.withLock { $0.append(event) }
    }
}

private final class FakeReaders: WakingReaders {
    private let name: String
    private let history: History
    private let onWake: @Sendable () -> Void

    init(_ name: String, _ history: History, onWake: @escaping @Sendable () -> Void = {}) {
        self.name = name
        self.history = history
        self.onWake = onWake
    }

    func wake() {
        history.add(name)
        onWake()
    }
}

@Suite("Readers of sequences")
struct ReaderQueueTests {
    private let loop = SimulatedEventLoop()
    private let history = History()
    private let queue: ReaderQueue

    init() {
        queue = ReaderQueue(loop: loop)
    }

    @Test("They are woken in their order, at the end of the turn")
    func wokenAtTheEndOfTheTurn() {
        loop.execute { [queue, history] in
            for name in ["a", "b"] { queue.wakeLater(FakeReaders(name, history)) }
            history.add("packets")
        }
        loop.execute { [history] in history.add("later packets") }
        loop.run(for: .zero)
        #expect(history.all == ["packets", "later packets", "a", "b"])
        loop.execute { [queue, history] in queue.wakeLater(FakeReaders("c", history)) }
        loop.run(for: .zero)
        #expect(history.all.last == "c")
    }

    @Test("They are woken before a call ends, and only once")
    func wokenBeforeACallEnds() async {
        let table = CallTable(queue)
        let call = table.reserve(.other)
        _ = await CallContinuation.wait { continuation in
            #expect(table.begin(call, continuation))
            queue.wakeLater(FakeReaders("reader", history))
            #expect(history.all == [])
            table.end(call, .success)
            #expect(history.all == ["reader"])
        }
        loop.run(for: .zero)
        #expect(history.all == ["reader"])
    }

    @Test("Readers that are queued while others are woken are woken too")
    func queuedDuringAWakeUp() {
        loop.execute { [queue, history] in
            queue.wakeLater(FakeReaders("a", history) { queue.wakeLater(FakeReaders("b", history)) })
        }
        loop.run(for: .zero)
        #expect(history.all == ["a", "b"])
    }

    @Test("They are woken before the outcome of a procedure, and before a closure of an app")
    func wokenBeforeOutcomesAndClosures() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect()
        let host = fixture.host
        let link = try fixture.link()
        let read = fixture.start { try await host.perform(ReadValue(handle: 0x0005), on: link) }

        // The end of the turn comes after all three actions.
        fixture.loop.execute { [history] in host.readers.wakeLater(FakeReaders("reader", history)) }
        fixture.controller.emit(HostFixture.acl([0x0B, 0x07]))
        fixture.loop.execute { [history] in history.add("response") }
        fixture.loop.run(for: .milliseconds(1))
        #expect(try read.all.first?.get() == [0x07])
        #expect(history.all == ["reader", "response"])

        fixture.loop.execute { [history] in
            host.readers.wakeLater(FakeReaders("later reader", history))
            host.begin { host in
                host.beginWriteWithoutResponse([1], to: 0x0003, on: link) { _ in history.add("closure") }
            }
        }
        fixture.loop.run(for: .milliseconds(1))
        #expect(history.all == ["reader", "response", "later reader", "closure"])
    }
}
