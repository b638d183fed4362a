import BLE
import Synchronization

/// The kernel's adapters: how they are observed and opened.
protocol AdapterSystem: Sendable {
    /// Reports the inventory, now and after each change, until the task is cancelled.
    func observe(_ report: @Sendable (AdapterInventory) -> Void) async
    /// Opens an adapter.
    func open(
        _ specification: AdapterSpecification,
        _ configuration: Adapter.Configuration
    ) async throws(BLEError) -> Adapter
}

/// The adapters of this machine.
struct MachineAdapters: AdapterSystem {
    func observe(_ report: @Sendable (AdapterInventory) -> Void) async {
        for await inventory in AdapterMonitor() { report(inventory) }
    }

    func open(
        _ specification: AdapterSpecification,
        _ configuration: Adapter.Configuration
    ) async throws(BLEError) -> Adapter {
        try await Adapter.open(specification, configuration: configuration)
    }
}

/// The inventory of the kernel's adapters, shared by all adapters of a gateway.
final class AdapterWatch: Sendable {
    private struct State {
        var inventory: AdapterInventory?
        var subscribers: [Int: AsyncStream<AdapterInventory>.Continuation] = [:]
        var lastSubscriber = 0
    }

    private let system: any AdapterSystem
    private let state = Mutex(State())

    init(_ system: any AdapterSystem) {
        self.system = system
    }

    /// Observes the adapters until the task is cancelled.
    func run() async {
        await system.observe { update($0) }
    }

    private func update(_ inventory: AdapterInventory) {
        state.withLock { state in
            state.inventory = inventory
            for continuation in state.subscribers.values { continuation.yield(inventory) }
        }
    }

    /// The inventory, now if it is known, and after each change. Only the newest waits for the reader.
    func inventories() -> AsyncStream<AdapterInventory> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: AdapterInventory.self,
            bufferingPolicy: .bufferingNewest(1)
        )
        let number = state.withLock { state in
            state.lastSubscriber += 1
            state.subscribers[state.lastSubscriber] = continuation
            if let inventory = state.inventory { continuation.yield(inventory) }
            return state.lastSubscriber
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { _ = $0.subscribers.removeValue(forKey: number) }
        }
        return stream
    }

    /// The inventory, once it is known; empty if the task is cancelled.
    var inventory: AdapterInventory {
        get async {
            for await inventory in inventories() { return inventory }
            return AdapterInventory()
        }
    }

    /// Waits until an adapter appears, disappears or changes its number.
    ///
    /// - Parameter known: the adapters before.
    /// - Returns: whether this has happened within the time.
    func waitForChange(from known: AdapterInventory, atMost time: Duration) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                try? await Task.sleep(for: time)
                return false
            }
            group.addTask {
                for await inventory in self.inventories() where !inventory.hasSameAdapters(as: known) { return true }
                return false
            }
            let isChanged = await group.next() ?? false
            group.cancelAll()
            return isChanged
        }
    }
}

extension AdapterInventory {
    /// Whether the same adapters are there under the same numbers. Their states may differ: a program that opens an
    /// adapter, or fails to, changes its state.
    fileprivate func hasSameAdapters(as other: AdapterInventory) -> Bool {
        adapters.count == other.adapters.count
            && zip(adapters, other.adapters).allSatisfy { $0.index == $1.index && $0.address == $1.address }
    }

    /// Whether an adapter is there, under its number.
    func contains(_ adapter: KernelAdapter) -> Bool {
        adapters.contains { candidate in
            candidate.index == adapter.index
                && (candidate.address == nil || adapter.address == nil || candidate.address == adapter.address)
        }
    }
}

extension AdapterSpecification {
    /// Whether the specification refers to an adapter of the kernel.
    var isOfKernel: Bool {
        switch self {
        case .hci, .address, .automatic: true
        case .unix, .seqpacket, .tcp, .serial, .virtual: false
        }
    }

    /// Whether the specification names this adapter of the kernel, so that `auto` leaves it.
    func names(_ adapter: KernelAdapter) -> Bool {
        switch self {
        case .hci(let index, _): index == adapter.index
        case .address(let address, _): address.value == adapter.address?.value
        case .automatic, .unix, .seqpacket, .tcp, .serial, .virtual: false
        }
    }
}
