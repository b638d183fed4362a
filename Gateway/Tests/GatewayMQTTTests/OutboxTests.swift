import Foundation
import Logging
import Testing

@testable import GatewayMQTT

/// Messages that wait for a broker.
struct OutboxTests {
    private let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })

    private func withStore(_ body: (String) throws -> Void) throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "outbox-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        try body(directory.appending(path: "mqtt.sqlite").path)
    }

    private func outbox(_ path: String?, limit: Int = 100_000) throws -> Outbox {
        var outbox = Outbox(limit: limit, logger: logger)
        if let path { outbox.use(try MessageStore(path: path)) }
        return outbox
    }

    /// A broker that confirms each message at once, or not at all.
    private struct Broker {
        var received: [String] = []
        private var last: Int32 = 0
        private var unconfirmed: [Int32] = []

        mutating func receive(from outbox: inout Outbox, confirms: Bool = true) {
            repeat {
                unconfirmed = []
                var received: [String] = []
                var last = last
                var numbers: [Int32] = []
                outbox.sendAll { message in
                    last += 1
                    received.append(message.payload)
                    numbers.append(last)
                    return last
                }
                self.last = last
                self.received += received
                unconfirmed = numbers
                if confirms { for number in numbers { outbox.confirm(number) } }
            } while confirms && !unconfirmed.isEmpty
        }
    }

    private func message(_ number: Int) -> MQTTMessage { MQTTMessage(topic: "t", payload: "\(number)") }

    @Test func messagesThatWaitedInTheStoreComeBeforeLaterOnes() throws {
        try withStore { path in
            var outbox = try outbox(path)
            var broker = Broker()
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
            #expect(try MessageStore(path: path).count == 0)
        }
    }

    @Test func storedMessagesThatWereNotConfirmedOutliveTheProcess() throws {
        try withStore { path in
            var first = try outbox(path)
            for number in 0..<200 { first.append(message(number), isConnected: false) }
            var broker = Broker()
            broker.receive(from: &first, confirms: false)
            #expect(broker.received.count == Outbox.window)
            var second = try outbox(path)
            #expect(second.count == 200)
            var other = Broker()
            other.receive(from: &second)
            #expect(other.received == (0..<200).map { "\($0)" })
        }
    }

    @Test func oldestMessagesAreDroppedBeyondTheLimit() throws {
        try withStore { path in
            var outbox = try outbox(path, limit: 1000)
            for number in 0..<5000 { outbox.append(message(number), isConnected: false) }
            #expect(outbox.count <= 1000 && outbox.count > 900)
            #expect(outbox.droppedCount == UInt64(5000 - outbox.count))
            let count = outbox.count
            var broker = Broker()
            broker.receive(from: &outbox)
            #expect(broker.received == (5000 - count..<5000).map { "\($0)" })
        }
    }

    @Test func withoutStoreTheMemoryIsBounded() throws {
        var outbox = try outbox(nil)
        for number in 0..<Outbox.memoryLimit + 10 { outbox.append(message(number), isConnected: false) }
        #expect(outbox.count == Outbox.memoryLimit)
        #expect(outbox.droppedCount == 10)
        var broker = Broker()
        broker.receive(from: &outbox)
        #expect(broker.received.first == "10")
    }

    @Test func messageThatTheConnectionDoesNotTakeStaysFirst() throws {
        var outbox = try outbox(nil)
        for number in 0..<3 { outbox.append(message(number), isConnected: true) }
        outbox.sendAll { _ in nil }
        #expect(outbox.count == 3)
        var broker = Broker()
        broker.receive(from: &outbox)
        #expect(broker.received == ["0", "1", "2"])
    }

    @Test func aStoreThatFailsLeavesMessagesInMemory() throws {
        try withStore { path in
            var outbox = try outbox(path)
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
