import Testing

@testable import BLEGATT

@Suite("The queue of outputs")
struct OutputQueueTests {
    @Test("Outputs are in their order, including those appended between two of them")
    func outputsAreTakenInTheirOrder() {
        let queue = OutputQueue<Int>()
        #expect(queue.take() == nil && queue.isEmpty && queue.last == nil)
        for output in 1...3 { queue.append(output) }
        #expect(queue.last == 3)
        #expect(queue.take() == 1)
        queue.append(4)
        #expect(queue.take() == 2)
        #expect(queue.take() == 3)
        #expect(queue.last == 4)
        #expect(queue.take() == 4)
        #expect(queue.take() == nil && queue.isEmpty && queue.last == nil)
        queue.append(5)
        #expect(queue.take() == 5)
        #expect(queue.take() == nil)
    }
}
