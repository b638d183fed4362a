import Foundation
import GatewayTestSupport
import Logging
import Testing

@testable import GatewayMQTT

/// Messages that wait while connections are lost and stores fail.
struct OutboxFailureTests {
    private let log = LogRecorder()

    private func makeOutbox(_ path: String?, limit: Int = 100_000) -> Outbox {
        var outbox = Outbox(limit: limit, logger: log.logger)
        if let path { outbox.useStore(at: path) }
        return outbox
    }

    private func append(_ numbers: Range<Int>, to outbox: inout Outbox, isConnected: Bool) {
        for number in numbers { outbox.append(MQTTMessage(topic: "t", payload: "\(number)"), isConnected: isConnected) }
    }

    private func texts(_ numbers: Range<Int>) -> [String] { numbers.map { "\($0)" } }

    // MARK: Connections

    @Test(arguments: [true, false])
    func messagesInFlightAreSentAgainBeforeOthersAfterALoss(hasStore: Bool) throws {
        try withStore { path in
            var outbox = makeOutbox(hasStore ? path : nil)
            append(0..<100, to: &outbox, isConnected: true)
            var first = TestBroker()
            first.receive(from: &outbox, confirms: false)
            #expect(first.received == texts(0..<Outbox.window))
            outbox.connectionLost()
            append(100..<200, to: &outbox, isConnected: false)
            #expect(outbox.count == 200)
            var second = TestBroker()
            second.receive(from: &outbox)
            #expect(second.received == texts(0..<200))
            #expect(outbox.count == 0)
        }
    }

    @Test func messagesInFlightAtALossOutliveTheProcess() throws {
        try withStore { path in
            var outbox = makeOutbox(path)
            append(0..<100, to: &outbox, isConnected: true)
            var broker = TestBroker()
            broker.receive(from: &outbox, confirms: false)
            outbox.connectionLost()
            var next = makeOutbox(path)
            append(100..<110, to: &next, isConnected: true)
            var other = TestBroker()
            other.receive(from: &next)
            #expect(other.received == texts(0..<110))
        }
    }

    @Test func lossesWhileTheStoreIsReadKeepTheOrder() throws {
        try withStore { path in
            var outbox = makeOutbox(path)
            append(0..<500, to: &outbox, isConnected: false)
            var received: [String] = []
            for round in 0..<20 {
                var broker = TestBroker()
                broker.receive(from: &outbox, confirms: false)
                // Some are confirmed, not in their order; then the connection is lost.
                for number in stride(from: Int32(round % 3 + 1), through: 40, by: 2) {
                    outbox.confirm(number)
                    received.append(broker.received[Int(number) - 1])
                }
                outbox.connectionLost()
                append(500 + round..<501 + round, to: &outbox, isConnected: false)
            }
            var broker = TestBroker()
            broker.receive(from: &outbox)
            #expect(broker.received.compactMap { Int($0) } == broker.received.compactMap { Int($0) }.sorted())
            #expect((received + broker.received).compactMap { Int($0) }.sorted() == Array(0..<520))
            #expect(outbox.count == 0)
        }
    }

    @Test func messagesThatTheBrokerDoesNotConfirmAreStored() throws {
        try withStore { path in
            var outbox = makeOutbox(path)
            append(0..<10_000, to: &outbox, isConnected: true)
            #expect(outbox.droppedCount == 0)
            let storedCount = try MessageStore(path: path).initialCount
            #expect(storedCount == 10_000 - Outbox.readyLimit)
            var broker = TestBroker()
            broker.receive(from: &outbox)
            #expect(broker.received == texts(0..<10_000))
        }
    }

    @Test func confirmationOfAnUnknownMessageChangesNothing() throws {
        var outbox = makeOutbox(nil)
        append(0..<2, to: &outbox, isConnected: true)
        let isKnown = outbox.confirm(7)
        #expect(!isKnown)
        #expect(outbox.count == 2)
    }

    // MARK: Stores

    @Test func messagesThatCannotBeStoredFollowTheStoredOnes() throws {
        try withStore { path in
            var outbox = makeOutbox(path)
            append(0..<100, to: &outbox, isConnected: false)
            try execute(refuseInsertions, in: path)
            append(100..<300, to: &outbox, isConnected: false)
            #expect(outbox.storeFailure?.contains("no space") == true)
            try execute(allowInsertions, in: path)
            append(300..<400, to: &outbox, isConnected: false)
            #expect(outbox.storeFailure == nil)
            let storedCount = try MessageStore(path: path).initialCount
            #expect(storedCount == 400)
            try execute(refuseInsertions, in: path)
            append(400..<500, to: &outbox, isConnected: false)
            var broker = TestBroker()
            broker.receive(from: &outbox)
            #expect(broker.received == texts(0..<500))
        }
    }

    @Test func failureOfTheStoreIsLoggedOnceUntilItHasPassed() throws {
        try withStore { path in
            var outbox = makeOutbox(path)
            for _ in 0..<2 {
                append(0..<1, to: &outbox, isConnected: false)
                try execute(refuseInsertions, in: path)
                append(0..<100, to: &outbox, isConnected: false)
                try execute(allowInsertions, in: path)
                append(0..<100, to: &outbox, isConnected: false)
            }
            #expect(log.lines.count == 4)
            #expect(log.lines.count { $0.hasPrefix("error: messages for the broker cannot be stored") } == 2)
            #expect(log.lines.count { $0 == "notice: messages for the broker are stored again" } == 2)
        }
    }

    @Test func droppedMessagesAreLoggedOnceForEachOutage() throws {
        var outbox = makeOutbox(nil)
        for _ in 0..<2 {
            append(0..<Outbox.memoryLimit + 50, to: &outbox, isConnected: false)
            var broker = TestBroker()
            broker.receive(from: &outbox)
        }
        #expect(outbox.droppedCount == 100)
        let outage = [
            "warning: messages for the broker are dropped: more than \(Outbox.memoryLimit) wait in memory, and the oldest go first",
            "notice: all messages that waited were sent; 50 had been dropped",
        ]
        #expect(log.lines == outage + outage)
    }

    @Test func damagedFileIsSetAsideAtTheStart() throws {
        try withStore { path in
            let garbage = Data(repeating: 0x5A, count: 20_000)
            try garbage.write(to: URL(fileURLWithPath: path))
            var outbox = makeOutbox(path)
            append(0..<10, to: &outbox, isConnected: false)
            let storedCount = try MessageStore(path: path).initialCount
            #expect(storedCount == 10)
            let damaged = try Data(contentsOf: URL(fileURLWithPath: path + ".damaged"))
            #expect(damaged == garbage)
            #expect(outbox.storeFailure == nil)
            #expect(log.lines.count == 2, "\(log.lines)")
        }
    }

    @Test func storeThatIsDamagedLaterIsReplaced() throws {
        try withStore { path in
            var outbox = makeOutbox(path)
            append(0..<2000, to: &outbox, isConnected: false)
            // The pages are read from the file itself, which is no database any more.
            try execute("PRAGMA wal_checkpoint(TRUNCATE)", in: path, isTransaction: false)
            let size = try Data(contentsOf: URL(fileURLWithPath: path)).count
            let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
            try file.seek(toOffset: 4096)
            try file.write(contentsOf: Data(repeating: 0x5A, count: size - 4096))
            try file.close()
            append(2000..<2100, to: &outbox, isConnected: false)
            var broker = TestBroker()
            broker.receive(from: &outbox)
            append(2100..<2200, to: &outbox, isConnected: true)
            broker.receive(from: &outbox)
            #expect(broker.received.suffix(100) == texts(2100..<2200)[...])
            #expect(outbox.count == 0)
            #expect(outbox.droppedCount > 0)
            #expect(FileManager.default.fileExists(atPath: path + ".damaged"))
        }
    }

    @Test func fileThatCannotBeOpenedYetIsUsedLater() throws {
        try withStore { path in
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            var outbox = makeOutbox(path)
            #expect(outbox.storeFailure != nil)
            append(0..<10, to: &outbox, isConnected: false)
            try FileManager.default.removeItem(atPath: path)
            append(10..<200, to: &outbox, isConnected: false)
            #expect(outbox.storeFailure == nil)
            let storedCount = try MessageStore(path: path).initialCount
            #expect(storedCount == 200)
        }
    }

    @Test func fileThatCanBeOpenedAtALossTakesTheMessagesInFlight() throws {
        try withStore { path in
            var earlier = makeOutbox(path)
            append(0..<3, to: &earlier, isConnected: false)
            earlier = makeOutbox(nil)
            try FileManager.default.moveItem(atPath: path, toPath: path + ".away")
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            var outbox = makeOutbox(path)
            append(3..<103, to: &outbox, isConnected: true)
            var first = TestBroker()
            first.receive(from: &outbox, confirms: false)
            try FileManager.default.removeItem(atPath: path)
            try FileManager.default.moveItem(atPath: path + ".away", toPath: path)
            outbox.connectionLost()
            append(103..<110, to: &outbox, isConnected: false)
            var next = makeOutbox(path)
            var broker = TestBroker()
            broker.receive(from: &next)
            #expect(broker.received == texts(0..<110))
        }
    }

    @Test func messagesThatCannotBeRemovedAreTriedLessAndLessOften() throws {
        try withStore { path in
            var outbox = makeOutbox(path)
            append(0..<1000, to: &outbox, isConnected: false)
            try execute(refuseRemovals, in: path)
            var broker = TestBroker()
            broker.receive(from: &outbox)
            #expect(broker.received == texts(0..<1000))
            #expect(outbox.removalCount == 1024)
            try execute(allowRemovals, in: path)
            append(1000..<1100, to: &outbox, isConnected: false)
            broker.receive(from: &outbox)
            let storedCount = try MessageStore(path: path).initialCount
            #expect(storedCount == 0 && outbox.removalCount == Outbox.window)
            #expect(broker.received == texts(0..<1100))
        }
    }

    /// While the broker confirms messages, they are in memory only, so nothing else uses the store.
    @Test func messagesThatCouldNotBeRemovedAreRemovedWhileTheBrokerConfirmsOthers() throws {
        try withStore { path in
            var outbox = makeOutbox(path)
            append(0..<1000, to: &outbox, isConnected: false)
            try execute(refuseRemovals, in: path)
            var broker = TestBroker()
            broker.receive(from: &outbox)
            outbox.retryStore()
            #expect(outbox.storeFailure?.contains("read-only") == true)
            try execute(allowRemovals, in: path)
            append(1000..<1100, to: &outbox, isConnected: true)
            broker.receive(from: &outbox)
            outbox.retryStore()
            let storedCount = try MessageStore(path: path).initialCount
            #expect(storedCount == 0 && outbox.storeFailure == nil && outbox.removalCount == Outbox.window)
            #expect(broker.received == texts(0..<1100))
        }
    }

    @Test func failureToStorePassesAlthoughNothingIsToBeStored() throws {
        try withStore { path in
            var outbox = makeOutbox(path)
            try execute(refuseInsertions, in: path)
            append(0..<100, to: &outbox, isConnected: false)
            var broker = TestBroker()
            broker.receive(from: &outbox)
            #expect(outbox.count == 0)
            outbox.retryStore()
            #expect(outbox.storeFailure?.contains("no space") == true)
            try execute(allowInsertions, in: path)
            outbox.retryStore()
            #expect(outbox.storeFailure == nil)
            let storedCount = try MessageStore(path: path).initialCount
            #expect(storedCount == 0)
            append(100..<110, to: &outbox, isConnected: false)
            broker.receive(from: &outbox)
            #expect(broker.received == texts(0..<110))
            #expect(log.lines.count == 2, "\(log.lines)")
        }
    }

    @Test func fileThatCannotBeOpenedYetIsUsedWhileTheBrokerConfirms() throws {
        try withStore { path in
            var earlier = makeOutbox(path)
            append(0..<3, to: &earlier, isConnected: false)
            earlier = makeOutbox(nil)
            try FileManager.default.moveItem(atPath: path, toPath: path + ".away")
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            var outbox = makeOutbox(path)
            var broker = TestBroker()
            append(3..<6, to: &outbox, isConnected: true)
            broker.receive(from: &outbox, confirms: false)
            try FileManager.default.removeItem(atPath: path)
            try FileManager.default.moveItem(atPath: path + ".away", toPath: path)
            // The file has numbers that messages in flight have.
            outbox.retryStore()
            #expect(outbox.storeFailure != nil)
            // Later messages wait. Otherwise the broker might always have some to confirm.
            append(6..<9, to: &outbox, isConnected: true)
            broker.receive(from: &outbox, confirms: false)
            #expect(broker.received == texts(3..<6))
            for number in Int32(1)...3 { outbox.confirm(number) }
            #expect(outbox.storeFailure == nil && outbox.count == 6)
            broker.receive(from: &outbox)
            #expect(broker.received == texts(3..<6) + texts(0..<3) + texts(6..<9))
        }
    }

    @Test func fileThatStillCannotBeOpenedHoldsNoMessageBack() throws {
        try withStore { path in
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            var outbox = makeOutbox(path)
            var broker = TestBroker()
            append(0..<3, to: &outbox, isConnected: true)
            broker.receive(from: &outbox, confirms: false)
            outbox.retryStore()
            append(3..<6, to: &outbox, isConnected: true)
            for number in Int32(1)...3 { outbox.confirm(number) }
            #expect(outbox.storeFailure != nil)
            broker.receive(from: &outbox)
            #expect(broker.received == texts(0..<6))
        }
    }

    /// Another program may have locked the file, and each failed wait for it takes a second.
    @Test func storeIsNotUsedAgainAfterAFailure() throws {
        try withStore { path in
            var earlier = makeOutbox(path)
            append(0..<100, to: &earlier, isConnected: false)
            earlier = makeOutbox(nil)
            // A check of the store would succeed, because its message has no topic.
            let condition = "WHEN old.topic <> '' BEGIN"
            try execute(refuseRemovals.replacingOccurrences(of: "BEGIN", with: condition), in: path)
            var outbox = makeOutbox(path, limit: 50)
            #expect(outbox.storeFailure != nil)
            outbox.retryStore()
            #expect(outbox.storeFailure != nil && outbox.count == 100)
            try execute(allowRemovals, in: path)
            try execute(refuseInsertions, in: path)
            append(100..<101, to: &outbox, isConnected: false)
            #expect(outbox.count == 101 && outbox.droppedCount == 0)
            try execute(allowInsertions, in: path)
            append(101..<102, to: &outbox, isConnected: false)
            #expect(outbox.count == 50 && outbox.droppedCount == 52)
        }
    }

    @Test func rowsThatAreNoMessagesAreDropped() throws {
        try withStore { path in
            var outbox = makeOutbox(path)
            append(0..<2, to: &outbox, isConnected: false)
            let rows = "(x'FFFE', x'00'), ('a/#', 'x'), ('', '')"
            try execute("INSERT INTO message (topic, payload) VALUES \(rows)", in: path)
            var next = makeOutbox(path)
            append(2..<4, to: &next, isConnected: false)
            var broker = TestBroker()
            broker.receive(from: &next)
            #expect(broker.received == texts(0..<4))
            #expect(next.droppedCount == 3)
            let storedCount = try MessageStore(path: path).initialCount
            #expect(storedCount == 0)
        }
    }
}
