import BLEATT
import BLEGATT
import BluetoothHost
import BluetoothTypes
import Foundation

// Commands to the host, and results to the app.
extension CBPeripheral {
    /// The link for which the app calls a command, and the number of the connection.
    ///
    /// Both are read at once. The connection may end while the app calls the command. Its result then belongs to a
    /// connection that has ended, and is not delivered.
    struct CommandTarget {
        let peripheral: ConnectedPeripheral
        /// The ``Content/connection``.
        let connection: UInt64
    }

    /// The target of a command to the host; nil if the peripheral is not connected.
    ///
    /// Read it before the check that an attribute was discovered on this connection. The attribute then never belongs
    /// to an earlier link than the command, and has not changed before the last change that the command knows.
    var currentTarget: CommandTarget? {
        content.withLock { content in
            guard content.state == .connected, let link = content.link else { return nil }
            return CommandTarget(
                peripheral: ConnectedPeripheral(identifier: identifier, link: link, lastChange: content.lastChange),
                connection: content.connection
            )
        }
    }

    /// Returns the target of a command of the app. If the peripheral is not connected, reports the misuse.
    func commandTarget(_ command: String = #function) -> CommandTarget? {
        if let currentTarget { return currentTarget }
        let hasManager = content.withLock { $0.manager } != nil
        ProgrammerError.report(
            "\(self) can only accept \(command) while it is connected"
                + (hasManager ? "" : "; its manager was released or reset")
        )
        return nil
    }

    /// Calls the delegate, if there is one. Used on the manager's queue.
    func tell(_ body: (any CBPeripheralDelegate) -> Void) {
        if let delegate { body(delegate) }
    }

    // MARK: Writes

    func write(
        _ data: Data,
        to handle: AttributeHandle,
        of target: ConnectedPeripheral,
        _ answer: @escaping Completion<Void>
    ) {
        guard data.count <= CBPeripheral.longestValue else {
            return answerInOrder(.failure(.attribute(.invalidAttributeValueLength)), of: target, answer)
        }
        backend?.write(Array(data), to: handle, of: target, answer)
    }

    func writeWithoutResponse(
        _ data: Data,
        to characteristic: DiscoveredCharacteristic,
        of target: CommandTarget
    ) {
        guard characteristic.properties.contains(.writeWithoutResponse) else {
            return ProgrammerError.report(
                "\(characteristic.uuid) cannot be written without a response: nothing was written"
            )
        }
        let limit = maximumWriteValueLength(for: .withoutResponse)
        guard data.count <= limit else {
            return ProgrammerError.report(
                "\(data.count) bytes are too long for a write without response (maximum: \(limit)): nothing was written"
            )
        }
        let isConnected = content.withLock { content in
            guard content.connection == target.connection else { return false }
            content.writesInFlight += 1
            if content.writesInFlight >= CBPeripheral.writeLimit { content.owesReadiness = true }
            return true
        }
        // The connection may have ended in the meantime.
        guard isConnected else { return }
        backend?.writeWithoutResponse(
            Array(data),
            to: characteristic.valueHandle,
            of: target.peripheral,
            answer(for: target) { peripheral, _ in peripheral.writeHasLeft() }
        )
    }

    func writeHasLeft() {
        let isReady = content.withLock { content in
            content.writesInFlight -= 1
            guard content.owesReadiness, content.writesInFlight < CBPeripheral.writeLimit else { return false }
            content.owesReadiness = false
            return true
        }
        if isReady { tell { $0.peripheralIsReady(toSendWriteWithoutResponse: self) } }
    }

    // MARK: Answers

    /// Returns a completion for a command of the backend. It runs `body` on the manager's queue, unless the connection
    /// of `target` has ended by then.
    func answer<Value>(
        for target: CommandTarget,
        _ body: @escaping @Sendable (CBPeripheral, Result<Value, BackendError>) -> Void
    ) -> Completion<Value> where Value: Sendable {
        { [weak self, deliveryQueue] result in
            deliveryQueue.async { [weak self] in
                guard let self, self.content.withLock({ $0.connection }) == target.connection else { return }
                body(self, result)
            }
        }
    }

    /// Delivers a result that needs no request, after the results of the earlier calls of GATT. The app may have made
    /// these calls for the same attribute.
    func answerInOrder<Value: Sendable>(
        _ result: Result<Value, BackendError>,
        of target: ConnectedPeripheral,
        _ answer: @escaping Completion<Value>
    ) {
        backend?.completeInOrder(of: target) { ended in
            // The link may have ended.
            answer(ended.flatMap { _ in result })
        }
    }

    /// Stores the value of a successful result. Returns the error for the delegate, or nil.
    func take<Value>(
        _ result: Result<Value, BackendError>,
        _ body: (inout RemoteDatabase, Value) throws(BackendError) -> Void
    ) -> (any Error)? {
        do throws(BackendError) {
            let value = try result.get()
            try content.withLock { content throws(BackendError) in try body(&content.database, value) }
            return nil
        } catch {
            return error.error
        }
    }

    // MARK: Arguments

    /// Returns the UUIDs to look for; nil for all, if the list is nil or empty.
    func wanted(_ uuids: [CBUUID]?) -> [BluetoothUUID]? {
        uuids.flatMap { $0.isEmpty ? nil : $0.values }
    }

    func range(of service: CBService) -> HandleRange? {
        guard content.withLock({ $0.database.contains(service) }) else { return refuse(service) }
        return service.range
    }

    func discovered(_ characteristic: CBCharacteristic) -> DiscoveredCharacteristic? {
        guard content.withLock({ $0.database.contains(characteristic) }) else { return refuse(characteristic) }
        return characteristic.discovered
    }

    func handle(of descriptor: CBDescriptor) -> AttributeHandle? {
        guard content.withLock({ $0.database.contains(descriptor) }) else { return refuse(descriptor) }
        return descriptor.handle
    }

    func refuse<Value>(_ attribute: CBAttribute) -> Value? {
        ProgrammerError.report("\(attribute) was not discovered on this connection of \(self)")
        return nil
    }
}
