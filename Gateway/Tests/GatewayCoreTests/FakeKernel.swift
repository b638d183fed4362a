import BLE
import Synchronization

@testable import GatewayCore

/// A kernel whose adapters are virtual controllers on one air. Tests plug them in and out.
final class FakeKernel: AdapterSystem {
    private struct State {
        var adapters: [KernelAdapter] = []
        var readers: [AsyncStream<AdapterInventory>.Continuation] = []
        /// The adapters in use, by the value of their address.
        var users: [UInt64: Adapter] = [:]
    }

    let air = "kernel \(UInt64.random(in: 0 ... .max))"
    private let state = Mutex(State())

    func observe(_ report: @Sendable (AdapterInventory) -> Void) async {
        for await inventory in inventories() { report(inventory) }
    }

    /// Assigns an index to an adapter, and removes the adapter that had it.
    func plug(_ address: UInt64, as index: Int) {
        change { adapters in
            adapters.removeAll { $0.index == index }
            var adapter = KernelAdapter(index: index)
            adapter.address = DeviceAddress(address, isRandom: false)
            adapter.flags = []
            adapters.append(adapter)
            adapters.sort { $0.index < $1.index }
        }
    }

    func unplug(_ address: UInt64) {
        change { adapters in adapters.removeAll { $0.address?.value == address } }
    }

    /// The open adapter with an address; nil if there is none.
    func adapter(_ address: UInt64) -> Adapter? { state.withLock { $0.users[address] } }

    private func change(_ body: (inout [KernelAdapter]) -> Void) {
        state.withLock { state in
            body(&state.adapters)
            for reader in state.readers { reader.yield(Self.inventory(of: state.adapters)) }
        }
    }

    private static func inventory(of adapters: [KernelAdapter]) -> AdapterInventory {
        var inventory = AdapterInventory()
        inventory.adapters = adapters
        return inventory
    }

    private func inventories() -> AsyncStream<AdapterInventory> {
        let (stream, continuation) = AsyncStream.makeStream(of: AdapterInventory.self)
        state.withLock { state in
            state.readers.append(continuation)
            continuation.yield(Self.inventory(of: state.adapters))
        }
        return stream
    }

    func open(
        _ specification: AdapterSpecification,
        _ configuration: Adapter.Configuration
    ) async throws(BLEError) -> Adapter {
        let found: KernelAdapter
        do throws(TransportError) {
            found = try find(specification)
        } catch {
            throw .adapter(error)
        }
        let address = found.address?.value ?? 0
        let isFree = state.withLock { $0.users[address] == nil }
        guard isFree else { throw .adapter(.adapterBusy(index: found.index)) }
        let adapter = try await Adapter.open(.virtual(name: air), configuration: configuration)
        state.withLock { $0.users[address] = adapter }
        Task { await release(adapter, address) }
        return adapter
    }

    private func find(_ specification: AdapterSpecification) throws(TransportError) -> KernelAdapter {
        let inventory = Self.inventory(of: state.withLock(\.adapters))
        guard let first = try specification.candidates(in: inventory).first else { throw .noAdapter }
        return first
    }

    /// Makes an adapter free when it has been closed.
    private func release(_ adapter: Adapter, _ address: UInt64) async {
        for await _ in await adapter.events() {}
        state.withLock { $0.users[address] = nil }
    }
}
