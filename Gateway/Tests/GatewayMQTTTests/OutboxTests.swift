import Foundation
import GatewayTestSupport
import Logging
import Synchronization
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

    @Test func messagesThatAreAppendedTogetherKeepTheirOrder() throws {
        try withStore { path in
            var outbox = makeOutbox(path)
            outbox.append((0..<100).map(message), isConnected: true)
            outbox.append((100..<700).map(message), isConnected: true)
            // Some are ready, the others are stored, and later ones follow these.
            let storedCount = try MessageStore(path: path).initialCount
            #expect(storedCount == 700 - Outbox.readyLimit)
            outbox.append((700..<710).map(message), isConnected: true)
            var broker = TestBroker()
            broker.receive(from: &outbox)
            #expect(broker.received == (0..<710).map { "\($0)" })
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

    /// An outbox whose messages are dropped after 100 seconds, at a time.
    private func makeAgeingOutbox(_ path: String, now: Int64) -> Outbox {
        var outbox = Outbox(limit: 1000, ageLimit: 100, now: { now }, logger: logger)
        outbox.useStore(at: path)
        return outbox
    }

    @Test func storedMessagesThatAreTooOldAreDropped() throws {
        try withStore { path in
            let start = StoreClock.earliestTime
            for (offset, number) in [(0, 0), (0, 1), (60, 2), (170, 3)] {
                var outbox = makeAgeingOutbox(path, now: start + Int64(offset))
                outbox.append(message(number), isConnected: false)
            }
            var outbox = makeAgeingOutbox(path, now: start + 160)
            var broker = TestBroker()
            broker.receive(from: &outbox)
            #expect(broker.received == ["2", "3"])
            #expect(outbox.droppedCount == 2)
            #expect(outbox.count == 0)
            let storedCount = try MessageStore(path: path).initialCount
            #expect(storedCount == 0)
        }
    }

    @Test(arguments: [(-50_000_000, 0), (0, -50_000_000), (-50_000_000, -40_000_000)] as [(Int64, Int64)])
    func clockThatIsNotSetMakesNoMessageTooOld(stored: Int64, sent: Int64) throws {
        try withStore { path in
            var first = makeAgeingOutbox(path, now: StoreClock.earliestTime + stored)
            first.append(message(0), isConnected: false)
            var second = makeAgeingOutbox(path, now: StoreClock.earliestTime + sent)
            var broker = TestBroker()
            broker.receive(from: &second)
            #expect(broker.received == ["0"])
        }
    }

    /// A machine without a battery for its clock: the clock is that of the last shutdown until the network is there.
    @Test(arguments: [false, true])
    func clockThatIsSetForwardMakesNoMessageOfThisRunTooOld(isRestarted: Bool) throws {
        try withStore { path in
            let start = StoreClock.earliestTime
            var earlier = makeAgeingOutbox(path, now: start)
            earlier.append(message(0), isConnected: false)
            let isSet = Atomic(false)
            func makeOutbox(at uptime: Int64) -> Outbox {
                var outbox = Outbox(
                    limit: 1000,
                    ageLimit: 100,
                    now: { start + 10 + uptime + (isSet.load(ordering: .relaxed) ? 1_000_000 : 0) },
                    uptime: { uptime },
                    logger: logger
                )
                outbox.useStore(at: path)
                return outbox
            }
            var outbox = makeOutbox(at: 0)
            outbox.append(message(1), isConnected: false)
            isSet.store(true, ordering: .relaxed)
            outbox.append(message(2), isConnected: false)
            if isRestarted { outbox = makeOutbox(at: 90) }
            var broker = TestBroker()
            broker.receive(from: &outbox)
            // The message of the earlier run is as old as it looks.
            #expect(broker.received == ["1", "2"])
            #expect(outbox.droppedCount == 1)
        }
    }

    @Test func messageWhoseTimeCannotBeCorrectedIsNotDropped() throws {
        try withStore { path in
            let isSet = Atomic(false)
            var outbox = Outbox(
                limit: 1000,
                ageLimit: 100,
                now: { StoreClock.earliestTime + (isSet.load(ordering: .relaxed) ? 1_000_000 : 0) },
                uptime: { 0 },
                logger: logger
            )
            outbox.useStore(at: path)
            outbox.append(message(1), isConnected: false)
            try execute(
                "CREATE TRIGGER refuse BEFORE UPDATE ON message BEGIN SELECT RAISE(ABORT, 'no space'); END",
                in: path
            )
            isSet.store(true, ordering: .relaxed)
            var broker = TestBroker()
            broker.receive(from: &outbox)
            #expect(broker.received == ["1"])
            #expect(outbox.droppedCount == 0)
        }
    }

    @Test func messagesOfThisRunAreDroppedWhenTheyAreTooOld() throws {
        try withStore { path in
            let time = Atomic<Int64>(0)
            var outbox = Outbox(
                limit: 1000,
                ageLimit: 100,
                now: { StoreClock.earliestTime + time.load(ordering: .relaxed) },
                uptime: { time.load(ordering: .relaxed) },
                logger: logger
            )
            outbox.useStore(at: path)
            for (number, seconds) in [(0, 0), (1, 60), (2, 120)] as [(Int, Int64)] {
                time.store(seconds, ordering: .relaxed)
                outbox.append(message(number), isConnected: false)
            }
            time.store(130, ordering: .relaxed)
            var broker = TestBroker()
            broker.receive(from: &outbox)
            #expect(broker.received == ["1", "2"])
        }
    }

    @Test func fileOfAnEarlierVersionIsUsed() throws {
        try withStore { path in
            try execute(
                """
                CREATE TABLE message (number INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, payload TEXT NOT NULL);
                INSERT INTO message (topic, payload) VALUES ('t', '0'), ('t', '1');
                """,
                in: path
            )
            var outbox = makeAgeingOutbox(path, now: StoreClock.earliestTime + 1_000_000)
            outbox.append(message(2), isConnected: false)
            var broker = TestBroker()
            broker.receive(from: &outbox)
            #expect(broker.received == ["0", "1", "2"])
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

    @Test(arguments: [true, false])
    func messageThatTheBrokerRefusesIsDropped(isStored: Bool) throws {
        try withStore { path in
            let log = LogRecorder()
            var outbox = Outbox(limit: 1000, logger: log.logger)
            outbox.useStore(at: path)
            for number in 0..<3 { outbox.append(message(number), isConnected: !isStored) }
            var deliveries: Int32 = 0
            outbox.sendAll { _ in
                deliveries += 1
                return deliveries == 1 ? 1 : nil
            }
            outbox.dropUnconfirmed()
            outbox.connectionLost()
            #expect(outbox.droppedCount == 1 && outbox.count == 2)
            #expect(log.lines == ["error: a message is dropped: the broker ends the connection when it receives it"])
            var next = makeOutbox(path)
            var broker = TestBroker()
            broker.receive(from: &next)
            #expect(broker.received == ["1", "2"])
        }
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
