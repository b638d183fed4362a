import BLE
import BluetoothHost
import BluetoothTypes

// Calls that do not wait for clients, for callers that must not be blocked.
extension Peripheral {
    /// Submits an indication to the clients that have subscribed. It is sent to each client after the values of earlier
    /// calls, so a client that does not confirm delays no other.
    ///
    /// - Parameters:
    ///   - handle: the value handle of a published characteristic.
    ///   - completion: called once, on the adapter's loop, when each of the clients has confirmed or disconnected.
    /// - Throws: what ``indicate(_:of:to:)`` throws; `completion` is not called then.
    func submitIndication(
        _ value: [UInt8],
        of handle: AttributeHandle,
        completion: @escaping @Sendable () -> Void
    ) async throws(BLEError) {
        try requireProperty(.indicate, of: handle)
        await host.beginIndicating(value, of: handle) { _ in completion() }
    }

    /// Submits a notification to the clients that have subscribed. It is sent to each client after the values of
    /// earlier calls. A client that is 256 notifications behind the fastest misses it.
    ///
    /// - Parameters:
    ///   - handle: the value handle of a published characteristic.
    ///   - completion: called once, on the adapter's loop, when there was room for one of the clients, or all have
    ///     disconnected.
    /// - Throws: what ``notify(_:of:to:)`` throws; `completion` is not called then.
    func submitNotification(
        _ value: [UInt8],
        of handle: AttributeHandle,
        completion: @escaping @Sendable () -> Void
    ) async throws(BLEError) {
        try requireProperty(.notify, of: handle)
        await host.beginNotifying(value, of: handle) { _ in completion() }
    }

    /// Begins to end a client's link. ``PeripheralEvent/disconnected(_:_:)`` reports when it has ended.
    func beginDisconnecting(_ client: ClientID) async {
        await host.beginDisconnecting(client)
    }
}
