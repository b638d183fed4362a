import Dispatch

/// Reports the inventory of adapters, first as it is, then when it has changed.
///
/// ## States
///
/// The watcher listens to the management socket, and reads the inventory when a message reports a change. It also reads
/// the inventory at an interval. The kernel sends no message for an adapter that is brought up or down, unless a
/// program has used the management interface for that adapter. While there is no socket, or after it has failed, the
/// watcher tries to open one at each interval.
package final class AdapterWatcher: Sendable {
    private final class State {
        var source: (any DispatchSourceRead)?
        var timer: (any DispatchSourceTimer)?
        var last: AdapterInventory?
        var isStopped = false

        deinit {
            source?.cancel()
            timer?.cancel()
        }
    }

    /// Messages read before the inventory is read. The source fires again if there are more.
    private static let messageBudget = 256

    private let queue = DispatchQueue(label: "swift-ble.adapter-monitor")
    private let confined: LoopConfined<State>
    private let interval: DispatchTimeInterval
    private let openSocket: @Sendable () -> ManagementSocket?
    private let readInventory: @Sendable () -> AdapterInventory
    private let report: @Sendable (AdapterInventory) -> Void

    /// Creates a watcher of this machine's adapters.
    ///
    /// - Parameter report: is called on the watcher's queue.
    package convenience init(report: @escaping @Sendable (AdapterInventory) -> Void) {
        self.init(openSocket: ManagementSocket.open, report: report)
    }

    /// - Parameters:
    ///   - interval: how often the inventory is read if no message reports a change.
    ///   - report: is called on the watcher's queue.
    init(
        interval: DispatchTimeInterval = .seconds(5),
        openSocket: @escaping @Sendable () -> ManagementSocket?,
        readInventory: @escaping @Sendable () -> AdapterInventory = AdapterInventory.read,
        report: @escaping @Sendable (AdapterInventory) -> Void
    ) {
        self.interval = interval
        self.openSocket = openSocket
        self.readInventory = readInventory
        self.report = report
        confined = LoopConfined(State(), to: queue)
    }

    package func start() {
        queue.async { self.begin() }
    }

    package func stop() {
        queue.async { [confined] in
            let state = confined.value
            state.isStopped = true
            state.source?.cancel()
            state.source = nil
            state.timer?.cancel()
            state.timer = nil
        }
    }

    // MARK: On the queue

    private func begin() {
        let state = confined.value
        guard !state.isStopped, state.timer == nil else { return }
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now() + interval, repeating: interval)
        timer.setEventHandler { [weak self] in self?.poll() }
        state.timer = timer
        timer.activate()
        poll()
    }

    /// Listens if that is possible, and reads the inventory. The socket is opened first, so no message is missed.
    private func poll() {
        let state = confined.value
        guard !state.isStopped else { return }
        if state.source == nil, let socket = openSocket() { listen(to: socket) }
        reportChange()
    }

    private func listen(to socket: ManagementSocket) {
        let source = DispatchSource.makeReadSource(fileDescriptor: socket.descriptor.number, queue: queue)
        source.setEventHandler { [weak self] in self?.drain(socket) }
        source.setCancelHandler { withExtendedLifetime(socket) {} }
        confined.value.source = source
        source.activate()
    }

    /// Reads the messages that have arrived, and then the inventory once. If the kernel has dropped messages because
    /// there were too many, the inventory still has their effect.
    private func drain(_ socket: ManagementSocket) {
        let state = confined.value
        guard state.source != nil else { return }
        var isChanged = false
        for _ in 0..<Self.messageBudget {
            switch socket.receive() {
            case .success(.adapterChanged): isChanged = true
            case .success(.some): break
            case .failure(let error) where error.wouldBlock:
                if isChanged { reportChange() }
                return
            case .success(nil), .failure:
                state.source?.cancel()
                // The next poll opens another one. A socket that fails each time would keep the thread busy otherwise.
                state.source = nil
                return reportChange()
            }
        }
        if isChanged { reportChange() }
    }

    private func reportChange() {
        let state = confined.value
        guard !state.isStopped else { return }
        let inventory = readInventory()
        guard inventory != state.last else { return }
        state.last = inventory
        report(inventory)
    }
}
