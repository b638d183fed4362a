import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The procedures of a link")
struct ProcedureQueueTests {
    private let calls = (0..<3).map { SlotToken(index: $0, generation: 1) }
    private let deadline = Instant(nanoseconds: 1)

    @Test func proceduresRunOneAtATimeInTheOrderOfTheCalls() {
        var queue = ProcedureQueue<Int>()
        #expect(queue.begin(until: deadline) == nil && !queue.isRunning)
        for index in 0..<3 { queue.append(calls[index], index) }
        #expect(queue.count == 3)
        for index in 0..<3 {
            #expect(queue.begin(until: deadline) == index)
            #expect(queue.begin(until: deadline) == nil, "one runs")
            #expect(queue.deadline == deadline)
            #expect(queue.number == UInt32(index + 1))
            #expect(queue.end() == calls[index])
            #expect(queue.deadline == nil)
        }
        #expect(queue.end() == nil && queue.begin(until: deadline) == nil && queue.count == 0)
    }

    @Test("The outcome for a cancelled call goes to no other call")
    func outcomeForACancelledCallGoesToNoOtherCall() {
        var queue = ProcedureQueue<Int>()
        queue.append(calls[0], 0)
        #expect(queue.begin(until: deadline) == 0)
        queue.remove(calls[0])
        queue.append(calls[1], 1)
        #expect(queue.count == 1)
        #expect(queue.begin(until: deadline) == nil, "the procedure of the cancelled call still runs")
        #expect(queue.end() == nil)
        #expect(queue.begin(until: deadline) == 1)
        #expect(queue.end() == calls[1])
    }

    @Test("A call that is cancelled before its procedure begins sends no request")
    func callCancelledBeforeItRunsSendsNoRequest() {
        var queue = ProcedureQueue<Int>()
        for index in 0..<3 { queue.append(calls[index], index) }
        #expect(queue.begin(until: deadline) == 0)
        queue.remove(calls[1])
        #expect(queue.end() == calls[0])
        #expect(queue.begin(until: deadline) == 2)
        #expect(queue.removeAll() == [calls[2]])
        #expect(!queue.isRunning && queue.count == 0)
    }

    @Test("A peer can queue only one request, behind those of the calls")
    func peerCanQueueOnlyOneRequest() {
        var queue = ProcedureQueue<Int>()
        queue.append(calls[0], 0)
        #expect(queue.begin(until: deadline) == 0)
        for request in 10..<20 { queue.setPeerRequest(request) }
        queue.append(calls[1], 1)
        #expect(queue.end() == calls[0])
        #expect(queue.begin(until: deadline) == 1)
        #expect(queue.end() == calls[1])
        #expect(queue.begin(until: deadline) == 19)
        #expect(queue.isRunning && queue.count == 0)
        for request in 20..<30 { queue.setPeerRequest(request) }
        #expect(queue.end() == nil && queue.begin(until: deadline) == 29)
        #expect(queue.end() == nil && queue.begin(until: deadline) == nil)
    }

    @Test(arguments: [true, false]) func postponedProcedureIsTheNext(isAwaited: Bool) {
        var queue = ProcedureQueue<Int>()
        if isAwaited { queue.append(calls[0], 0) } else { queue.appendUnawaited(0) }
        queue.append(calls[1], 1)
        #expect(queue.begin(until: deadline) == 0)
        queue.postpone()
        #expect(!queue.isRunning && queue.isPostponed && queue.count == 2)
        #expect(queue.begin(until: deadline) == 0)
        #expect(queue.end() == (isAwaited ? calls[0] : nil))
        #expect(queue.begin(until: deadline) == 1)
        queue.remove(calls[1])
        queue.postpone()
        #expect(!queue.isPostponed)
        #expect(queue.begin(until: deadline) == nil && queue.count == 0, "the call was cancelled")
    }

    @Test func newestUnawaitedRequestReplacesTheOneThatWaits() {
        var queue = ProcedureQueue<Int>()
        queue.appendUnawaited(0)
        #expect(queue.begin(until: deadline) == 0)
        for request in 1..<10 {
            queue.appendUnawaited(request)
            if request == 5 { queue.append(calls[0], 10) }
        }
        #expect(queue.count == 3)
        var begun: [Int] = []
        repeat { _ = queue.end() } while queue.begin(until: deadline).map { begun.append($0) } != nil
        #expect(begun == [10, 9])
    }

    @Test func eventThatIsStillAwaitedDelaysTheNextProcedure() {
        var queue = ProcedureQueue<Int>()
        queue.append(calls[0], 0)
        queue.beginWithoutCall(until: deadline)
        #expect(queue.begin(until: deadline) == nil && queue.count == 1)
        queue.beginWithoutCall(until: deadline + .seconds(1))
        #expect(queue.deadline == deadline, "one runs already")
        #expect(queue.end() == nil)
        #expect(queue.begin(until: deadline) == 0)
    }

    @Test func answeredProcedureHasMoreTime() {
        var queue = ProcedureQueue<Int>()
        let later = deadline + .seconds(1)
        queue.append(calls[0], 0)
        queue.extend(until: later)
        #expect(queue.deadline == nil && !queue.isRunning, "none runs")
        #expect(queue.begin(until: deadline) == 0)
        queue.extend(until: later)
        #expect(queue.deadline == later)
        queue.extend(until: deadline)
        #expect(queue.deadline == later, "it never has less time")
        #expect(queue.number == 1 && queue.end() == calls[0])
    }

    @Test("All procedures end together, oldest first")
    func proceduresEndTogetherOldestFirst() {
        var queue = ProcedureQueue<Int>()
        for index in 0..<3 { queue.append(calls[index], index) }
        #expect(queue.begin(until: deadline) == 0)
        #expect(queue.removeAll() == calls)
        #expect(queue.removeAll().isEmpty)
    }
}
