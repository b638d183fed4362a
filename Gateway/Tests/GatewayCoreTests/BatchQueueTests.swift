import ESPHomeProtocol
import NIOCore
import Testing

@testable import GatewayCore

@Suite("Batches of advertisements")
struct BatchQueueTests {
    private var queue = BatchQueue(adapterCount: 2)
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

    /// Adds advertisements of an adapter's turn.
    ///
    /// - Returns: the number of calls that reported the first one of a turn, and the sizes of the batches to send.
    @discardableResult
    private mutating func append(_ count: Int, from adapter: Int = 0) -> (firstCount: Int, sizes: [Int]) {
        var result = (0, [Int]())
        for number in 0..<count {
            let advertisement = RawAdvertisement(address: UInt64(number + 1), rssi: -1, isRandom: false, data: [])
            let (isFirst, batches) = queue.append(advertisement, from: adapter)
            if isFirst { result.0 += 1 }
            result.1 += batches.map(\.count)
        }
        return result
    }

    @Test("A turn is sent at its end", arguments: [(4, [4]), (16, [16]), (20, [16, 4]), (48, [16, 16, 16])])
    mutating func gatheredTurnIsSentAtItsEnd(count: Int, sizes: [Int]) {
        #expect(append(count) == (1, []))
        #expect(queue.endTurn(of: 0, at: start).map(\.count) == sizes)
        #expect(queue.deadline == nil)
        #expect(append(1).firstCount == 1)
    }

    @Test("A few advertisements wait for those of other turns, for a limited time")
    mutating func smallTurnWaits() {
        append(1)
        #expect(queue.endTurn(of: 0, at: start) == [])
        #expect(queue.deadline == start + BatchQueue.delay)
        append(3, from: 1)
        #expect(queue.endTurn(of: 1, at: start + .milliseconds(39)) == [])
        #expect(queue.advance(to: start + .milliseconds(39)) == [])
        #expect(queue.advance(to: start + BatchQueue.delay).map(\.count) == [4])
        #expect(queue.deadline == nil)
        #expect(queue.advance(to: start + .seconds(1)) == [])
    }

    @Test("Small turns fill a batch, which is sent at once; the rest waits from the end of its turn")
    mutating func smallTurnsFillABatch() {
        for _ in 0..<5 {
            append(3)
            #expect(queue.endTurn(of: 0, at: start) == [])
        }
        append(3)
        #expect(queue.endTurn(of: 0, at: start + .milliseconds(20)).map(\.count) == [16])
        #expect(queue.deadline == start + .milliseconds(20) + BatchQueue.delay)
        #expect(queue.takeAll().map(\.count) == [2])
        #expect(queue.deadline == nil)
    }

    @Test("A turn without end is sent in parts")
    mutating func longTurnIsSentInParts() {
        let sizes = [Int](repeating: 16, count: BatchQueue.fullBatchLimit)
        #expect(append(16 * BatchQueue.fullBatchLimit - 1) == (1, []))
        #expect(append(17) == (0, sizes))
        #expect(queue.endTurn(of: 0, at: start).map(\.count) == [16])
    }

    @Test("Each adapter has turns of its own, and the order is kept")
    mutating func adaptersHaveTheirOwnTurns() {
        #expect(append(2, from: 0).firstCount == 1)
        #expect(append(2, from: 1).firstCount == 1)
        #expect(queue.endTurn(of: 0, at: start) == [])
        #expect(append(2, from: 1).firstCount == 0)
        let batches = queue.endTurn(of: 1, at: start)
        var expected = AdvertisementBatch()
        for address in [1, 2, 1, 2, 1, 2] as [UInt64] {
            expected.append(RawAdvertisement(address: address, rssi: -1, isRandom: false, data: []))
        }
        #expect(batches == [expected])
    }
}
