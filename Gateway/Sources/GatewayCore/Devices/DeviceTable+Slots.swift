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
    /// - Parameter refusals: the positions of adapters that have refused the connection.
    /// - Throws: ``DeviceCommandError`` if the device has a connection, or if no slot or no adapter is left.
    func acquireSlot(
        for address: UInt64,
        isRandom: Bool?,
        besides refusals: Set<Int> = []
    ) throws(DeviceCommandError) -> DeviceSlot {
        let result = state.withLock { state -> Result<DeviceSlot, DeviceCommandError> in
            if let obstacle = obstacle(toUseOf: address, state) { return .failure(obstacle) }
            let slots = connectionSlots(state)
            let isAnyUsable = adapters.runners.contains { $0.usableAdapter != nil }
            guard !isAnyUsable || slots.free > 0 else {
                return .failure(
                    DeviceCommandError(.noSlot, "all \(slots.limit) connections are in use; try again later")
                )
            }
            guard let runner = adapter(for: address, besides: refusals, &state), let adapter = runner.usableAdapter
            else {
                guard !isAnyUsable else {
                    return .failure(
                        DeviceCommandError(.noSlot, "the controller holds no further connection; try again later")
                    )
                }
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

    /// The reason why a command cannot use a device; nil if it can.
    func obstacle(toUseOf address: UInt64, _ state: borrowing State) -> DeviceCommandError? {
        guard !state.isStopping else { return DeviceCommandError(.stopped, "the gateway stops") }
        guard !state.connections.contains(where: { $0.address == address }), state.slots[address] == nil else {
            return DeviceCommandError(.busy, "another client has the device; try again later")
        }
        return nil
    }

    /// Learns that a slot has its connection.
    func connected(_ slot: DeviceSlot) {
        slot.isConnected.store(true, ordering: .relaxed)
        linkMade(through: slot.adapterIndex)
        events.record(.deviceConnected, "\(slot.device)", "for commands over MQTT")
    }

    /// Frees a slot whose connection has ended.
    ///
    /// - Parameters:
    ///   - isRefused: whether the adapter has refused the connection because it holds no further one.
    ///   - hasFailed: whether the device could not be connected.
    func release(_ slot: DeviceSlot, isRefused: Bool = false, hasFailed: Bool = false) {
        state.withLock { state in
            guard state.slots[slot.device.value] === slot else { return }
            state.slots[slot.device.value] = nil
            if isRefused { linkRefused(by: slot.adapterIndex, &state) }
            if hasFailed { attemptFailed(slot.device.value, through: slot.adapterIndex, &state) }
            informSubscribers(&state)
        }
    }
}
