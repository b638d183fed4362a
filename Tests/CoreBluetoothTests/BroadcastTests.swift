import BLE
import Foundation
import Testing

@testable import CoreBluetooth

@Suite("Sequences of Core Bluetooth beyond Apple's API", .timeLimit(.minutes(10)))
struct BroadcastTests {
    @Test("Cancelling one reader leaves the sequence to the others")
    func cancelledReaderEndsAlone() async {
        let broadcast = Broadcast<Int>()
        let numbers = broadcast.sequence(limit: 8)
        let cancelled = Task {
            for await _ in numbers {}
            return Task.isCancelled
        }
        cancelled.cancel()
        #expect(await cancelled.value)
        let reader = Task { () -> [Int] in
            var read: [Int] = []
            for await number in numbers { read.append(number) }
            return read
        }
        for number in 1...3 { broadcast.send(number) }
        broadcast.finish()
        #expect(await reader.value == [1, 2, 3])
    }

    @Test("Two tasks that iterate one sequence share its elements, and both end with it")
    func twoReadersShareASequence() async {
        let broadcast = Broadcast<Int>()
        let numbers = broadcast.sequence(limit: 2000)
        let readers = (0..<2).map { _ in
            Task { () -> [Int] in
                var read: [Int] = []
                for await number in numbers { read.append(number) }
                return read
            }
        }
        for number in 0..<1000 { broadcast.send(number) }
        broadcast.finish()
        var all: [Int] = []
        for reader in readers {
            let read = await reader.value
            #expect(read == read.sorted())
            all += read
        }
        #expect(all.sorted() == Array(0..<1000))
    }

    @Test("Elements that one iteration does not read are kept for the next")
    func secondIterationGetsTheRest() async {
        let broadcast = Broadcast<Int>()
        let numbers = broadcast.sequence(limit: 8)
        for number in 1...3 { broadcast.send(number) }
        #expect(await numbers.first { _ in true } == 1)
        #expect(await numbers.first { _ in true } == 2)
        #expect(await numbers.first { _ in true } == 3)
    }

    @Test("A slow reader gets the newest elements, and dropped ones are counted")
    func oldestElementsAreDropped() async {
        let broadcast = Broadcast<Int>()
        let numbers = broadcast.sequence(limit: 4)
        for number in 1...10 { broadcast.send(number) }
        broadcast.finish()
        var read: [Int] = []
        for await number in numbers { read.append(number) }
        #expect(read == [7, 8, 9, 10])
        #expect(numbers.droppedCount == 6)
    }

    @Test("A sequence that is released unread is removed")
    func releasedSequenceIsForgotten() async {
        let broadcast = Broadcast<Int>()
        for _ in 0..<100 { _ = broadcast.sequence(limit: 4) }
        #expect(broadcast.count == 0)
        var iterator = Optional(broadcast.sequence(limit: 4).makeAsyncIterator())
        broadcast.send(1)
        #expect(await iterator?.next() == 1)
        #expect(broadcast.count == 1)
        iterator = nil
        #expect(broadcast.count == 0)
    }

    @Test("A released source ends its sequences")
    func releasedSourceEndsSequences() async {
        let numbers: Events<Int>
        do {
            let broadcast = Broadcast<Int>()
            numbers = broadcast.sequence(limit: 4)
            broadcast.send(1)
        }
        var read: [Int] = []
        for await number in numbers { read.append(number) }
        #expect(read == [1])
    }
}
