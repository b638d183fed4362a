import BLE
import ESPHomeProtocol

// Changes of what the adapters have saved about devices that are not connected. They are made after earlier changes of
// the same device, and before later connections to it.
extension DeviceTable {
    /// Makes a change for a client.
    ///
    /// - Parameter body: makes the change and returns the message for the client.
    func change(
        _ address: UInt64,
        for client: Client,
        _ state: inout State,
        _ body: @escaping @Sendable () async -> Message
    ) {
        client.beginRequest()
        change(address, &state) {
            client.send(await body())
            client.finishRequests()
        }
    }

    private func change(_ address: UInt64, _ state: inout State, _ body: @escaping @Sendable () async -> Void) {
        let predecessor = state.changes[address]?.task
        state.lastChange += 1
        let number = state.lastChange
        let task = Task {
            await predecessor?.value
            await body()
            self.state.withLock { state in
                if state.changes[address]?.number == number { state.changes[address] = nil }
            }
        }
        state.changes[address] = (number, task)
    }

    /// Removes the bonds of all adapters with a device, for a command.
    ///
    /// - Parameter addresses: the addresses under which adapters may be bonded to the device.
    /// - Returns: whether there was a bond.
    /// - Throws: ``DeviceCommandError`` if the device has a connection, or the gateway stops.
    func removeBonds(of address: UInt64, bondedAs addresses: Set<UInt64>) async throws(DeviceCommandError) -> Bool {
        let result: Result<Bool, DeviceCommandError> = await withCheckedContinuation { waiting in
            state.withLock { state in
                if let obstacle = obstacle(toUseOf: address, state) {
                    return waiting.resume(returning: .failure(obstacle))
                }
                change(address, &state) { [adapters] in
                    waiting.resume(returning: .success(await adapters.removeBonds(with: addresses)))
                }
            }
        }
        return try result.get()
    }
}
