import BluetoothTypes
import Dispatch
import Synchronization
import Testing

@testable import BLE
@testable import BLEHCITransport

@Suite("Opening a controller again that was lost")
struct ControllerOpeningTests {
    private static let address = DeviceAddress(0x001A_7DDA_7101, isRandom: false)
    private static let absence = TransportError.noAdapterWithAddress(address, present: "")

    /// Adapters whose state a test sets.
    private final class Kernel: Sendable {
        private struct State {
            var outcome: Result<Int, TransportError> = .success(0)
            var report: (@Sendable (AdapterInventory) -> Void)?
            var watchCount = 0
            var returnCount = 0
            var isCancelled: CancellationCheck = { false }
        }

        private let state = Mutex(State())

        var isWatched: Bool { state.withLock { $0.report != nil } }
        var watchCount: Int { state.withLock(\.watchCount) }
        var returnCount: Int { state.withLock(\.returnCount) }
        /// Whether the last opening was cancelled.
        var isCancelled: Bool { state.withLock(\.isCancelled)() }

        /// Sets the number of the adapter that is opened, or the error.
        func set(_ outcome: Result<Int, TransportError>) { state.withLock { $0.outcome = outcome } }

        func opening(_ specification: AdapterSpecification) -> ControllerOpening {
            let opening = ControllerOpening(specification) { report in
                self.state.withLock { state in
                    state.watchCount += 1
                    state.report = report
                }
                return { self.state.withLock { $0.report = nil } }
            } opener: { _, isCancelled async throws(TransportError) in
                self.state.withLock { $0.isCancelled = isCancelled }
                let index = try self.state.withLock(\.outcome).get()
                let (transport, _) = PipeTransport.makePair(DispatchQueue(label: "own"), DispatchQueue(label: "other"))
                return OpenedController(transport: transport, specification: .hci(index: index, channel: .user))
            }
            opening.setReturnHandler { self.state.withLock { $0.returnCount += 1 } }
            return opening
        }

        /// Reports the adapters with these numbers. Adapter 0 has no known address, the others have that of the test.
        func report(_ indices: Int...) {
            var inventory = AdapterInventory()
            inventory.adapters = indices.map { index in
                var adapter = KernelAdapter(index: index)
                adapter.address = index == 0 ? nil : ControllerOpeningTests.address
                return adapter
            }
            state.withLock(\.report)?(inventory)
        }
    }

    /// Opens the controller, and expects this number or error.
    private func open(_ opening: ControllerOpening, _ kernel: Kernel, _ outcome: Result<Int, TransportError>) async {
        kernel.set(outcome)
        do throws(TransportError) {
            _ = try await opening.open()
            #expect(opening.controller == (try? outcome.get()).map { .hci(index: $0, channel: .user) })
        } catch {
            #expect(outcome == .failure(error))
        }
    }

    @Test func adapterWithAnAddressIsExpectedUnderAnyNumber() async {
        let kernel = Kernel()
        let opening = kernel.opening(.address(Self.address, channel: .user))
        await open(opening, kernel, .success(3))
        #expect(!kernel.isWatched)
        await open(opening, kernel, .failure(Self.absence))
        await open(opening, kernel, .failure(Self.absence))
        #expect(kernel.isWatched && kernel.watchCount == 1)
        kernel.report()
        kernel.report(0)
        #expect(kernel.returnCount == 0)
        kernel.report(0, 7)
        #expect(kernel.returnCount == 1)
        await open(opening, kernel, .success(7))
        #expect(!kernel.isWatched && kernel.returnCount == 1)
    }

    @Test func adapterWithANumberIsExpectedUnderIt() async {
        let kernel = Kernel()
        let opening = kernel.opening(.hci(index: 3, channel: .user))
        await open(opening, kernel, .success(3))
        await open(opening, kernel, .failure(.noSuchAdapter(index: 3)))
        kernel.report(7)
        #expect(kernel.returnCount == 0)
        kernel.report(3)
        #expect(kernel.returnCount == 1)
    }

    /// A program that opens the adapter for the first time gets the error.
    @Test func adapterThatWasNeverThereIsNotWatched() async {
        let kernel = Kernel()
        let opening = kernel.opening(.address(Self.address, channel: .user))
        await open(opening, kernel, .failure(Self.absence))
        #expect(kernel.watchCount == 0)
    }

    /// Each attempt to open an adapter changes its state. So a report of that state must not cause the next attempt.
    @Test func adapterThatIsThereAndCannotBeOpenedIsNotWatched() async {
        let kernel = Kernel()
        let opening = kernel.opening(.address(Self.address, channel: .user))
        await open(opening, kernel, .success(3))
        await open(opening, kernel, .failure(Self.absence))
        await open(opening, kernel, .failure(.adapterBusy(index: 3)))
        #expect(!kernel.isWatched)
    }

    @Test func closedOpeningDoesNotWatch() async {
        let kernel = Kernel()
        let opening = kernel.opening(.address(Self.address, channel: .user))
        await open(opening, kernel, .success(3))
        await open(opening, kernel, .failure(Self.absence))
        opening.close()
        #expect(!kernel.isWatched)
        await open(opening, kernel, .failure(Self.absence))
        #expect(!kernel.isWatched && kernel.watchCount == 1)
    }

    @Test func closingCancelsTheOpening() async {
        let kernel = Kernel()
        let opening = kernel.opening(.automatic)
        await open(opening, kernel, .failure(.adapterBusy(index: 3)))
        #expect(!kernel.isCancelled)
        opening.close()
        #expect(kernel.isCancelled)
    }

    /// `auto` always brings an adapter down.
    @Test(
        arguments: [
            (.automatic, false, true), (.automatic, true, true),
            (.address(address, channel: .user), false, false), (.address(address, channel: .user), true, true),
            (.hci(index: 3, channel: .user), false, false), (.hci(index: 3, channel: .user), true, true),
        ] as [(AdapterSpecification, Bool, Bool)]
    )
    func adapterIsBroughtDownAsConfigured(specification: AdapterSpecification, isSet: Bool, bringsDown: Bool) {
        var configuration = Adapter.Configuration()
        configuration.bringsAdapterDown = isSet
        #expect(ControllerOpening.options(for: specification, configuration).bringsAdapterDown == bringsDown)
        #expect(!Adapter.Configuration().bringsAdapterDown)
    }
}
