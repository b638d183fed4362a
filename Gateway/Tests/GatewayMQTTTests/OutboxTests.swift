import Foundation
import Logging
import Testing

@testable import GatewayMQTT

/// Messages that wait for a broker.
struct OutboxTests {
    private let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })

    private func makeOutbox(_ path: String?, limit: Int = 100_000) -> Outbox {
        var outbox = Outbox(limit: limit, logger: logger)
        if let path { outbox.useStore(at: path) }
        return outbox
    }

    private func message(_ number: Int) -> MQTTMessage { MQTTMessage(topic: "t", payload: "\(number)") }

    @Test func messagesThatWaitedInTheStoreComeBeforeLaterOnes() throws {
        try withStore { path in
            var outbox = makeOutbox(path)
            var broker = TestBroker()
            for number in 0..<10 { outbox.append(message(number), isConnected: true) }
            broker.receive(from: &outbox)
            for number in 10..<300 { outbox.append(message(number), isConnected: false) }
            #expect(outbox.count == 290)
            for number in 300..<400 { outbox.append(message(number), isConnected: true) }
            broker.receive(from: &outbox)
            for number in 400..<410 { outbox.append(message(number), isConnected: true) }
            broker.receive(from: &outbox)
            #expect(broker.received == (0..<410).map { "\($0)" })
            #expect(outbox.count == 0 && outbox.droppedCount == 0)
            let storedCount = try MessageStore(path: path).initialCount
            #expect(storedCount == 0)
        }
    }

    @Test func storedMessagesThatWereNotConfirmedOutliveTheProcess() throws {
        try withStore { path in
            var first = makeOutbox(path)
            for number in 0..<200 { first.append(message(number), isConnected: false) }
            var broker = TestBroker()
            broker.receive(from: &first, confirms: false)
            #expect(broker.received.count == Outbox.window)
            var second = makeOutbox(path)
            #expect(second.count == 200)
            var other = TestBroker()
            other.receive(from: &second)
            #expect(other.received == (0..<200).map { "\($0)" })
        }
    }

    @Test func oldestMessagesAreDroppedBeyondTheLimit() throws {
        try withStore { path in
            var outbox = makeOutbox(path, limit: 1000)
            for number in 0..<5000 { outbox.append(message(number), isConnected: false) }
            #expect(outbox.count <= 1000 && outbox.count > 900)
            #expect(outbox.droppedCount == UInt64(5000 - outbox.count))
            let count = outbox.count
            var broker = TestBroker()
            broker.receive(from: &outbox)
            #expect(broker.received == (5000 - count..<5000).map { "\($0)" })
        }
    }

    @Test func withoutStoreTheMemoryIsBounded() throws {
        var outbox = makeOutbox(nil)
        for number in 0..<Outbox.memoryLimit + 10 { outbox.append(message(number), isConnected: false) }
        #expect(outbox.count == Outbox.memoryLimit)
        #expect(outbox.droppedCount == 10)
        var broker = TestBroker()
        broker.receive(from: &outbox)
        #expect(broker.received.first == "10")
    }

    @Test func messageThatTheConnectionDoesNotTakeStaysFirst() throws {
        var outbox = makeOutbox(nil)
        for number in 0..<3 { outbox.append(message(number), isConnected: true) }
        outbox.sendAll { _ in nil }
        #expect(outbox.count == 3)
        var broker = TestBroker()
        broker.receive(from: &outbox)
        #expect(broker.received == ["0", "1", "2"])
    }

    @Test func aStoreThatFailsLeavesMessagesInMemory() throws {
        try withStore { path in
            var outbox = makeOutbox(path)
            outbox.append(message(0), isConnected: false)
            // Another program takes the file away from under the store.
            let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
            try handle.truncate(atOffset: 10)
            try handle.close()
            for number in 1..<100 { outbox.append(message(number), isConnected: false) }
            #expect(outbox.count >= 99)
        }
    }
}
