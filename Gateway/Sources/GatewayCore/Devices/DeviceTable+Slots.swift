import BLE
import Synchronization

/// A slot for a connection that no client of the native API has requested.
final class DeviceSlot: Sendable {
    let device: DeviceAddress
    let adapter: Adapter
    let adapterIndex: Int
    /// Work on the same device that has to end before the connection.
    let predecessor: Task<Void, Never>?
    let isConnected = Atomic(false)

    init(_ device: DeviceAddress, adapter: Adapter, adapterIndex: Int, predecessor: Task<Void, Never>?) {
        self.device = device
        self.adapter = adapter
        self.adapterIndex = adapterIndex
        self.predecessor = predecessor
    }
}

extension DeviceTable {
    /// Takes a slot for a device.
    ///
    /// - Throws: ``DeviceCommandError`` if the device has a connection, or if no slot or no adapter is left.
    func acquireSlot(for address: UInt64, isRandom: Bool?) throws(DeviceCommandError) -> DeviceSlot {
        let result = state.withLock { state -> Result<DeviceSlot, DeviceCommandError> in
            guard !state.isStopping else { return .failure(DeviceCommandError(.stopped, "the gateway stops")) }
            guard !state.connections.contains(where: { $0.address == address }), state.slots[address] == nil else {
                return .failure(DeviceCommandError(.busy, "another client has the device; try again later"))
            }
            guard state.usedCount < limit else {
                return .failure(DeviceCommandError(.noSlot, "all \(limit) connections are in use; try again later"))
            }
            guard let runner = adapter(for: address, &state), let adapter = runner.usableAdapter else {
                return .failure(DeviceCommandError(.noAdapter, "no adapter can be used now; try again later"))
            }
            let slot = DeviceSlot(
                DeviceAddress(address, isRandom: isRandom ?? (address >> 46 == 0b11)),
                adapter: adapter,
                adapterIndex: runner.index,
                predecessor: state.changes[address]?.task
            )
            state.slots[address] = slot
            informSubscribers(&state)
            return .success(slot)
        }
        return try result.get()
    }

    /// Frees a slot whose connection has ended.
    func release(_ slot: DeviceSlot) {
        state.withLock { state in
            guard state.slots[slot.device.value] === slot else { return }
            state.slots[slot.device.value] = nil
            informSubscribers(&state)
        }
    }
}
