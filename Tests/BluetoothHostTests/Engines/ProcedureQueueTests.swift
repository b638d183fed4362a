import Testing

@testable import BluetoothHost

@Suite("The procedures of a link")
struct ProcedureQueueTests {
    private let calls = (0..<3).map { SlotToken(index: $0, generation: 1) }

    @Test("They run one at a time, in the order of the calls")
    func oneAtATime() {
        var queue = ProcedureQueue<Int>()
        #expect(queue.begin() == nil)
        for index in 0..<3 { queue.append(.task(calls[index]), index) }
        #expect(queue.count == 3)
        for index in 0..<3 {
            #expect(queue.begin() == index)
            #expect(queue.begin() == nil, "one runs")
            #expect(queue.end()?.call == calls[index])
        }
        #expect(queue.end() == nil && queue.begin() == nil && queue.count == 0)
    }

    @Test("The outcome for a cancelled call goes to no other call")
    func cancelledWhileItRuns() {
        var queue = ProcedureQueue<Int>()
        queue.append(.task(calls[0]), 0)
        #expect(queue.begin() == 0)
        queue.remove(calls[0])
        queue.append(.task(calls[1]), 1)
        #expect(queue.count == 1)
        #expect(queue.begin() == nil, "the procedure of the cancelled call still runs")
        #expect(queue.end() == nil)
        #expect(queue.begin() == 1)
        #expect(queue.end()?.call == calls[1])
    }

    @Test("A call that is cancelled before its procedure begins sends no request")
    func cancelledBeforeItRuns() {
        var queue = ProcedureQueue<Int>()
        for index in 0..<3 { queue.append(.task(calls[index]), index) }
        #expect(queue.begin() == 0)
        queue.remove(calls[1])
        #expect(queue.end()?.call == calls[0])
        #expect(queue.begin() == 2)
        #expect(queue.removeAll().map(\.call) == [calls[2]])
        #expect(!queue.isRunning && queue.count == 0)
    }

    @Test("A peer can queue only one request, behind those of the calls")
    func requestsOfThePeer() {
        var queue = ProcedureQueue<Int>()
        queue.append(.task(calls[0]), 0)
        #expect(queue.begin() == 0)
        for request in 10..<20 { queue.setPeerRequest(request) }
        queue.append(.task(calls[1]), 1)
        #expect(queue.end()?.call == calls[0])
        #expect(queue.begin() == 1)
        #expect(queue.end()?.call == calls[1])
        #expect(queue.begin() == 19)
        #expect(queue.isRunning && queue.count == 0)
        #expect(queue.end() == nil && queue.begin() == nil)
    }

    @Test(arguments: [true, false]) func postponedProcedureIsTheNext(isCallback: Bool) {
        var queue = ProcedureQueue<Int>()
        queue.append(isCallback ? .callback { _ in } : .task(calls[0]), 0)
        queue.append(.task(calls[1]), 1)
        #expect(queue.begin() == 0)
        queue.postpone()
        #expect(!queue.isRunning && queue.isPostponed && queue.count == 2)
        #expect(queue.begin() == 0)
        switch queue.end() {
        case .callback: #expect(isCallback)
        case .task(let call): #expect(!isCallback && call == calls[0])
        default: Issue.record("there is no call")
        }
        #expect(queue.begin() == 1)
        queue.remove(calls[1])
        queue.postpone()
        #expect(!queue.isPostponed)
        #expect(queue.begin() == nil && queue.count == 0, "the call was cancelled")
    }

    @Test func newestUnawaitedRequestReplacesTheOneThatWaits() {
        var queue = ProcedureQueue<Int>()
        queue.appendUnawaited(0)
        #expect(queue.begin() == 0)
        for request in 1..<10 {
            queue.appendUnawaited(request)
            if request == 5 { queue.append(.task(calls[0]), 10) }
        }
        #expect(queue.count == 3)
        var begun: [Int] = []
        while queue.end() != nil, let request = queue.begin() { begun.append(request) }
        #expect(begun == [10, 9])
    }

    @Test("All procedures end together, oldest first")
    func allEnd() {
        var queue = ProcedureQueue<Int>()
        for index in 0..<3 { queue.append(.task(calls[index]), index) }
        #expect(queue.begin() == 0)
        #expect(queue.removeAll().map(\.call) == calls)
        #expect(queue.removeAll().isEmpty)
    }
}
