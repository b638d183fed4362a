import BLEATT
import BLEGATT
import BLEHCI
import BluetoothHost
import BluetoothTypes
import Foundation

/// A value that a peripheral has notified or indicated. Later values do not change it.
public struct CBCharacteristicValue: Sendable {
    /// The characteristic.
    public let characteristic: CBCharacteristic
    /// The value; at most ATT_MTU - 3 and at most 512 bytes.
    public let value: Data
    /// The number of values that were dropped before this one because the reader was too slow. Values that were dropped
    /// because the manager's queue was blocked are not counted here.
    public internal(set) var droppedBefore = 0
}

extension CBPeripheral {
    /// The functions beyond Apple's API.
    public var linux: Linux { Linux(peripheral: self) }

    /// The functions of a peripheral beyond Apple's API, and an async form of its commands. The delegate is notified of
    /// values and disconnections as well. The result of an awaited call goes to its caller only.
    ///
    /// A call whose task is cancelled throws `CancellationError` at once. If the task was cancelled before the call,
    /// the call has no effect. Otherwise the host still carries out the operation.
    public struct Linux: Sendable {
        let peripheral: CBPeripheral

        // MARK: The link

        /// The address by which the host knows the peripheral.
        public var address: DeviceAddress? { peripheral.backend?.address(of: peripheral.identifier) }

        /// ATT_MTU in bytes: 23 without a connection.
        public var mtu: Int { peripheral.content.withLock { $0.mtu } }

        /// Returns the current parameters, PHYs and data lengths of the link.
        ///
        /// - Throws: `CBError.notConnected` without a connection, or another `CBError` if the connection ends.
        public func link() async throws -> LinkInformation {
            try await ask(peripheral.currentTarget) {
                $0.readLink(of: $1, $2)
            } finish: {
                $0
            }
        }

        /// Changes the connection's parameters. Returns when they are in effect.
        ///
        /// - Throws:
        ///   - `CBError.notConnected` without a connection, or another `CBError` if the connection ends
        ///   - `CBError.invalidParameters` if the parameters are out of range
        ///   - `CBError.connectionTimeout` after 40 s; on a slow link after 2 s and ten times the longest time for
        ///     which the peripheral does not listen, if that is longer
        ///   - another `CBError` if the controller or the peripheral refuses
        public func update(_ parameters: ConnectionParameters) async throws {
            try await ask(peripheral.currentTarget) {
                $0.updateParameters(parameters, of: $1, $2)
            } finish: {
                $0
            }
        }

        /// Requests other PHYs. The link continues with PHYs that both sides support.
        ///
        /// - Throws:
        ///   - `CBError.notConnected` without a connection, or another `CBError` if the connection ends
        ///   - `CBError.operationNotSupported` if the controller has LE 1M only
        ///   - `CBError.connectionTimeout` after 40 s; on a slow link after 2 s and ten times the longest time for
        ///     which the peripheral does not listen, if that is longer
        ///   - another `CBError` if the controller or the peripheral refuses
        public func setPHYs(transmit: PHYSet, receive: PHYSet) async throws {
            try await ask(peripheral.currentTarget) {
                $0.setPHYs(transmit: transmit, receive: receive, of: $1, $2)
            } finish: {
                $0
            }
        }

        // MARK: Values

        /// Returns a sequence of the values that the peripheral sends of a characteristic from now on, in order; see
        /// ``setNotifying(_:for:)``. The delegate receives these values as well.
        ///
        /// The sequence ends when the connection ends, or when the peripheral changes the characteristic's service.
        /// After that, discovery finds other objects. The sequence ends at once if this connection does not have the
        /// characteristic.
        ///
        /// - Parameters:
        ///   - characteristic: a characteristic of this peripheral.
        ///   - limit: maximum number of values that wait for a slow reader, at least 1. If more arrive, the oldest are
        ///     dropped; see ``CBCharacteristicValue/droppedBefore``.
        public func values(of characteristic: CBCharacteristic, limit: Int = 1024) -> Events<CBCharacteristicValue> {
            let values = peripheral.broadcastOfValues().sequence(
                limit: max(limit, 1),
                report: .mark { $0.droppedBefore = $1 },
                about: characteristic
            ) {
                $0.characteristic === characteristic
            }
            // The connection may have ended before the sequence existed.
            peripheral.endLostValues()
            return values
        }

        /// Starts or stops notifications or indications. Returns when the peripheral has agreed.
        ///
        /// - Throws:
        ///   - `CBError.notConnected` without a connection, or another `CBError` if the connection ends
        ///   - `CBError.invalidHandle` if this connection does not have the characteristic, or the peripheral changes
        ///     it before the call has ended
        ///   - `CBATTError.requestNotSupported` if the characteristic has neither notifications nor indications
        ///   - another `CBATTError` if the peripheral refuses
        public func setNotifying(_ isNotifying: Bool, for characteristic: CBCharacteristic) async throws {
            let target = peripheral.currentTarget
            guard let discovered = peripheral.discovered(characteristic) else { throw Linux.notDiscovered }
            let configuration: ClientConfiguration =
                discovered.properties.contains(.notify) ? .notification : .indication
            guard !discovered.properties.isDisjoint(with: [.notify, .indicate]) else {
                throw CBATTError.described(.requestNotSupported)
            }
            try await ask(target) {
                let wanted = isNotifying ? configuration : []
                $0.setConfiguration(wanted, of: discovered, on: $1, $2)
            } finish: { _ throws(BackendError) in
                try peripheral.content.withLock { content throws(BackendError) in
                    try content.database.setNotifying(isNotifying, of: characteristic)
                }
            }
        }

        /// Reads a whole value.
        ///
        /// - Throws:
        ///   - `CBError.notConnected` without a connection, or another `CBError` if the connection ends
        ///   - `CBError.invalidHandle` if this connection does not have the characteristic, or the peripheral changes
        ///     it before the call has ended
        ///   - a `CBATTError` if the peripheral refuses
        public func read(_ characteristic: CBCharacteristic) async throws -> Data {
            let target = peripheral.currentTarget
            guard let discovered = peripheral.discovered(characteristic) else { throw Linux.notDiscovered }
            return try await ask(target) {
                $0.read(discovered.valueHandle, of: $1, $2)
            } finish: { octets throws(BackendError) in
                try peripheral.content.withLock { content throws(BackendError) in
                    try content.database.check(characteristic)
                    characteristic.content.withLock { $0.value = Data(octets) }
                }
                return Data(octets)
            }
        }

        /// Writes a value of up to 512 bytes with a response. A long value is written in parts.
        ///
        /// - Throws:
        ///   - `CBError.notConnected` without a connection, or another `CBError` if the connection ends
        ///   - `CBError.invalidHandle` if this connection does not have the characteristic, or the peripheral changes
        ///     it before the call has ended
        ///   - a `CBATTError` if the value is too long, or the peripheral refuses
        public func write(_ value: Data, to characteristic: CBCharacteristic) async throws {
            let target = peripheral.currentTarget
            guard let discovered = peripheral.discovered(characteristic) else { throw Linux.notDiscovered }
            try await ask(target) { _, target, completion in
                peripheral.write(value, to: discovered.valueHandle, of: target, completion)
            } finish: { _ throws(BackendError) in
                try peripheral.content.withLock { content throws(BackendError) in
                    try content.database.check(characteristic)
                }
            }
        }

        // MARK: Discovery

        /// Discovers services of some types; of all types if `types` is nil or empty.
        ///
        /// - Throws:
        ///   - `CBError.notConnected` without a connection, or another `CBError` if the connection ends
        ///   - `CBError.invalidHandle` if the peripheral has changed its services three times during the discovery
        ///   - a `CBATTError` if the peripheral refuses
        public func discoverServices(_ types: [CBUUID]? = nil) async throws -> [CBService] {
            let wanted = peripheral.wanted(types)
            return try await ask(peripheral.currentTarget) {
                $0.discoverServices(wanted, of: $1, $2)
            } finish: { found in
                let services = peripheral.content.withLock { content in
                    content.database.add(found, areAll: wanted == nil, of: peripheral)
                    return content.database.services ?? []
                }
                peripheral.endLostValues()
                return services
            }
        }

        /// Discovers the characteristics of a service, of some types; of all types if `types` is nil or empty.
        ///
        /// - Throws:
        ///   - `CBError.notConnected` without a connection, or another `CBError` if the connection ends
        ///   - `CBError.invalidHandle` if this connection does not have the service, or the peripheral changes it
        ///     before the call has ended
        ///   - a `CBATTError` if the peripheral refuses
        public func discoverCharacteristics(
            _ types: [CBUUID]? = nil,
            for service: CBService
        ) async throws -> [CBCharacteristic] {
            let target = peripheral.currentTarget
            guard let range = peripheral.range(of: service) else { throw Linux.notDiscovered }
            let wanted = peripheral.wanted(types)
            return try await ask(target) {
                $0.discoverCharacteristics(in: range, of: $1, $2)
            } finish: { found throws(BackendError) in
                try peripheral.content.withLock { content throws(BackendError) in
                    try content.database.add(found, wanted: wanted, to: service)
                }
                peripheral.endLostValues()
                return service.characteristics ?? []
            }
        }

        // MARK: Asking

        private static var notDiscovered: any Error { CBError.described(.invalidHandle) }

        /// Sends a command to the backend and waits for the result. The result is handled on the manager's queue,
        /// unless the connection has ended by then. The call keeps the manager, and with it the host, until the result
        /// is handled.
        ///
        /// - Parameters:
        ///   - target: the peripheral on its link; nil if it is not connected.
        ///   - command: sends the command.
        ///   - finish: makes the call's result of the command's result.
        private func ask<Value: Sendable, Output: Sendable>(
            _ target: CBPeripheral.CommandTarget?,
            _ command: (any CentralBackend, ConnectedPeripheral, @escaping Completion<Value>) -> Void,
            finish: @escaping @Sendable (Value) throws(BackendError) -> Output
        ) async throws -> Output {
            guard let backend = peripheral.backend, let target else { throw CBError.described(.notConnected) }
            let manager = peripheral.content.withLock { $0.manager }
            let answer = AwaitedAnswer<Output>()
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    guard answer.begin(continuation) else { return }
                    command(backend, target.peripheral) { [peripheral] result in
                        peripheral.deliveryQueue.async {
                            guard peripheral.content.withLock({ $0.connection }) == target.connection else {
                                return answer.end(.failure(CBError.described(.notConnected)))
                            }
                            do throws(BackendError) {
                                answer.end(.success(try finish(try result.get())))
                            } catch {
                                answer.end(.failure(error.error))
                            }
                            withExtendedLifetime(manager) {}
                        }
                    }
                }
            } onCancel: {
                answer.end(.failure(CancellationError()))
            }
        }
    }
}

/// The result that a suspended call waits for. Only the first result counts.
private final class AwaitedAnswer<Output: Sendable>: Sendable {
    private enum State {
        case ready
        case waiting(CheckedContinuation<Output, any Error>)
        case ended
    }

    private let state = Guarded(State.ready)

    /// Begins to wait.
    ///
    /// - Returns: false if the call was cancelled before; it has then ended.
    func begin(_ continuation: CheckedContinuation<Output, any Error>) -> Bool {
        let isReady = state.withLock { state in
            guard case .ready = state else { return false }
            state = .waiting(continuation)
            return true
        }
        if !isReady { continuation.resume(throwing: CancellationError()) }
        return isReady
    }

    func end(_ result: Result<Output, any Error>) {
        let continuation = state.withLock { state -> CheckedContinuation<Output, any Error>? in
            defer { state = .ended }
            guard case .waiting(let continuation) = state else { return nil }
            return continuation
        }
        continuation?.resume(with: result)
    }
}
