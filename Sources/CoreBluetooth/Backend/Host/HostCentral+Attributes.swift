import BLE
import BLEATT
import BLEByteCoding
import BLEGATT
import BLEHCI
import BluetoothHost
import BluetoothTypes
import Foundation
import Synchronization

// GATT on connected peripherals. Each call queues procedures on the link, which the host carries out in order.
extension HostCentral {
    // MARK: Discovery

    func discoverServices(
        _ types: [BluetoothUUID]?,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<[DiscoveredService]>
    ) {
        let remembering: Completion<[DiscoveredService]> = { [shared] result in
            if case .success(let services) = result, let open = shared.open {
                open.peers.discovered(services.map(\.uuid), of: peripheral.identifier)
                open.links.servicesDiscovered(on: peripheral.link)
            }
            completion(result)
        }
        guard let types else {
            return discoverServices(of: peripheral, remembering) { host, link, ended in
                host.begin(DiscoverServices(), on: link) { self.answer($0, ended) }
            }
        }
        guard !types.isEmpty else { return completion(.success([])) }
        var seen: Set<BluetoothUUID> = []
        let distinct = types.filter { seen.insert($0).inserted }
        // One call, so that no other procedure runs between them.
        discoverServices(of: peripheral, remembering) { host, link, ended in
            let gathered = Gathered(distinct.count, ended)
            for type in distinct {
                host.begin(DiscoverServicesInAnyWidth(uuid: type), on: link) { self.answer($0, gathered.add) }
            }
        }
    }

    func discoverIncludedServices(
        in range: HandleRange,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<[IncludedService]>
    ) {
        discoverServices(of: peripheral, using: range, completion) { host, link, ended in
            host.begin(FindIncludedServices(range: range), on: link, endingOnChangeOf: range) {
                self.answer($0, ended)
            }
        }
    }

    func discoverCharacteristics(
        in range: HandleRange,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<[DiscoveredCharacteristic]>
    ) {
        perform(DiscoverCharacteristics(range: range), using: range, of: peripheral, completion)
    }

    func discoverDescriptors(
        in range: HandleRange,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<[DiscoveredDescriptor]>
    ) {
        perform(DiscoverDescriptors(range: range), using: range, of: peripheral, completion)
    }

    /// A discovery of services: performs its procedures on a link, and completes with their results.
    private typealias ServiceDiscovery<Element> =
        @Sendable (isolated BluetoothHost, LinkIdentifier, @escaping Completion<[Element]>) -> Void

    /// Discovers services on a connected peripheral.
    ///
    /// If the peripheral changes its services in the meantime, the result may have some from before the change. The
    /// discovery is then performed again, at most ``discoveryLimit`` times in total. If a change has interrupted all of
    /// them, completes with ``CBError/Code/invalidHandle``.
    private func discoverServices<Element: Sendable>(
        of peripheral: ConnectedPeripheral,
        using handles: HandleRange? = nil,
        _ completion: @escaping Completion<[Element]>,
        call: String = #function,
        _ discovery: @escaping ServiceDiscovery<Element>
    ) {
        onLink(of: peripheral, using: handles, completion, call: call) { host, _ in
            self.perform(discovery, attempt: 1, of: peripheral, host, completion)
        }
    }

    private func perform<Element: Sendable>(
        _ discovery: @escaping ServiceDiscovery<Element>,
        attempt: Int,
        of peripheral: ConnectedPeripheral,
        _ host: isolated BluetoothHost,
        _ completion: @escaping Completion<[Element]>
    ) {
        let lastChange = state.lastChange
        discovery(host, peripheral.link) { result in
            guard case .success = result, self.hasChanged(peripheral, after: lastChange), let open = self.open else {
                return completion(result)
            }
            guard attempt < HostCentral.discoveryLimit else { return completion(.failure(.core(.invalidHandle))) }
            open.host.assumeIsolated { host in
                self.perform(discovery, attempt: attempt + 1, of: peripheral, host, completion)
            }
        }
    }

    /// Whether a peripheral, which is still connected, has changed its services after the change with a number. Called
    /// on the loop.
    private func hasChanged(_ peripheral: ConnectedPeripheral, after number: UInt64) -> Bool {
        guard let connection = state.connections[peripheral.identifier],
            case .connected(peripheral.link) = connection.phase
        else { return false }
        return connection.changes.affect(.all, after: number)
    }

    // MARK: Values

    func read(
        _ handle: AttributeHandle,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<[UInt8]>
    ) {
        perform(ReadLongValue(handle: handle), using: HandleRange(only: handle), of: peripheral, completion)
    }

    func write(
        _ value: [UInt8],
        to handle: AttributeHandle,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<Void>
    ) {
        let procedure = WriteWholeValue(handle: handle, value: value)
        perform(procedure, using: HandleRange(only: handle), of: peripheral, completion)
    }

    func writeWithoutResponse(
        _ value: [UInt8],
        to handle: AttributeHandle,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<Void>
    ) {
        onLink(of: peripheral, using: HandleRange(only: handle), completion) { host, link in
            host.beginWriteWithoutResponse(value, to: handle, on: link, endsOnChange: true) {
                self.answer($0, completion)
            }
        }
    }

    func completeInOrder(of peripheral: ConnectedPeripheral, _ completion: @escaping Completion<Void>) {
        onLink(of: peripheral, completion) { host, link in
            self.completeInOrder(.success(()), on: link, host, completion)
        }
    }

    /// Completes a call that needs no request, after the procedures of the calls before it.
    ///
    /// - Parameter result: the result, unless the link ends first.
    func completeInOrder<Value: Sendable>(
        _ result: Result<Value, BackendError>,
        on link: LinkIdentifier,
        _ host: isolated BluetoothHost,
        _ completion: @escaping Completion<Value>
    ) {
        host.begin(NoRequest(), on: link) { ended in
            guard case .failure(.disconnected(let reason)) = ended else { return completion(result) }
            self.answer(.failure(.disconnected(reason)), completion)
        }
    }

    // MARK: The link

    func readRSSI(of peripheral: ConnectedPeripheral, _ completion: @escaping Completion<Int?>) {
        onLink(of: peripheral, completion) { host, link in
            host.beginReadingRSSI(of: link) { self.answer($0, completion) }
        }
    }

    // MARK: Beyond Apple's API

    func address(of peripheral: UUID) -> DeviceAddress? { shared.open?.peers.address(of: peripheral) }

    func readLink(of peripheral: ConnectedPeripheral, _ completion: @escaping Completion<LinkInformation>) {
        onLink(of: peripheral, completion) { host, link in
            do throws(HostError) {
                completion(.success(try host.information(on: link)))
            } catch {
                self.answer(.failure(error), completion)
            }
        }
    }

    func updateParameters(
        _ parameters: ConnectionParameters,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<Void>
    ) {
        onLink(of: peripheral, completion) { host, link in
            host.beginUpdatingParameters(parameters, of: link) { self.answer($0, completion) }
        }
    }

    func setPHYs(
        transmit: PHYSet,
        receive: PHYSet,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<Void>
    ) {
        onLink(of: peripheral, completion) { host, link in
            host.beginSettingPHY(transmit: transmit, receive: receive, of: link) { self.answer($0, completion) }
        }
    }

    // MARK: On a link

    /// Performs a procedure on a connected peripheral.
    ///
    /// - Parameter handles: the handles of the attributes that the app names.
    private func perform<P: ClientProcedure>(
        _ procedure: P,
        using handles: HandleRange,
        of peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<P.Output>,
        call: String = #function
    ) {
        onLink(of: peripheral, using: handles, completion, call: call) { host, link in
            host.begin(procedure, on: link, endingOnChangeOf: handles) { self.answer($0, completion) }
        }
    }

    /// Runs `body` with the link of a connected peripheral. Completes with an error if that link has ended.
    ///
    /// - Parameter handles: the handles of the attributes that the app names; nil if it names none. Completes with an
    ///   error if the peripheral has changed one of them, and the manager had not handled that before the call.
    func onLink<Value: Sendable>(
        of peripheral: ConnectedPeripheral,
        using handles: HandleRange? = nil,
        _ completion: @escaping Completion<Value>,
        call: String = #function,
        _ body: @escaping @Sendable (isolated BluetoothHost, LinkIdentifier) -> Void
    ) {
        submit(completion, call: call) { host, _ in
            guard let connection = self.state.connections[peripheral.identifier],
                case .connected(peripheral.link) = connection.phase
            else { return completion(.failure(.core(.notConnected))) }
            if let handles, connection.changes.affect(handles, after: peripheral.lastChange) {
                // After the earlier calls, which may be for the same attribute.
                let refusal = Result<Value, BackendError>.failure(.core(.invalidHandle))
                return self.completeInOrder(refusal, on: peripheral.link, host, completion)
            }
            body(host, peripheral.link)
        }
    }

    /// Completes a call of the app. The event of a link's end precedes the failures of the calls on the link. Called on
    /// the loop.
    func answer<Value: Sendable>(
        _ result: Result<Value, HostError>,
        _ completion: @escaping Completion<Value>
    ) {
        let answer = result.mapError(BackendError.init)
        if case .failure(.disconnected) = result, let open {
            open.run { _, _ in completion(answer) }
        } else {
            completion(answer)
        }
    }
}

/// A procedure without a request, which ends when it is its turn.
private struct NoRequest: ClientProcedure {
    typealias Output = Void

    var outcome: Result<Output, ClientError>?

    mutating func start(mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<Void> { .finished(.success(())) }

    mutating func receive(_ response: RawSpan, mtu: Int, into buffer: inout PacketBuffer) -> ClientStep<Void> {
        .finished(.success(()))
    }
}

/// The results of several procedures of one call, in order.
private final class Gathered<Element: Sendable>: Sendable {
    private let results = Mutex<[Result<[Element], BackendError>]>([])
    private let count: Int
    private let completion: Completion<[Element]>

    init(_ count: Int, _ completion: @escaping Completion<[Element]>) {
        self.count = count
        self.completion = completion
    }

    @Sendable func add(_ result: Result<[Element], BackendError>) {
        let results = results.withLock { results in
            results.append(result)
            return results
        }
        guard results.count == count else { return }
        var all: [Element] = []
        for result in results {
            switch result {
            case .success(let elements): all += elements
            case .failure: return completion(result)
            }
        }
        completion(.success(all))
    }
}
