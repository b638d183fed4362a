import BluetoothHost
import Synchronization
import Testing

@testable import BLE

private typealias ThrowingBuffer = AsyncEventBuffer<Int, BLEError>

/// The elements that several tasks have received.
private final class Received: Sendable {
    private let elements = Mutex<[Int]>([])

    var all: [Int] { elements.withLock { $0 } }

    func add(_ element: Int) {
        elements.withLock { $0.append(element) }
    }
}

/// Waits until a number of tasks wait for an element.
private func waitForWaiters<Failure>(_ count: Int, of buffer: AsyncEventBuffer<Int, Failure>) async {
    while buffer.waiterCount != count { await Task.yield() }
}

@Suite("The buffer behind the sequences", .timeLimit(.minutes(5)))
struct AsyncEventBufferTests {
    @Test("Elements stay in the buffer until a reader asks for them")
    func elementsWaitForTheirReader() async throws {
        let buffer = ThrowingBuffer(limit: 8, report: .none)
        for element in 1...3 { buffer.append(element) }
        #expect(try await buffer.next() == 1)
        buffer.append(4)
        buffer.finish()
        for expected in [2, 3, 4, nil, nil] { #expect(try await buffer.next() == expected) }
    }

    @Test("Each element wakes one of the waiting readers, and the end wakes all others")
    func eachElementWakesOneReader() async throws {
        let buffer = AsyncEventBuffer<Int, Never>(limit: 8, report: .none)
        var readers: [Task<Int?, Never>] = []
        for number in 1...5 {
            readers.append(Task { await buffer.next() })
            await waitForWaiters(number, of: buffer)
        }
        for element in 1...3 {
            buffer.append(element)
            #expect(buffer.waiterCount == 5 - element)
        }
        buffer.finish()
        var received: [Int] = []
        for reader in readers { received.append(await reader.value ?? 0) }
        #expect(received.sorted() == [0, 0, 1, 2, 3])
        #expect(buffer.waiterCount == 0)
    }

    @Test("An error ends every reader, including later ones")
    func errorEndsEveryReader() async throws {
        let buffer = ThrowingBuffer(limit: 8, report: .none)
        let waiting = Task { try await buffer.next() }
        await waitForWaiters(1, of: buffer)
        buffer.finish(.closed)
        buffer.finish(.notReady)
        buffer.append(1)
        await #expect(throws: BLEError.closed) { _ = try await waiting.value }
        for _ in 0..<2 {
            await #expect(throws: BLEError.closed) { _ = try await buffer.next() }
        }
    }

    @Test("A cancelled reader throws at once and takes nothing; others continue to read")
    func cancelledReaderTakesNothing() async throws {
        let buffer = ThrowingBuffer(limit: 8, report: .none)
        let waiting = Task { try await buffer.next() }
        await waitForWaiters(1, of: buffer)
        waiting.cancel()
        await #expect(throws: BLEError.cancelled) { _ = try await waiting.value }
        #expect(buffer.waiterCount == 0)
        buffer.append(1)
        let late = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await buffer.next()
        }
        await #expect(throws: BLEError.cancelled) { _ = try await late.value }
        #expect(try await buffer.next() == 1)
    }

    @Test("A cancelled reader of a sequence that does not throw gets nil")
    func cancelledReaderGetsNil() async {
        let buffer = AsyncEventBuffer<Int, Never>(limit: 8, report: .none)
        let waiting = Task { await buffer.next() }
        await waitForWaiters(1, of: buffer)
        waiting.cancel()
        #expect(await waiting.value == nil)
        buffer.append(1)
        #expect(await buffer.next() == 1)
    }

    @Test("A separate element takes the place of dropped ones")
    func overflowIsAnElement() async {
        let buffer = AsyncEventBuffer<Int, Never>(limit: 3, report: .element { -$0 })
        for element in 1...5 { buffer.append(element) }
        var received: [Int?] = []
        for _ in 0..<2 { received.append(await buffer.next()) }
        for element in 6...8 { buffer.append(element) }
        buffer.finish()
        for _ in 0..<5 { received.append(await buffer.next()) }
        #expect(received == [-2, 3, -2, 6, 7, 8, nil])
        #expect(buffer.droppedCount == 4)
    }

    @Test("The first element after dropped ones is marked")
    func overflowMarksTheNextElement() async throws {
        let buffer = ThrowingBuffer(limit: 2, report: .mark { $0 += 100 * $1 })
        for element in 1...5 { buffer.append(element) }
        for expected in [304, 5] { #expect(try await buffer.next() == expected) }
        buffer.append(6)
        #expect(try await buffer.next() == 6)
        #expect(buffer.droppedCount == 3)
    }

    @Test("A reader on another thread is woken at the end of the loop's turn, one on the loop at once")
    func readersAreWokenAtTheEndOfTheTurn() async {
        let loop = DispatchEventLoop(label: "readers")
        let buffer = AsyncEventBuffer<Int, Never>(limit: 8, report: .none, wakingBy: ReaderQueue(loop: loop))
        for (executor, remaining) in [(nil, 1), (loop.taskExecutor, 0)] as [((any TaskExecutor)?, Int)] {
            let reader = Task(executorPreference: executor) { [await buffer.next(), await buffer.next()] }
            await waitForWaiters(1, of: buffer)
            let count = await withCheckedContinuation { continuation in
                loop.execute {
                    for element in 1...2 { buffer.append(element) }
                    continuation.resume(returning: buffer.waiterCount)
                }
            }
            #expect(count == remaining)
            #expect(await reader.value == [1, 2])
        }
    }

    @Test("A reader on another thread is woken at once when the buffer is half full")
    func halfFullBufferWakesItsReader() async {
        let loop = DispatchEventLoop(label: "readers")
        let buffer = AsyncEventBuffer<Int, Never>(limit: 8, report: .none, wakingBy: ReaderQueue(loop: loop))
        let reader = Task { await buffer.next() }
        await waitForWaiters(1, of: buffer)
        let counts = await withCheckedContinuation { continuation in
            loop.execute {
                let counts = (1...4).map { element in
                    buffer.append(element)
                    return buffer.waiterCount
                }
                continuation.resume(returning: counts)
            }
        }
        #expect(counts == [1, 1, 1, 0])
        #expect(await reader.value == 1)
    }

    @Test("The end of a sequence wakes the readers of earlier elements first")
    func endWakesEarlierReaders() async {
        let loop = DispatchEventLoop(label: "readers")
        let readers = ReaderQueue(loop: loop)
        let buffer = AsyncEventBuffer<Int, Never>(limit: 8, report: .none, wakingBy: readers)
        let other = AsyncEventBuffer<Int, Never>(limit: 8, report: .none, wakingBy: readers)
        let tasks = [Task { await buffer.next() }, Task { await other.next() }]
        await waitForWaiters(1, of: buffer)
        await waitForWaiters(1, of: other)
        let counts = await withCheckedContinuation { continuation in
            loop.execute {
                buffer.append(1)
                let before = buffer.waiterCount
                other.finish()
                continuation.resume(returning: [before, buffer.waiterCount])
            }
        }
        #expect(counts == [1, 0])
        #expect(await tasks[0].value == 1)
        #expect(await tasks[1].value == nil)
    }

    @Test("Each element goes to one of several readers, even while readers are cancelled")
    func everyElementIsReadOnce() async {
        let (elements, readerCount) = (20_000, 4)
        let buffer = ThrowingBuffer(limit: elements, report: .none)
        let received = Received()
        await withDiscardingTaskGroup { group in
            for _ in 0..<readerCount {
                group.addTask {
                    // Each reader is a chain of tasks that are cancelled while they wait or read.
                    var hasEnded = false
                    while !hasEnded {
                        let reader = Task { () -> Bool in
                            do {
                                while let element = try await buffer.next() { received.add(element) }
                                return true
                            } catch {
                                return false
                            }
                        }
                        await Task.yield()
                        reader.cancel()
                        hasEnded = await reader.value
                    }
                }
            }
            group.addTask {
                for element in 0..<elements {
                    buffer.append(element)
                    if element % 64 == 0 { await Task.yield() }
                }
                buffer.finish()
            }
        }
        #expect(received.all.sorted() == Array(0..<elements))
        #expect(buffer.waiterCount == 0 && buffer.droppedCount == 0)
    }
}
