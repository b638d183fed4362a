import BLE
import Logging
import Synchronization

/// Keeps an adapter open, and scans with it when clients need that.
final class AdapterRunner: Sendable {
    /// Where an adapter comes from.
    enum Source: Sendable {
        /// The runner opens it, and opens it again when it fails.
        case specification(AdapterSpecification, Adapter.Configuration)
        /// The caller has opened it, and closes it.
        case adapter(Adapter)
    }

    private struct State {
        var adapter: Adapter?
        /// Whether the controller has been brought up; false while it is reset.
        var isReady = false
        var failure: String? = "not opened yet"
    }

    /// The position of the adapter among all.
    let index: Int
    /// The adapter's name for people.
    let name: String
    private let source: Source
    private let scanner: Scanner
    private let events: EventLog
    private let logger: Logger
    private let state = Mutex(State())

    init(index: Int, source: Source, scanner: Scanner, events: EventLog, logger: Logger) {
        self.index = index
        self.source = source
        self.scanner = scanner
        self.events = events
        var logger = logger
        switch source {
        case .specification(let specification, _): name = "\(specification)"
        case .adapter: name = "adapter \(index)"
        }
        logger[metadataKey: "adapter"] = "\(name)"
        self.logger = logger
    }

    /// The adapter; nil while it is not open.
    var adapter: Adapter? { state.withLock(\.adapter) }
    /// The adapter; nil while it is not open or its controller is reset.
    var usableAdapter: Adapter? { state.withLock { $0.isReady ? $0.adapter : nil } }
    /// The reason why the adapter cannot be used.
    var failure: String? { state.withLock(\.failure) }

    // MARK: Opening

    /// Keeps the adapter open until the task is cancelled.
    ///
    /// - Parameter changed: is called when the adapter can be used, and when it no longer can.
    func run(_ changed: @escaping @Sendable () -> Void) async {
        func set(_ newState: State) {
            state.withLock { $0 = newState }
            changed()
        }
        var failureCount = 0
        while !Task.isCancelled {
            do throws(BLEError) {
                let adapter = try await open()
                failureCount = 0
                set(State(adapter: adapter, isReady: true, failure: nil))
                logger.info("adapter open")
                events.record(.adapterOpened, name)
                await serve(adapter, set)
                set(State(failure: "closed"))
                events.record(.adapterClosed, name)
                scanner.report(.failed, of: index)
                guard case .specification = source else { return }
                await Self.uncancelled { await adapter.close() }
            } catch {
                set(State(failure: "\(error)"))
                scanner.report(.failed, of: index)
                failureCount += 1
                events.record(.adapterFailed, name, "\(error)")
                logger.warning("the adapter cannot be opened: \(error)")
                try? await Task.sleep(for: .seconds(min(1 << min(failureCount - 1, 5), 30)))
            }
        }
    }

    private func open() async throws(BLEError) -> Adapter {
        switch source {
        case .specification(let specification, let configuration):
            try await Adapter.open(specification, configuration: configuration)
        case .adapter(let adapter): adapter
        }
    }

    /// Uses an adapter until it is closed or the task is cancelled.
    private func serve(_ adapter: Adapter, _ set: (State) -> Void) async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.scanOnDemand(adapter) }
            for await event in await adapter.events() {
                switch event {
                case .resetting(let reason):
                    logger.warning("the controller is reset: \(reason)")
                    events.record(.adapterReset, name, reason)
                    set(State(adapter: adapter, failure: reason))
                    scanner.report(.failed, of: index)
                case .poweredOn:
                    logger.info("the controller is ready")
                    set(State(adapter: adapter, isReady: true, failure: nil))
                    scanner.reportReady(index)
                case .scanRestarted(let silence):
                    logger.info("the scan was restarted after \(silence) without packets")
                    events.record(.scanRestarted, name, "after \(silence) without packets")
                case .stateUnavailable(let reason): logger.warning("\(reason)")
                case .closed, .eventsDropped: break
                }
            }
            group.cancelAll()
        }
    }

    /// Runs `body` to its end, also in a cancelled task.
    private static func uncancelled(_ body: @escaping @Sendable () async -> Void) async {
        await Task { await body() }.value
    }

    // MARK: Scanning

    /// Scans as clients need it, until the task is cancelled.
    private func scanOnDemand(_ adapter: Adapter) async {
        var scan: Task<Void, Never>?
        var mode: ScanMode?
        for await demand in scanner.demands(for: index) where demand != mode {
            mode = demand
            scan?.cancel()
            await scan?.value
            scan = nil
            if let mode {
                // On the adapter's own thread, an advertisement reaches the scanner without a thread switch.
                scan = Task(executorPreference: adapter.taskExecutor) { await self.scan(adapter, mode) }
            } else {
                scanner.report(.idle, of: index)
            }
        }
        scan?.cancel()
        await scan?.value
    }

    /// Scans until the task is cancelled, again after a failure.
    private func scan(_ adapter: Adapter, _ mode: ScanMode) async {
        let options = ScanOptions(isActive: mode == .active, reportsDuplicates: true)
        var failureCount = 0
        while !Task.isCancelled {
            scanner.report(.running, of: index)
            do throws(BLEError) {
                for try await advertisement in adapter.central.scan(options) {
                    failureCount = 0
                    scanner.receive(advertisement, in: mode, from: index)
                }
            } catch {
                guard error != .cancelled else { return }
                scanner.report(.failed, of: index)
                failureCount += 1
                logger.warning("the scan failed: \(error)")
                try? await Task.sleep(for: .seconds(min(1 << min(failureCount - 1, 5), 30)))
            }
        }
    }
}
