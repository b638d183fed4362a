import BLE
import Logging
import Synchronization

/// Keeps an adapter open, and scans with it when clients need that.
///
/// ## Adapters that move
///
/// An adapter of the kernel may disappear, and come back under another number. The runner then closes it, so its
/// connections end, and opens it again when the kernel reports that an adapter has appeared. In between it also tries
/// again at growing intervals. A controller that only fails stays open, and its host resets it.
final class AdapterRunner: Sendable {
    /// Where an adapter comes from.
    enum Source: Sendable {
        /// The runner opens it, and opens it again when it fails.
        case opener(AdapterOpener)
        /// The caller has opened it, and closes it.
        case adapter(Adapter)
    }

    private struct State {
        var adapter: Adapter?
        /// Whether the controller has been brought up; false while it is reset.
        var isReady = false
        /// Whether the adapter is being closed because it was removed.
        var isClosing = false
        var failure: String? = "not opened yet"
        /// The adapter of the kernel; nil for other controllers.
        var kernelAdapter: KernelAdapter?
        /// The address that the adapter had when it was open last.
        var address: DeviceAddress?
        /// The identity addresses of the devices that the adapter was bonded to when its bonds were read last.
        var bondedDevices: Set<UInt64> = []
        /// The bonds to remove when the adapter is open again.
        var removals = BondRemovals()
        /// The number of the last read of the bonds that has begun, and of the last one that was used.
        var bondReads: (begun: UInt64, used: UInt64) = (0, 0)

        /// The adapter, if changes of its bonds are saved.
        var savingAdapter: Adapter? { isClosing ? nil : adapter }
    }

    /// The longest time between two attempts to open an adapter, in seconds.
    private static let longestDelay = 30

    /// The position of the adapter among all.
    let index: Int
    /// The adapter's name for people.
    let name: String
    private let source: Source
    private let watch: AdapterWatch
    private let scanner: Scanner
    private let events: EventLog
    private let logger: Logger
    private let state = Mutex(State())

    /// - Parameter name: the adapter's name for people, which no other adapter has; see ``names(of:)``.
    init(
        index: Int,
        name: String,
        source: Source,
        watch: AdapterWatch,
        scanner: Scanner,
        events: EventLog,
        logger: Logger
    ) {
        self.index = index
        self.name = name
        self.source = source
        self.watch = watch
        self.scanner = scanner
        self.events = events
        var logger = logger
        logger[metadataKey: "adapter"] = "\(name)"
        self.logger = logger
    }

    /// Returns the names of adapters: their specifications, or their positions. A name that repeats an earlier one gets
    /// a number, as in "auto (2)".
    static func names(of sources: [Source]) -> [String] {
        var used: Set<String> = []
        return sources.enumerated().map { index, source in
            let base =
                switch source {
                case .opener(let opener): "\(opener.specification)"
                case .adapter: "adapter \(index)"
                }
            var (name, count) = (base, 1)
            while !used.insert(name).inserted {
                count += 1
                name = "\(base) (\(count))"
            }
            return name
        }
    }

    /// The adapter; nil while it is not open.
    var adapter: Adapter? { state.withLock(\.adapter) }
    /// The adapter; nil while it is not open or its controller is reset.
    var usableAdapter: Adapter? { state.withLock { $0.isReady ? $0.adapter : nil } }
    /// The reason why the adapter cannot be used.
    var failure: String? { state.withLock(\.failure) }
    /// The kernel's name of the adapter now; nil while it is not open, or if it is not the kernel's.
    var kernelName: String? { state.withLock { $0.adapter == nil ? nil : $0.kernelAdapter?.name } }
    /// The address that the adapter had when it was open last; nil if it was not.
    var address: String? { state.withLock { $0.address.map { "\($0)" } } }
    /// Whether the adapter has a bond with a device, or had one when it was open last.
    func hasBond(with address: UInt64) -> Bool { state.withLock { $0.bondedDevices.contains(address) } }

    // MARK: Opening

    /// Keeps the adapter open until the task is cancelled.
    ///
    /// - Parameter changed: is called when the adapter can be used, and when it no longer can.
    func run(_ changed: @escaping @Sendable () -> Void) async {
        func set(_ change: (inout State) -> Void) {
            state.withLock { change(&$0) }
            changed()
        }
        var failureCount = 0
        while !Task.isCancelled {
            let inventory = await currentInventory()
            do throws(BLEError) {
                let opened = try await open(in: inventory)
                failureCount = 0
                let address = try? await opened.adapter.information.identityAddress
                state.withLock { state in
                    state.address = address ?? state.address
                    state.isClosing = false
                }
                await performRemovals(on: opened.adapter)
                await readBonds(of: opened.adapter)
                set { state in
                    state.adapter = opened.adapter
                    state.isReady = true
                    state.failure = nil
                    state.kernelAdapter = opened.kernelAdapter
                    // The lock is held, so that a reset is reported after this.
                    scanner.report(.idle, of: index)
                }
                logger.info("adapter open", metadata: place)
                events.record(.adapterOpened, name)
                await serve(opened.adapter, changed)
                set { state in
                    if state.failure == nil { state.failure = "closed" }
                    state.adapter = nil
                    state.isReady = false
                }
                events.record(.adapterClosed, name)
                scanner.report(.failed, of: index)
                guard case .opener = source else { return }
                await Self.uncancelled { await opened.adapter.close() }
            } catch {
                // The gateway stops.
                guard !Task.isCancelled else { return }
                let text = "\(error)"
                let isRepetition = failure == text
                set { $0.failure = text }
                scanner.report(.failed, of: index)
                events.record(.adapterFailed, name, text)
                logger.log(level: isRepetition ? .debug : .warning, "the adapter cannot be opened: \(text)")
                let delay = Duration.seconds(min(1 << min(failureCount, 5), Self.longestDelay))
                failureCount = await pause(delay, since: inventory) ? 0 : failureCount + 1
            }
        }
    }

    /// Whether the adapter is one of the kernel that the runner opens.
    private var isOfKernel: Bool {
        if case .opener(let opener) = source { opener.specification.isOfKernel } else { false }
    }

    /// The kernel's adapters; empty if they do not matter.
    private func currentInventory() async -> AdapterInventory {
        isOfKernel ? await watch.inventory : AdapterInventory()
    }

    /// Waits for a time, or until an adapter of the kernel appears or disappears, if that matters.
    ///
    /// - Returns: whether one has.
    private func pause(_ delay: Duration, since inventory: AdapterInventory) async -> Bool {
        if isOfKernel { return await watch.waitForChange(from: inventory, atMost: delay) }
        try? await Task.sleep(for: delay)
        return false
    }

    private func open(in inventory: AdapterInventory) async throws(BLEError) -> AdapterOpener.Opened {
        switch source {
        case .opener(let opener): try await opener.open(in: inventory)
        case .adapter(let adapter): AdapterOpener.Opened(adapter: adapter)
        }
    }

    private var place: Logger.Metadata {
        state.withLock { state in
            var metadata: Logger.Metadata = [:]
            metadata["device"] = state.kernelAdapter.map { .string($0.name) }
            metadata["address"] = state.address.map { .string("\($0)") }
            return metadata
        }
    }

    /// Reads the adapter's bonds again, after those with connected devices may have changed.
    func readBonds() async {
        if let adapter { await readBonds(of: adapter) }
    }

    private func readBonds(of adapter: Adapter) async {
        let number = state.withLock { state in
            state.bondReads.begun += 1
            return state.bondReads.begun
        }
        let devices = Set(await adapter.bonds().map(\.identity.value))
        state.withLock { state in
            // A read that has begun later has all changes before this one.
            guard number > state.bondReads.used else { return }
            state.bondReads.used = number
            state.bondedDevices = devices.subtracting(state.removals.devices(of: state.address))
        }
    }

    /// Removes the adapter's bond with a device. If the adapter is absent and had the bond when it was open last, the
    /// bond is removed when the adapter is open again.
    ///
    /// - Parameter address: the device's identity address, public or random.
    /// - Returns: whether there was such a bond.
    func removeBond(with address: UInt64) async -> Bool {
        let (adapter, isRemembered) = state.withLock { state -> (Adapter?, Bool) in
            if let adapter = state.savingAdapter { return (adapter, false) }
            guard state.bondedDevices.remove(address) != nil else { return (nil, false) }
            state.removals.insert(address, of: state.address)
            return (nil, true)
        }
        guard let adapter else { return isRemembered }
        let isRemoved = await Self.removeBond(with: address, from: adapter)
        await readBonds(of: adapter)
        state.withLock { state in
            // The adapter may have been closed before the change was saved.
            if isRemoved, state.savingAdapter == nil { state.removals.insert(address, of: state.address) }
        }
        return isRemoved
    }

    private static func removeBond(with address: UInt64, from adapter: Adapter) async -> Bool {
        var isRemoved = false
        for isRandom in [false, true] where await adapter.removeBond(DeviceAddress(address, isRandom: isRandom)) {
            isRemoved = true
        }
        return isRemoved
    }

    /// Removes the bonds from an adapter that were removed while it was absent.
    private func performRemovals(on adapter: Adapter) async {
        let (address, devices) = state.withLock { ($0.address, $0.removals.devices(of: $0.address)) }
        guard !devices.isEmpty else { return }
        for device in devices {
            _ = await Self.removeBond(with: device, from: adapter)
            state.withLock { state in
                // An adapter that is being closed may not save the change.
                if !state.isClosing { state.removals.remove(device, of: address) }
            }
        }
        logger.info("forgot the bonds that were removed in its absence", metadata: ["count": "\(devices.count)"])
        await readBonds(of: adapter)
    }

    /// Uses an adapter until it is closed, disappears, or the task is cancelled.
    private func serve(_ adapter: Adapter, _ changed: () -> Void) async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.scanOnDemand(adapter) }
            // Bonds may have been removed since the adapter was opened.
            group.addTask { await self.performRemovals(on: adapter) }
            if isOfKernel { group.addTask { await self.closeWhenRemoved(adapter) } }
            for await event in await adapter.events() { handle(event, changed) }
            group.cancelAll()
        }
    }

    /// Handles an event of the adapter.
    ///
    /// - Parameter changed: is called when the adapter can be used, and when it no longer can.
    func handle(_ event: HostEvent, _ changed: () -> Void) {
        switch event {
        case .resetting(let reason):
            logger.warning("the controller is reset: \(reason)")
            events.record(.adapterReset, name, reason)
            state.withLock { state in
                state.isReady = false
                state.failure = reason
            }
            changed()
            scanner.report(.failed, of: index)
        case .poweredOn:
            logger.info("the controller is ready")
            state.withLock { state in
                state.isReady = true
                state.failure = nil
            }
            changed()
            scanner.reportReady(index)
        case .scanRestarted(let silence):
            logger.info("the scan was restarted after \(silence) without packets")
            events.record(.scanRestarted, name, "after \(silence) without packets")
        case .stateUnavailable(let reason):
            // An adapter that the runner has opened has logged a warning already.
            let isLogged = if case .opener = source { true } else { false }
            logger.log(level: isLogged ? .debug : .warning, "\(Gateway.withStateOption(reason))")
        case .closed, .eventsDropped: break
        }
    }

    /// Closes an adapter of the kernel when the kernel no longer lists it, unless its host has already opened it under
    /// another number.
    private func closeWhenRemoved(_ adapter: Adapter) async {
        guard case .opener(let opener) = source else { return }
        for await inventory in watch.inventories() {
            guard let known = state.withLock(\.kernelAdapter), !inventory.contains(known) else { continue }
            if let current = opener.kernelAdapter(of: adapter, in: inventory), inventory.contains(current),
                current.address == known.address, known.address != nil
            {
                state.withLock { $0.kernelAdapter = current }
                logger.info("the adapter has another number", metadata: place)
                continue
            }
            logger.warning("the adapter was removed", metadata: place)
            state.withLock { state in
                state.isReady = false
                state.isClosing = true
                state.failure = "\(known.name) was removed; waiting until it is back"
            }
            return await adapter.close()
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
                report(.idle)
            }
        }
        scan?.cancel()
        await scan?.value
    }

    /// Reports the state of the scan. While the controller is reset, the scan has failed.
    private func report(_ scan: Scanner.AdapterState) {
        state.withLock { state in
            // The lock is held, so that a reset is reported after this.
            scanner.report(state.isReady ? scan : .failed, of: index)
        }
    }

    /// Scans until the task is cancelled, again after a failure.
    private func scan(_ adapter: Adapter, _ mode: ScanMode) async {
        let options = ScanOptions(isActive: mode == .active, reportsDuplicates: true)
        var failureCount = 0
        while !Task.isCancelled {
            report(.running)
            do throws(BLEError) {
                for try await advertisement in adapter.central.scan(options) {
                    failureCount = 0
                    if scanner.receive(advertisement, in: mode, from: index) {
                        // This runs when the scan has received all advertisements that were read together.
                        Task(executorPreference: adapter.taskExecutor) { [scanner, index] in
                            scanner.endTurn(of: index)
                        }
                    }
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
