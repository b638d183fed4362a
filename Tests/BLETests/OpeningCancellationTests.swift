import BLE
import BLEHCITransport
import BluetoothHost
import BluetoothTesting
import Dispatch
import Synchronization
import Testing

@Suite("Opening an adapter whose controller does not answer", .timeLimit(.minutes(1)))
struct OpeningCancellationTests {
    /// The start of an adapter on a pipe, at whose other end nothing answers.
    private final class Opening: Sendable {
        private let loop = DispatchEventLoop(label: "opening")
        private let ends: (own: PipeTransport, other: PipeTransport)
        /// An element for each command of the host; it ends with the transport.
        let commands: AsyncStream<Void>
        private let openings = Atomic(0)

        /// How often the transport was opened.
        var openingCount: Int { openings.load(ordering: .relaxed) }

        init() {
            ends = PipeTransport.makePair(loop.queue.queue, DispatchQueue(label: "other"))
            let (commands, continuation) = AsyncStream<Void>.makeStream()
            self.commands = commands
            ends.other.start(onPacket: { _ in continuation.yield() }, onEnd: { _ in continuation.finish() })
        }

        /// Opens the adapter; returns the error, or nil if it is open.
        func open() async -> BLEError? {
            do throws(BLEError) {
                _ = try await Adapter.open(on: loop, configuration: Adapter.Configuration()) { [self] in
                    openings.add(1, ordering: .relaxed)
                    return ends.own
                }
                return nil
            } catch {
                return error
            }
        }
    }

    @Test("ends at once when its task is cancelled, and closes the transport")
    func cancelledOpeningClosesTheTransport() async {
        let opening = Opening()
        let task = Task { await opening.open() }
        var commands = opening.commands.makeAsyncIterator()
        #expect(await commands.next() != nil)
        #expect(opening.openingCount == 1)
        task.cancel()
        #expect(await task.value == .cancelled)
        while await commands.next() != nil {}
    }

    @Test("does not begin in a task that is cancelled already")
    func openingInACancelledTaskDoesNotBegin() async {
        let opening = Opening()
        let outcome = await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await opening.open()
        }.value
        #expect(outcome == .cancelled)
        #expect(opening.openingCount == 0)
    }
}
