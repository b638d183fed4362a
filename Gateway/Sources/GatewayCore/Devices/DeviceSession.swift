import BLE
import ESPHomeProtocol
import Synchronization

/// Performs the operations of a client on a connected device and sends the responses.
struct DeviceSession {
    /// A subscription whose values are sent to the client.
    struct Forwarding: Sendable {
        let subscription: Subscription
        let handle: UInt16

        /// Sends the values until the subscription ends.
        func forward(to client: Client, address: UInt64) async {
            do {
                for try await value in subscription {
                    client.send(.value(.notifyDataResponse, address: address, handle: handle, value: value.value))
                }
            } catch {
                // The client is informed about the end of the connection.
            }
        }
    }

    private let connection: DeviceConnection
    private let peripheral: RemotePeripheral
    private var subscriptions: [UInt16: Subscription] = [:]

    private var client: Client { connection.client }
    private var address: UInt64 { connection.address }

    init(connection: DeviceConnection, peripheral: RemotePeripheral) {
        self.connection = connection
        self.peripheral = peripheral
    }

    /// Performs an operation and sends the response.
    ///
    /// - Returns: a new subscription; nil if there is none.
    mutating func perform(_ operation: DeviceOperation) async -> Forwarding? {
        switch operation {
        case .getServices: await sendServices()
        case .read(let handle):
            await respond(handle) { () async throws(BLEError) in
                let value = try await peripheral.read(AttributeHandle(rawValue: handle))
                return .value(.readResponse, address: address, handle: handle, value: value)
            }
        case .write(let handle, let value, withResponse: true):
            await respond(handle) { () async throws(BLEError) in
                try await peripheral.write(value, to: AttributeHandle(rawValue: handle))
                return .attribute(.writeResponse, address: address, handle: handle)
            }
        case .write(let handle, let value, withResponse: false):
            await respond(handle) { () async throws(BLEError) in
                try await peripheral.write(value, to: AttributeHandle(rawValue: handle), kind: .withoutResponse)
                return nil
            }
        case .notify(let handle, isEnabled: true): return await subscribe(to: handle)
        case .notify(let handle, isEnabled: false):
            await subscriptions.removeValue(forKey: handle)?.cancel()
            client.send(.attribute(.notifyResponse, address: address, handle: handle))
        case .pair: await pair()
        case .unpair: await unpair()
        case .clearCache:
            connection.services.remove(address)
            await connection.updateLinkAddress(of: peripheral)
            await connection.adapters.discardDatabaseCaches(of: connection.bondAddresses)
            client.send(.cacheCleared(address))
        case .setParameters(let parameters): await set(parameters)
        case .disconnect: break
        }
        return nil
    }

    /// Sends the response that `body` returns, or its error.
    private func respond(_ handle: UInt16, _ body: () async throws(BLEError) -> Message?) async {
        do throws(BLEError) {
            if let message = try await body() { client.send(message) }
        } catch {
            client.send(.failure(address, handle: handle, error: ClientErrorCode.operation(error)))
        }
    }

    // MARK: Services

    private func sendServices() async {
        await respond(0) { () async throws(BLEError) in
            let services = try await peripheral.discoverAll()
            guard !services.isEmpty else {
                let error = Int32(ATTErrorCode.attributeNotFound.rawValue)
                return .failure(address, handle: 0, error: error)
            }
            connection.services.set(services, of: address)
            let usesShortUUIDs = client.usesShortUUIDs.load(ordering: .relaxed)
            for service in services {
                client.send(.service(service, address: address, usesShortUUIDs: usesShortUUIDs))
            }
            return .servicesDone(address: address)
        }
    }

    /// Finds the characteristic whose value has a handle. Clients that have the services from an earlier connection do
    /// not request them again.
    private func characteristic(_ handle: UInt16) async throws(BLEError) -> RemoteCharacteristic? {
        func find(in services: [RemoteService]) -> RemoteCharacteristic? {
            for service in services {
                for characteristic in service.characteristics where characteristic.valueHandle.rawValue == handle {
                    return characteristic
                }
            }
            return nil
        }
        if let known = connection.services.services(of: address), let found = find(in: known) { return found }
        let services = try await peripheral.discoverAll()
        connection.services.set(services, of: address)
        return find(in: services)
    }

    // MARK: Values

    private mutating func subscribe(to handle: UInt16) async -> Forwarding? {
        var forwarding: Forwarding?
        do throws(BLEError) {
            if subscriptions[handle] == nil {
                guard let characteristic = try await characteristic(handle) else {
                    throw .attribute(.invalidHandle, handle: AttributeHandle(rawValue: handle))
                }
                let subscription = try await peripheral.subscribe(to: characteristic)
                subscriptions[handle] = subscription
                forwarding = Forwarding(subscription: subscription, handle: handle)
            }
            client.send(.attribute(.notifyResponse, address: address, handle: handle))
        } catch {
            client.send(.failure(address, handle: handle, error: ClientErrorCode.operation(error)))
        }
        return forwarding
    }

    // MARK: Security

    private func pair() async {
        do throws(BLEError) {
            let pairing = DevicePairing(
                peripheral: peripheral,
                adapter: connection.adapter,
                logger: connection.logger
            )
            try await pairing.perform()
            await connection.adapters.runners[connection.adapterIndex].readBonds()
            // The link may end before the next operation.
            await connection.updateLinkAddress(of: peripheral)
            client.send(.pairing(address, error: 0))
        } catch {
            client.send(.pairing(address, error: ClientErrorCode.operation(error)))
        }
    }

    private func unpair() async {
        await connection.updateLinkAddress(of: peripheral)
        // Another adapter's bond would decide about the next connection. The link ends.
        let isRemoved = await connection.adapters.removeBonds(with: connection.bondAddresses)
        client.send(.unpairing(address, error: isRemoved ? 0 : ClientErrorCode.notPaired))
    }

    // MARK: Parameters

    private func set(_ requested: RequestedConnectionParameters) async {
        var error: Int32 = 0
        if let parameters = ConnectionParameters(requested) {
            do throws(BLEError) {
                try await peripheral.updateConnectionParameters(parameters)
            } catch let failure {
                error = ClientErrorCode.operation(failure)
            }
        } else {
            error = ClientErrorCode.illegalParameter
        }
        client.send(.parametersSet(address, error: error))
    }
}

extension ConnectionParameters {
    /// Converts requested parameters; nil if they are out of range.
    init?(_ requested: RequestedConnectionParameters) {
        guard requested.minimumInterval <= requested.maximumInterval, requested.maximumInterval <= 3200,
            let latency = UInt16(exactly: requested.latency), requested.timeout <= 3200
        else { return nil }
        let unit = Duration.microseconds(1250)
        self.init(
            interval: unit * Int(requested.minimumInterval)...unit * Int(requested.maximumInterval),
            latencyInEvents: latency,
            supervisionTimeout: .milliseconds(10) * Int(requested.timeout)
        )
        guard isValid else { return nil }
    }
}
