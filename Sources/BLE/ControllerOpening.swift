import BLEHCITransport
import BLEVirtualController
import BluetoothHost
import Synchronization

/// Opens the transport of an adapter, first and again after each loss.
///
/// The host keeps the bonds and the identity of one controller. So after `auto` has chosen an adapter, later attempts
/// look for this adapter by its address, or by its number if the kernel does not know the address. Another controller
/// may have the number by then. The host notices this during the bring-up, and has the adapter opened again later if it
/// must not use the controller.
///
/// ## Adapters that come back
///
/// If an adapter of the kernel that was open is not there any more, the kernel's adapters are watched. When the adapter
/// is there again, under whatever number its specification allows, the return handler is called.
package final class ControllerOpening: Sendable {
    /// Opens the controller of a specification, unless the opening was cancelled.
    typealias Opener =
        @Sendable (AdapterSpecification, @escaping CancellationCheck) async throws(TransportError) -> OpenedController
    /// Begins to watch the kernel's adapters, and returns a function that ends this.
    typealias Watch = @Sendable (_ report: @escaping @Sendable (AdapterInventory) -> Void) -> @Sendable () -> Void

    private struct State {
        var controller: AdapterSpecification?
        /// What the next attempt opens.
        var target: AdapterSpecification
        /// Ends the watch; nil if the adapters are not watched.
        var endWatch: (@Sendable () -> Void)?
        var returnHandler: (@Sendable () -> Void)?
        var isClosed = false
    }

    private let openController: Opener
    private let watch: Watch
    private let state: Mutex<State>

    init(_ specification: AdapterSpecification, watch: @escaping Watch = watchAdapters, opener: @escaping Opener) {
        openController = opener
        self.watch = watch
        state = Mutex(State(target: specification))
    }

    convenience init(
        _ specification: AdapterSpecification,
        _ configuration: Adapter.Configuration,
        on loop: DispatchEventLoop
    ) {
        let options = ControllerOpening.options(for: specification, configuration)
        self.init(specification) { target, isCancelled async throws(TransportError) in
            var options = options
            options.isCancelled = isCancelled
            return try await target.openController(
                on: loop.queue,
                options: options,
                makeVirtual: VirtualAdapters.opener(on: loop)
            )
        }
    }

    /// Returns the options of all attempts to open the controller of a specification. After `auto` has chosen an
    /// adapter, later attempts name that adapter, and bring it down as well.
    static func options(
        for specification: AdapterSpecification,
        _ configuration: Adapter.Configuration
    ) -> TransportOptions {
        TransportOptions(
            bringsAdapterDown: configuration.bringsAdapterDown || specification == .automatic,
            advertisingReportDelay: configuration.advertisingReportDelay
        )
    }

    deinit { close() }

    /// The controller that was opened last; nil if none was.
    var controller: AdapterSpecification? { state.withLock(\.controller) }

    /// Sets the function that is called, on any thread, when an adapter that was open is there again.
    func setReturnHandler(_ handler: @escaping @Sendable () -> Void) {
        state.withLock { $0.returnHandler = handler }
    }

    private var isClosed: Bool { state.withLock(\.isClosed) }

    func open() async throws(TransportError) -> any Transport {
        let target = state.withLock(\.target)
        let opened: OpenedController
        do throws(TransportError) {
            opened = try await openController(target) { [weak self] in self?.isClosed ?? true }
        } catch {
            if error.meansAbsence { beginWatch() } else { endWatch() }
            throw error
        }
        endWatch()
        state.withLock { state in
            state.controller = opened.specification
            guard target == .automatic else { return }
            state.target = opened.adapter?.address.map { .address($0, channel: .user) } ?? opened.specification
        }
        return opened.transport
    }

    /// Ends the watch for good, and cancels an opening in progress. Its current step continues in the background. If it
    /// succeeds, the host closes the transport.
    func close() {
        state.withLock { $0.isClosed = true }
        endWatch()
    }

    // MARK: Watching

    /// Watches the adapters if one was open. The first report follows the attempt that has failed, so no return is
    /// missed.
    private func beginWatch() {
        state.withLock { state in
            guard state.controller != nil, !state.isClosed, state.endWatch == nil else { return }
            state.endWatch = watch { [weak self] inventory in self?.adaptersChanged(inventory) }
        }
    }

    private func endWatch() {
        let end = state.withLock { $0.endWatch.take() }
        end?()
    }

    private func adaptersChanged(_ inventory: AdapterInventory) {
        let handler = state.withLock { state in
            let candidates = try? state.target.candidates(in: inventory)
            return state.endWatch == nil || candidates?.isEmpty != false ? nil : state.returnHandler
        }
        handler?()
    }

    private static let watchAdapters: Watch = { report in
        let watcher = AdapterWatcher(report: report)
        watcher.start()
        return { watcher.stop() }
    }
}

extension TransportError {
    /// Whether the kernel does not have the adapter.
    fileprivate var meansAbsence: Bool {
        switch self {
        case .noSuchAdapter, .noAdapterWithAddress, .adapterRemoved, .bluetoothUnavailable: true
        default: false
        }
    }
}
