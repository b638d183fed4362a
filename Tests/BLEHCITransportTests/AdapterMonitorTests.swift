import BluetoothTypes
import Glibc
import Synchronization
import Testing

@testable import BLEHCITransport

@Suite("The monitor of adapters", .timeLimit(.minutes(5)))
struct AdapterMonitorTests {
    /// A kernel with adapters and, unless it is absent, a management socket.
    private final class Kernel: Sendable {
        private struct State {
            var inventory = AdapterInventory()
            var ends: [OwnedDescriptor] = []
            var readCount = 0
        }

        private let state = Mutex(State())
        private let hasManagement: Bool

        init(hasManagement: Bool = true) {
            self.hasManagement = hasManagement
        }

        /// - Parameter interval: in microseconds; by default longer than a test, so that only messages report changes.
        func monitor(interval: Int = 3_600_000_000) -> AdapterMonitor {
            AdapterMonitor { [self] report in
                AdapterWatcher(
                    interval: .microseconds(interval),
                    openSocket: { self.open() },
                    readInventory: { self.read() },
                    report: report
                )
            }
        }

        private func open() -> ManagementSocket? {
            guard hasManagement, let (own, other) = try? makeSockets(preservingPackets: true) else { return nil }
            _ = fcntl(own, F_SETFL, O_NONBLOCK)
            state.withLock { $0.ends.append(OwnedDescriptor(other)) }
            return ManagementSocket(OwnedDescriptor(own))
        }

        private func read() -> AdapterInventory {
            state.withLock { state in
                state.readCount += 1
                return state.inventory
            }
        }

        /// Changes the adapters, and reports a change.
        func set(_ indices: [Int], message: [UInt8]? = [0x04, 0x00, 0x00, 0x00, 0x00, 0x00]) {
            let end = state.withLock { state in
                state.inventory.adapters = indices.map { KernelAdapter(index: $0) }
                return state.ends.last
            }
            if let end, let message { _ = send(end.number, message.rawSpan) }
        }

        func closeSockets() { state.withLock { $0.ends.removeAll() } }

        var socketCount: Int { state.withLock { $0.ends.count } }

        /// Whether the monitor closes the last socket, within a minute.
        func seesTheEnd() async -> Bool {
            guard let end = state.withLock({ $0.ends.last }) else { return false }
            // Without events, only a hang-up or an error ends the wait.
            let deadline = monotonicNanoseconds() + 60_000_000_000
            return await offThread { (try? poll(end.number, events: 0, until: deadline)) == true }
        }
    }

    @Test func iterationBeginsWithTheAdaptersAndContinuesWithEachChange() async {
        let kernel = Kernel()
        kernel.set([0])
        var iterator = kernel.monitor().makeAsyncIterator()
        #expect(await iterator.next()?.adapters.map(\.index) == [0])
        kernel.set([0, 1])
        #expect(await iterator.next()?.adapters.map(\.index) == [0, 1])
        kernel.set([1], message: [0x05, 0x00, 0x00, 0x00, 0x00, 0x00])
        #expect(await iterator.next()?.adapters.map(\.index) == [1])
    }

    @Test func messagesThatDoNotMatterAreIgnored() async {
        let kernel = Kernel()
        var iterator = kernel.monitor().makeAsyncIterator()
        #expect(await iterator.next()?.adapters.isEmpty == true)
        for message in [[0x0B, 0x00, 0x00, 0x00, 0x00, 0x00], [0x04], [0x04, 0x00, 0x00, 0x00, 0xFF, 0xFF]] as [[UInt8]]
        {
            kernel.set([7], message: message)
        }
        kernel.set([1, 2])
        #expect(await iterator.next()?.adapters.map(\.index) == [1, 2])
    }

    @Test func slowReaderGetsTheNewestOnly() async {
        let kernel = Kernel()
        var iterator = kernel.monitor().makeAsyncIterator()
        #expect(await iterator.next()?.adapters.isEmpty == true)
        for count in 1...500 { kernel.set(Array(0..<count)) }
        var found: [Int] = []
        while found.last != 500, let next = await iterator.next() { found.append(next.adapters.count) }
        #expect(found.last == 500)
        #expect(found == found.sorted())
    }

    @Test func withoutAManagementSocketTheInventoryIsReadAtAnInterval() async {
        let kernel = Kernel(hasManagement: false)
        var iterator = kernel.monitor(interval: 1000).makeAsyncIterator()
        #expect(await iterator.next()?.adapters.isEmpty == true)
        kernel.set([3])
        #expect(await iterator.next()?.adapters.map(\.index) == [3])
    }

    /// The kernel sends no message unless a program has used the management interface for the adapter.
    @Test func changeWithoutAMessageIsFoundAtTheInterval() async {
        let kernel = Kernel()
        var iterator = kernel.monitor(interval: 1000).makeAsyncIterator()
        #expect(await iterator.next()?.adapters.isEmpty == true)
        for index in 0..<3 {
            kernel.set([index], message: nil)
            #expect(await iterator.next()?.adapters.map(\.index) == [index])
        }
        #expect(kernel.socketCount == 1, "the socket stays open")
    }

    @Test func endOfTheSocketDoesNotEndTheMonitor() async {
        let kernel = Kernel()
        var iterator = kernel.monitor(interval: 1000).makeAsyncIterator()
        #expect(await iterator.next()?.adapters.isEmpty == true)
        kernel.closeSockets()
        // Another socket is opened.
        while kernel.socketCount == 0 { await Task.yield() }
        kernel.set([5])
        #expect(await iterator.next()?.adapters.map(\.index) == [5])
    }

    @Test func cancellationEndsTheIterationAndClosesTheSocket() async throws {
        let kernel = Kernel()
        let monitor = kernel.monitor()
        let task = Task {
            var count = 0
            for await _ in monitor { count += 1 }
            return count
        }
        while kernel.socketCount == 0 { await Task.yield() }
        task.cancel()
        #expect(await task.value <= 1)
        #expect(await kernel.seesTheEnd())
    }
}
