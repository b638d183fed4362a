import BluetoothTypes
import CoreBluetooth
import Testing

/// Features beyond Apple's API, on controllers in this process, in real time.
@Suite("Core Bluetooth beyond Apple's API")
struct LinuxTests {
    private static let service = CBUUID(string: "0F1A7B9C-3C47-4C0E-9B3B-3B7F0B1D2E01")
    private static let level = CBUUID(string: "FFE7")

    /// A peripheral manager that answers reads and writes, and notifies given values.
    private final class Server: NSObject, CBPeripheralManagerDelegate {
        let level = CBMutableCharacteristic(
            type: LinuxTests.level,
            properties: [.read, .write, .notify],
            value: nil,
            permissions: [.readable, .writeable]
        )
        let subscriptions: AsyncStream<Bool>
        private let subscribed: AsyncStream<Bool>.Continuation
        private var value = Data([7])
        private var waiting: [Data] = []
        private(set) var manager: CBPeripheralManager!

        init(air: String) {
            (subscriptions, subscribed) = AsyncStream.makeStream()
            super.init()
            manager = CBPeripheralManager(
                delegate: self,
                queue: DispatchQueue(label: "server"),
                options: [CBPeripheralManagerOptionAdapterKey: air]
            )
        }

        func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
            guard peripheral.state == .poweredOn else { return }
            let service = CBMutableService(type: LinuxTests.service, primary: true)
            service.characteristics = [level]
            peripheral.add(service)
        }

        func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?) {
            peripheral.linux.startAdvertising(
                AdvertisingData([
                    .completeLocalName("server"), .manufacturerData(CompanyIdentifier(rawValue: 0xFFFF), [1, 2, 3]),
                ]),
                scanResponse: AdvertisingData([.serviceData("180F", [99])]),
                interval: .milliseconds(30)
            )
        }

        func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
            request.value = value
            peripheral.respond(to: request, withResult: .success)
        }

        func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
            value = requests[0].value ?? Data()
            peripheral.respond(to: requests[0], withResult: .success)
        }

        func peripheralManager(
            _ peripheral: CBPeripheralManager,
            central: CBCentral,
            didSubscribeTo characteristic: CBCharacteristic
        ) {
            waiting = (0..<100).map { Data([$0]) }
            sendWaiting()
        }

        func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) { sendWaiting() }

        private func sendWaiting() {
            while let next = waiting.first, manager.updateValue(next, for: level, onSubscribedCentrals: nil) {
                waiting.removeFirst()
            }
        }
    }

    private func makeCentral(_ air: String) async -> CBCentralManager {
        let manager = CBCentralManager(
            delegate: nil,
            queue: DispatchQueue(label: "central"),
            options: [CBCentralManagerOptionAdapterKey: air]
        )
        let states = manager.linux.states
        if manager.state == .poweredOn { return manager }
        for await state in states where state == .poweredOn { break }
        return manager
    }

    /// Scans until the server's complete advertisement was received.
    private func find(_ manager: CBCentralManager) async throws -> CBDiscovery {
        let discoveries = manager.linux.discoveries
        manager.scanForPeripherals(withServices: nil)
        for await discovery in discoveries where discovery.advertisingData.localName == "server" {
            guard !discovery.advertisingData.serviceData.isEmpty else { continue }
            manager.stopScan()
            return discovery
        }
        throw CancellationError()
    }

    @Test("Advertising data that an app lays out itself is received completely, with the address")
    func laidOutAdvertisingDataIsReceivedCompletely() async throws {
        let server = Server(air: "virtual:linux-payload")
        let central = await makeCentral("virtual:linux-payload")
        let discovery = try await find(central)
        let data = discovery.advertisingData
        #expect(data.manufacturerData == [.init(company: CompanyIdentifier(rawValue: 0xFFFF), data: [1, 2, 3])])
        #expect(data.serviceData == ["180F": [99]] && discovery.rssi != nil && discovery.isConnectable)
        #expect(discovery.peripheral.linux.address != nil && discovery.peripheral.linux.mtu == 23)
        withExtendedLifetime(server) {}
    }

    @Test("A connection can be awaited, and then discovery, reads, writes, each value and its end")
    func connectionDiscoveryReadsWritesAndValuesCanBeAwaited() async throws {
        let server = Server(air: "virtual:linux-conversation")
        let changes = server.manager.linux.centralChanges
        let central = await makeCentral("virtual:linux-conversation")
        let peripheral = try await find(central).peripheral
        try await central.linux.connected(peripheral, timeout: .seconds(30))
        var arrivals = changes.makeAsyncIterator()
        let arrival = try #require(await arrivals.next())
        #expect(arrival.isConnected && server.manager.linux.address(of: arrival.central) != nil)

        let service = try #require(await peripheral.linux.discoverServices([LinuxTests.service]).first)
        let level = try #require(await peripheral.linux.discoverCharacteristics(for: service).first)
        #expect(try await peripheral.linux.read(level) == Data([7]))
        try await peripheral.linux.write(Data([8, 9]), to: level)
        #expect(try await peripheral.linux.read(level) == Data([8, 9]))

        // A hundred values at once. Each one is delivered, although the characteristic shows only the last.
        let values = peripheral.linux.values(of: level)
        try await peripheral.linux.setNotifying(true, for: level)
        var received: [Data] = []
        for await value in values {
            received.append(value.value)
            if received.count == 100 { break }
        }
        #expect(received == (0..<100).map { Data([$0]) } && level.isNotifying)

        try await peripheral.linux.update(ConnectionParameters(interval: .milliseconds(50)...(.milliseconds(50))))
        try await peripheral.linux.setPHYs(transmit: .le2M, receive: .le2M)
        let link = try await peripheral.linux.link()
        #expect(
            link.parameters.interval == .milliseconds(50) && link.transmitPHY == .le2M
                && link.mtu == peripheral.linux.mtu
        )

        let connection = central.linux.connectionChanges
        server.manager.linux.disconnect(arrival.central)
        let departure = try #require(await arrivals.next())
        #expect(!departure.isConnected && departure.central.identifier == arrival.central.identifier)
        var ends = connection.makeAsyncIterator()
        let end = try #require(await ends.next())
        guard case .disconnected(let error, isReconnecting: false) = end.kind else {
            Issue.record("\(end.kind)")
            return
        }
        #expect((error as? CBError)?.code == .peripheralDisconnected)
        await #expect(throws: CBError.self) { _ = try await peripheral.linux.read(level) }
    }

    @Test("A connection with a timeout fails at that time, and can be tried again", .timeLimit(.minutes(5)))
    func connectionFailsAtItsTimeoutAndCanBeTriedAgain() async throws {
        let server = Server(air: "virtual:linux-timeout")
        let central = await makeCentral("virtual:linux-timeout")
        let peripheral = try await find(central).peripheral
        server.manager.stopAdvertising()
        // An advertisement may still be on its way after the request to stop. Only a failed connection proves the end.
        var failure: (any Error)?
        while failure == nil {
            do {
                try await central.linux.connected(peripheral, timeout: .milliseconds(300))
                central.cancelPeripheralConnection(peripheral)
            } catch {
                failure = error
            }
        }
        #expect((failure as? CBError)?.code == .connectionTimeout && peripheral.state == .disconnected)
        server.manager.linux.startAdvertising(AdvertisingData([.completeLocalName("server")]))
        try await central.linux.connected(peripheral)
        #expect(peripheral.state == .connected)
        withExtendedLifetime(server) {}
    }

    @Test("Calls without a connection, or below poweredOn, throw an error")
    func callsWithoutAConnectionOrBelowPoweredOnThrow() async throws {
        let server = Server(air: "virtual:linux-misuse")
        let central = await makeCentral("virtual:linux-misuse")
        let peripheral = try await find(central).peripheral
        await #expect(throws: CBError.self) { try await peripheral.linux.link() }
        let cancelled = Task { try await central.linux.connected(peripheral, timeout: nil) }
        cancelled.cancel()
        // The connection ends, whether the task was cancelled before or after it existed.
        _ = await cancelled.result
        let unpowered = CBCentralManager(
            delegate: nil,
            queue: DispatchQueue(label: "unpowered"),
            options: [CBCentralManagerOptionAdapterKey: "hci:250"]
        )
        await #expect(throws: CBError.self) { try await unpowered.linux.connected(peripheral) }
        withExtendedLifetime(server) {}
    }
}
