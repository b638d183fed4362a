import BluetoothTypes
import OrderedCollections
import Testing

@testable import BluetoothHost

@Suite("The queue of peers for the filter accept list")
struct AcceptListQueueTests {
    private static func peer(_ number: Int) -> DeviceAddress {
        DeviceAddress(UInt64(number), isRandom: false)
    }

    /// A queue with these peers, in which two seconds on the list are sufficient.
    private func queue(_ numbers: Range<Int>) -> AcceptListQueue {
        var queue = AcceptListQueue(sufficientTime: .seconds(2))
        for number in numbers { queue.append(Self.peer(number)) }
        return queue
    }

    private func numbers(_ queue: AcceptListQueue) -> [Int] { queue.peers.map { Int($0.value) } }

    private func second(_ second: UInt64) -> Instant { Instant(nanoseconds: second * 1_000_000_000) }

    private func peers(_ numbers: Int...) -> Set<DeviceAddress> { Set(numbers.map(Self.peer)) }

    @Test func turnsMovePeersToTheEnd() {
        var queue = queue(0..<5)
        queue.endTurn(of: peers(0, 1), at: second(4))
        #expect(numbers(queue) == [2, 3, 4, 0, 1])
        queue.endTurn(of: peers(2, 4), at: second(8))
        #expect(numbers(queue) == [3, 0, 1, 2, 4])
        queue.append(Self.peer(0))
        #expect(numbers(queue) == [3, 0, 1, 2, 4])
    }

    @Test func peerThatHadNoTurnReturnsToItsPlace() {
        var queue = queue(0..<4)
        queue.beginInitiating(peers(0), at: second(0))
        queue.removeAll(except: peers(3), keepingPlacesAt: second(3))
        queue.endInitiating(at: second(3))
        #expect(numbers(queue) == [3])
        for number in [4, 0, 2, 1] { queue.append(Self.peer(number)) }
        #expect(numbers(queue) == [1, 2, 3, 4, 0])
    }

    @Test func returnDoesNotCutATurnShort() {
        var queue = queue(0..<3)
        queue.removeAll(except: peers(1, 2), keepingPlacesAt: second(1))
        queue.beginInitiating(peers(1), at: second(1))
        queue.append(Self.peer(0))
        #expect(numbers(queue) == [1, 0, 2])
        queue.endTurn(of: peers(1), at: second(5))
        queue.removeAll(except: peers(1, 2), keepingPlacesAt: second(5))
        queue.append(Self.peer(0))
        #expect(numbers(queue) == [0, 2, 1])
    }

    @Test func peerThatJoinsATurnLateKeepsItsPlace() {
        var queue = queue(0..<4)
        queue.beginInitiating(peers(0, 1), at: second(0))
        queue.removeAll(except: peers(0, 2, 3))
        queue.beginInitiating(peers(0, 2), at: second(3))
        queue.endTurn(of: peers(0, 2), at: second(4))
        #expect(numbers(queue) == [2, 3, 0])
        // The time on the list is summed over its turns.
        queue.beginInitiating(peers(2, 3), at: second(4))
        queue.endTurn(of: peers(2, 3), at: second(8))
        #expect(numbers(queue) == [0, 2, 3])
    }

    @Test func turnThatAllPeersJoinedLateEndsForAll() {
        var queue = queue(0..<3)
        queue.beginInitiating(peers(0, 1), at: second(3))
        queue.endTurn(of: peers(0, 1), at: second(4))
        #expect(numbers(queue) == [2, 0, 1])
    }

    @Test func timeIsSummedOverAttempts() {
        var queue = queue(0..<2)
        for attempt in 0..<3 {
            #expect(numbers(queue) == (attempt < 2 ? [0, 1] : [1, 0]))
            queue.beginInitiating(peers(0), at: second(UInt64(attempt) * 10))
            queue.endInitiating(at: second(UInt64(attempt) * 10 + 1))
            queue.removeAll(except: peers(1), keepingPlacesAt: second(UInt64(attempt) * 10 + 1))
            queue.append(Self.peer(0))
        }
    }

    @Test func peerThatIsConnectedGivesUpItsPlace() {
        var queue = queue(0..<3)
        queue.removeAll(except: peers(1, 2))
        queue.append(Self.peer(0))
        #expect(numbers(queue) == [1, 2, 0])
    }

    @Test func keptPlacesAreBounded() {
        let limit = AcceptListQueue.keptPlaceLimit
        var queue = queue(0..<(limit + 2))
        queue.removeAll(except: [], keepingPlacesAt: second(1))
        queue.append(Self.peer(limit + 2))
        for number in (0..<(limit + 2)).reversed() { queue.append(Self.peer(number)) }
        // The places of the first two were forgotten.
        #expect(numbers(queue) == Array(2..<(limit + 3)) + [1, 0])
    }
}
