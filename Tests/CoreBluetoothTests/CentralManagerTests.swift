import BluetoothTypes
import Foundation
import Testing

@testable import CoreBluetooth

@Suite("A central manager")
struct CentralManagerTests {
    @Test("The state is unknown until the one callback, which never happens within init")
    func stateIsUnknownUntilTheOneCallback() {
        let queue = DispatchQueue(label: "held")
        queue.suspend()
        let recorder = CentralFixture.Recorder()
        let backend = ScriptedCentralBackend()
        let manager = CBCentralManager(delegate: recorder, queue: queue, backend: backend)
        backend.deliver(.stateChanged(.poweredOn))
        #expect(manager.state == .unknown)
        #expect(recorder.told.isEmpty)
        queue.resume()
        manager.deliveryQueue.sync {}
        #expect(manager.state == .poweredOn)
        backend.deliver(.stateChanged(.poweredOn))
        manager.deliveryQueue.sync {}
        #expect(recorder.told == ["state poweredOn"])
    }

    @Test("Restoration is the first callback, with peripherals and scan")
    func restorationIsTheFirstCallback() throws {
        let fixture = CentralFixture(state: nil)
        let identifier = UUID()
        fixture.backend.deliver(
            .restored(
                RestoredCentral(
                    peripherals: [KnownPeripheral(identifier: identifier, name: nil)],
                    scan: ScanRequest(services: ["180D"], allowsDuplicates: true)
                )
            )
        )
        fixture.deliver(.stateChanged(.poweredOn))
        #expect(fixture.takeTold() == ["restore", "state poweredOn"])
        let restored = fixture.recorder.restored
        let peripherals = try #require(restored[CBCentralManagerRestoredStatePeripheralsKey] as? [CBPeripheral])
        #expect(peripherals.map(\.identifier) == [identifier])
        #expect(
            restored[CBCentralManagerRestoredStateScanServicesKey] as? [CBUUID] == [CBUUID(string: "180D")]
        )
        let options = try #require(restored[CBCentralManagerRestoredStateScanOptionsKey] as? [String: Any])
        #expect(options[CBCentralManagerScanOptionAllowDuplicatesKey] as? Bool == true)
    }

    @Test("The manager does not retain its delegate, and the host ends with the manager")
    func managerDoesNotRetainItsDelegateAndEndsTheHost() {
        let backend = ScriptedCentralBackend()
        var recorder: CentralFixture.Recorder? = CentralFixture.Recorder()
        var manager: CBCentralManager? = CBCentralManager(delegate: recorder, queue: nil, backend: backend)
        weak let weakRecorder = recorder
        weak let weakManager = manager
        recorder = nil
        #expect(weakRecorder == nil)
        #expect(manager?.delegate == nil)
        manager = nil
        #expect(weakManager == nil)
        #expect(backend.takeCalls() == [.stop])
    }

    @Test(
        "Commands below poweredOn are dropped without a callback",
        arguments: [CBManagerState.unknown, .resetting, .unsupported, .unauthorized, .poweredOff]
    )
    func commandsBelowPoweredOnAreDroppedWithoutACallback(state: CBManagerState) {
        let fixture = CentralFixture(state: state)
        let peripheral = fixture.makePeripheral()
        fixture.manager.scanForPeripherals(withServices: nil)
        fixture.manager.stopScan()
        fixture.manager.connect(peripheral)
        fixture.manager.cancelPeripheralConnection(peripheral)
        fixture.manager.registerForConnectionEvents()
        #expect(!fixture.manager.isScanning)
        #expect(peripheral.state == .disconnected)
        #expect(fixture.takeCalls().isEmpty)
        #expect(fixture.takeTold().isEmpty)
    }

    @Test("A scan is on at once, and another one replaces it")
    func scanIsOnAtOnceAndAnotherOneReplacesIt() {
        let fixture = CentralFixture()
        fixture.manager.scanForPeripherals(withServices: nil, options: nil)
        #expect(fixture.manager.isScanning)
        fixture.manager.scanForPeripherals(
            withServices: [CBUUID(string: "180D")],
            options: [
                CBCentralManagerScanOptionAllowDuplicatesKey: true,
                CBCentralManagerScanOptionSolicitedServiceUUIDsKey: [CBUUID(string: "180F")],
            ]
        )
        #expect(
            fixture.takeCalls() == [
                .scan(ScanRequest()),
                .scan(ScanRequest(services: ["180D"], solicitedServices: ["180F"], allowsDuplicates: true)),
            ]
        )
        fixture.manager.stopScan()
        #expect(!fixture.manager.isScanning)
        #expect(fixture.takeCalls() == [.stopScan])
    }

    private func discovery(
        _ identifier: UUID,
        name: String? = nil,
        rssi: Int? = -40,
        scan: UInt64 = 1
    ) -> CentralEvent {
        .discovered(
            Discovery(
                identifier: identifier,
                name: name,
                content: AdvertisedContent(AdvertisingData()),
                isConnectable: true,
                rssi: rssi,
                time: 1,
                scanNumber: scan
            )
        )
    }

    @Test("A peripheral that the app retains stays one object; nothing is delivered after the scan")
    func retainedPeripheralStaysOneObject() {
        let fixture = CentralFixture()
        let peripheral = fixture.makePeripheral()
        let identifier = peripheral.identifier
        fixture.deliver(discovery(identifier))
        #expect(fixture.takeTold().isEmpty)
        fixture.manager.scanForPeripherals(withServices: nil)
        fixture.deliver(discovery(identifier))
        fixture.deliver(discovery(identifier, name: "Polar H10", rssi: nil))
        #expect(fixture.takeTold() == ["discovered -40", "name Polar H10", "discovered 127"])
        #expect(peripheral.name == "Polar H10")
        #expect(fixture.manager.retrievePeripherals(withIdentifiers: [identifier]).first === peripheral)
        // The scripted backend knows the name Polar.
        #expect(fixture.takeTold() == ["name Polar"])
        fixture.manager.stopScan()
        fixture.deliver(discovery(identifier))
        #expect(fixture.takeTold().isEmpty)
    }

    @Test("A retained peripheral that is retrieved has the present name, and the change is reported once")
    func retrievedPeripheralHasThePresentName() {
        let fixture = CentralFixture()
        let peripheral = fixture.makePeripheral()
        let identifier = peripheral.identifier
        for name in ["Polar H10", "Polar H10", nil] {
            fixture.backend.known = [KnownPeripheral(identifier: identifier, name: name)]
            #expect(fixture.manager.retrievePeripherals(withIdentifiers: [identifier]).first === peripheral)
            #expect(peripheral.name == "Polar H10")
        }
        #expect(fixture.takeTold() == ["name Polar H10"])
        fixture.backend.known = [KnownPeripheral(identifier: identifier, name: "H10")]
        _ = fixture.manager.retrieveConnectedPeripherals(withServices: [CBUUID(string: "1800")])
        #expect(peripheral.name == "H10")
        #expect(fixture.takeTold() == ["name H10"])
    }

    @Test("A name whose discovery was dropped with the scan is reported when the host knows it on the link")
    func nameOfADroppedDiscoveryIsReportedOnTheLink() throws {
        let fixture = CentralFixture()
        let identifier = UUID()
        let manager = fixture.manager
        manager.scanForPeripherals(withServices: nil)
        fixture.deliver(discovery(identifier))
        fixture.backend.known = [KnownPeripheral(identifier: identifier, name: nil)]
        let peripheral = try #require(manager.retrievePeripherals(withIdentifiers: [identifier]).first)
        peripheral.delegate = fixture.recorder
        manager.stopScan()
        manager.connect(peripheral)
        fixture.deliver(discovery(identifier, name: "lamp"))
        fixture.deliver(.connected(peripheral.connection, mtu: 185, on: .placeholder(1)))
        #expect(peripheral.name == nil)
        fixture.deliver(.nameChanged(identifier, "lamp"))
        fixture.deliver(.nameChanged(identifier, "lamp"))
        #expect(peripheral.name == "lamp")
        #expect(fixture.takeTold() == ["discovered -40", "connected", "name lamp"])
    }

    @Test("Only known peripherals are retrieved, and connected ones by service")
    func onlyKnownPeripheralsAreRetrieved() {
        let fixture = CentralFixture()
        let peripheral = fixture.makePeripheral()
        #expect(fixture.manager.retrievePeripherals(withIdentifiers: [UUID()]).isEmpty)
        #expect(
            fixture.manager.retrieveConnectedPeripherals(withServices: [CBUUID(string: "1800")]).first === peripheral
        )
        #expect(fixture.manager.retrieveConnectedPeripherals(withServices: [CBUUID(string: "180D")]).isEmpty)
        #expect(peripheral.state == .disconnected)
    }

    @Test("Managers have separate objects, and refuse those of another manager")
    func managersRefuseObjectsOfAnotherManager() {
        let first = CentralFixture()
        let second = CentralFixture()
        let peripheral = first.makePeripheral()
        second.backend.known = first.backend.known
        let other = second.manager.retrievePeripherals(withIdentifiers: [peripheral.identifier])[0]
        #expect(other !== peripheral)
        #expect(other.identifier == peripheral.identifier)
        second.manager.connect(peripheral)
        #expect(second.takeCalls().isEmpty)
        #expect(peripheral.state == .disconnected)
    }

    // MARK: Connections

    @Test("The state is connecting at once, and changes as the host reports")
    func stateIsConnectingAtOnceAndFollowsTheHost() {
        let fixture = CentralFixture()
        let peripheral = fixture.makePeripheral()
        fixture.manager.connect(
            peripheral,
            options: [
                CBConnectPeripheralOptionStartDelayKey: NSNumber(value: 2),
                CBConnectPeripheralOptionEnableAutoReconnect: true,
            ]
        )
        #expect(peripheral.state == .connecting)
        #expect(
            fixture.takeCalls() == [
                .connect(peripheral.identifier, ConnectionRequest(delay: .seconds(2), reconnects: true))
            ]
        )
        fixture.deliver(.connectionFailed(peripheral.connection, .core(.connectionFailed)))
        #expect(peripheral.state == .disconnected)
        #expect((fixture.recorder.errors.first as? CBError)?.code == .connectionFailed)
        fixture.manager.connect(peripheral)
        fixture.deliver(.connected(peripheral.connection, mtu: 185, on: .placeholder(1)))
        #expect(peripheral.state == .connected)
        #expect(fixture.takeTold() == ["failed", "connected"])
    }

    @Test("Connecting a connected peripheral causes another callback")
    func connectingAConnectedPeripheralCausesAnotherCallback() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        fixture.manager.connect(peripheral)
        #expect(fixture.takeTold() == ["connected"])
        #expect(fixture.takeCalls().isEmpty)
    }

    @Test("A pending connection is cancelled without an error, and its late success is not delivered")
    func cancelledConnectionHasNoErrorAndNoLateSuccess() {
        let fixture = CentralFixture()
        let peripheral = fixture.makePeripheral()
        fixture.manager.cancelPeripheralConnection(peripheral)
        #expect(fixture.takeCalls().isEmpty)
        fixture.manager.connect(peripheral)
        fixture.manager.cancelPeripheralConnection(peripheral)
        fixture.manager.cancelPeripheralConnection(peripheral)
        #expect(peripheral.state == .disconnecting)
        #expect(
            fixture.takeCalls() == [
                .connect(peripheral.identifier, ConnectionRequest()), .cancel(peripheral.identifier),
            ]
        )
        fixture.deliver(.connected(peripheral.connection, mtu: 23, on: .placeholder(1)))
        fixture.deliver(.disconnected(peripheral.connection, Disconnection(error: nil, time: 1)))
        #expect(fixture.takeTold() == ["disconnected disconnected false"])
        #expect(fixture.recorder.errors.isEmpty)
    }

    @Test("A connection requested while the previous one is ending is made after that")
    func connectionRequestedDuringTheEndIsMadeAfterIt() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        fixture.manager.cancelPeripheralConnection(peripheral)
        fixture.manager.connect(peripheral)
        #expect(fixture.takeCalls() == [.cancel(peripheral.identifier)])
        fixture.deliver(.disconnected(peripheral.connection, Disconnection(error: nil, time: 1)))
        #expect(fixture.takeCalls() == [.connect(peripheral.identifier, ConnectionRequest())])
        #expect(peripheral.state == .connecting)
        fixture.deliver(.connected(peripheral.connection, mtu: 23, on: .placeholder(1)))
        #expect(fixture.takeTold() == ["disconnected connecting false", "connected"])
    }

    /// Makes the recorder call `body` within its next call.
    private func callOnce(_ recorder: CentralFixture.Recorder, _ body: @escaping () -> Void) {
        recorder.probe = { [unowned recorder] in
            recorder.probe = nil
            body()
            return "call"
        }
    }

    @Test(
        "A connection that waits for the end of the previous one is cancelled, and the peripheral is usable after that"
    )
    func connectionThatWaitsForAnEndIsCancelled() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        let manager = fixture.manager
        let changes = manager.linux.connectionChanges
        manager.cancelPeripheralConnection(peripheral)
        manager.connect(peripheral)
        callOnce(fixture.recorder) { manager.cancelPeripheralConnection(peripheral) }
        fixture.deliver(.disconnected(peripheral.connection, Disconnection(error: nil, time: 1)))
        #expect(fixture.takeTold() == ["disconnected connecting false call", "disconnected disconnected false"])
        #expect(peripheral.state == .disconnected)
        #expect(fixture.takeCalls() == [.cancel(peripheral.identifier)])
        #expect(fixture.recorder.errors.isEmpty)
        manager.connect(peripheral)
        #expect(fixture.takeCalls() == [.connect(peripheral.identifier, ConnectionRequest())])
        withExtendedLifetime(changes) {}
    }

    // MARK: Events of earlier connections

    @Test(
        "The loss of a link that the app has cancelled does not begin the next connection, and its end is reported once"
    )
    func lossOfACancelledLinkIsNotTheEnd() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        let first = peripheral.connection
        let lost = Disconnection(error: .core(.connectionTimeout), isReconnecting: true, time: 1)
        fixture.manager.deliveryQueue.suspend()
        fixture.backend.deliver(.disconnected(first, lost))
        fixture.manager.cancelPeripheralConnection(peripheral)
        fixture.manager.connect(peripheral)
        fixture.backend.deliver(.disconnected(first, Disconnection(error: nil, time: 2)))
        fixture.manager.deliveryQueue.resume()
        #expect(fixture.takeTold() == ["disconnected connecting false"])
        #expect(
            fixture.takeCalls() == [
                .cancel(peripheral.identifier), .connect(peripheral.identifier, ConnectionRequest()),
            ]
        )
        fixture.deliver(.connected(peripheral.connection, mtu: 23, on: .placeholder(1)))
        #expect(peripheral.state == .connected)
        #expect(fixture.takeTold() == ["connected"])
    }

    @Test("Events of a released object do not concern the next object of the peripheral")
    func eventsOfAReleasedObjectDoNotConcernTheNext() {
        let fixture = CentralFixture()
        let identifier: UUID
        let former: ConnectionIdentifier
        do {
            let peripheral = fixture.connectedPeripheral()
            (identifier, former) = (peripheral.identifier, peripheral.connection)
        }
        #expect(fixture.takeCalls() == [.release(identifier)])
        let peripheral = fixture.manager.retrievePeripherals(withIdentifiers: [identifier])[0]
        fixture.manager.connect(peripheral)
        fixture.deliver(.connected(former, mtu: 100, on: .placeholder(1)))
        fixture.deliver(.disconnected(former, Disconnection(error: .core(.connectionTimeout), time: 1)))
        fixture.deliver(.connectionFailed(former, .core(.connectionTimeout)))
        #expect(fixture.takeTold().isEmpty)
        #expect(peripheral.state == .connecting)
        fixture.deliver(.connected(peripheral.connection, mtu: 23, on: .placeholder(1)))
        #expect(peripheral.state == .connected)
    }

    @Test("A failure that waits for the queue does not end a connection that was requested after it")
    func waitingFailureDoesNotEndALaterRequest() {
        let fixture = CentralFixture()
        let peripheral = fixture.makePeripheral()
        fixture.manager.connect(peripheral)
        fixture.manager.deliveryQueue.suspend()
        fixture.backend.deliver(.connectionFailed(peripheral.connection, .core(.connectionTimeout)))
        fixture.manager.connect(peripheral)
        fixture.manager.deliveryQueue.resume()
        fixture.deliver(.connected(peripheral.connection, mtu: 23, on: .placeholder(1)))
        #expect(fixture.takeTold() == ["connected"])
        #expect(peripheral.state == .connected)
    }

    @Test("Discoveries that wait for the queue are not delivered to the next scan", arguments: [true, false])
    func waitingDiscoveriesAreNotDeliveredToTheNextScan(stops: Bool) {
        let fixture = CentralFixture()
        fixture.manager.scanForPeripherals(withServices: nil)
        fixture.manager.deliveryQueue.suspend()
        fixture.backend.deliver(discovery(UUID(), scan: fixture.backend.scanNumber))
        if stops { fixture.manager.stopScan() }
        fixture.manager.scanForPeripherals(withServices: [CBUUID(string: "180D")])
        fixture.backend.deliver(discovery(UUID(), rssi: -50, scan: fixture.backend.scanNumber))
        fixture.manager.deliveryQueue.resume()
        #expect(fixture.takeTold() == ["discovered -50"])
    }

    @Test("A connection that the host makes again is reported as such")
    func automaticReconnectionIsReportedAsSuch() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        fixture.deliver(
            .disconnected(
                peripheral.connection,
                Disconnection(error: .core(.connectionTimeout), isReconnecting: true, time: 1)
            )
        )
        fixture.deliver(.connected(peripheral.connection, mtu: 23, on: .placeholder(1)))
        #expect(fixture.takeTold() == ["disconnected connecting true", "connected"])
        #expect((fixture.recorder.errors.first as? CBError)?.code == .connectionTimeout)
    }

    @Test("Commands name the link for which they were called, while the events of the next link wait for the queue")
    func commandsNameTheLinkForWhichTheyWereCalled() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        let characteristic = fixture.discover(peripheral).location
        let lost = Disconnection(error: .core(.connectionTimeout), isReconnecting: true, time: 1)
        fixture.manager.deliveryQueue.suspend()
        fixture.backend.deliver(.disconnected(peripheral.connection, lost))
        fixture.backend.deliver(.connected(peripheral.connection, mtu: 185, on: .placeholder(2)))
        peripheral.writeValue(Data([1]), for: characteristic, type: .withResponse)
        #expect(fixture.backend.takeCalls() == [.write([1], CentralFixture.location.valueHandle)])
        #expect(fixture.backend.linkOfLastCommand == .placeholder(1))
        fixture.manager.deliveryQueue.resume()
        #expect(fixture.takeTold() == ["disconnected connecting true", "connected"])
        peripheral.readRSSI()
        #expect(fixture.backend.linkOfLastCommand == .placeholder(2))
    }

    /// Implements only the older form of the callback.
    private final class OldDelegate: NSObject, CBCentralManagerDelegate {
        var errors: [(any Error)?] = []
        func centralManagerDidUpdateState(_ central: CBCentralManager) {}
        func centralManager(
            _ central: CBCentralManager,
            didDisconnectPeripheral peripheral: CBPeripheral,
            error: (any Error)?
        ) {
            errors.append(error)
        }
    }

    @Test("A delegate with only the older disconnection callback gets that one")
    func delegateWithTheOlderCallbackGetsThatOne() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        let delegate = OldDelegate()
        fixture.manager.delegate = delegate
        fixture.deliver(
            .disconnected(peripheral.connection, Disconnection(error: .core(.peripheralDisconnected), time: 1))
        )
        #expect(delegate.errors.count == 1)
        #expect((delegate.errors.first as? CBError)?.code == .peripheralDisconnected)
    }

    @Test("A peripheral that nobody retains is released, and its connection ends", arguments: [true, false])
    func unretainedPeripheralIsReleasedAndItsConnectionEnds(isConnected: Bool) {
        let fixture = CentralFixture()
        let identifier: UUID
        do {
            let peripheral = isConnected ? fixture.connectedPeripheral() : fixture.makePeripheral()
            identifier = peripheral.identifier
            if !isConnected { fixture.manager.connect(peripheral) }
            _ = fixture.takeCalls()
        }
        #expect(fixture.takeCalls() == [.release(identifier)])
    }

    @Test("Connection events are requested and delivered")
    func connectionEventsAreRequestedAndDelivered() {
        let fixture = CentralFixture()
        let identifier = UUID()
        fixture.manager.registerForConnectionEvents(options: [
            .serviceUUIDs: [CBUUID(string: "180D")], .peripheralUUIDs: [identifier],
        ])
        fixture.manager.registerForConnectionEvents()
        #expect(
            fixture.takeCalls() == [
                .connectionEvents(ConnectionEventFilter(services: ["180D"], peripherals: [identifier])),
                .connectionEvents(nil),
            ]
        )
        fixture.deliver(.connectionEvent(KnownPeripheral(identifier: identifier, name: nil), .peerConnected))
        #expect(fixture.takeTold() == ["event peerConnected"])
    }

    // MARK: Power

    @Test("Switched off: the scan and connections end, peripherals stay valid", arguments: [CBManagerState.poweredOff])
    func switchingOffEndsConnectionsAndKeepsPeripheralsValid(state: CBManagerState) {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        _ = fixture.discover(peripheral)
        fixture.manager.scanForPeripherals(withServices: nil)
        _ = fixture.takeCalls()
        fixture.deliver(.stateChanged(state))
        #expect(!fixture.manager.isScanning)
        #expect(peripheral.state == .disconnected)
        #expect(peripheral.services == nil)
        #expect(fixture.takeTold() == ["state poweredOff"])
        fixture.deliver(.stateChanged(.poweredOn))
        fixture.manager.connect(peripheral)
        #expect(peripheral.state == .connecting)
    }

    @Test(
        "What the app begins after the links have ended, and before it knows of the reset, ends",
        arguments: [true, false]
    )
    func callsBeforeTheResetIsKnownAreUndone(isScan: Bool) {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        let manager = fixture.manager
        callOnce(fixture.recorder) {
            if isScan { manager.scanForPeripherals(withServices: nil) } else { manager.connect(peripheral) }
        }
        manager.deliveryQueue.suspend()
        let end = Disconnection(error: .core(.connectionFailed), time: 1)
        fixture.backend.deliver(.disconnected(peripheral.connection, end))
        fixture.backend.deliver(.stateChanged(.resetting))
        manager.deliveryQueue.resume()
        #expect(
            fixture.takeCalls()
                == (isScan
                    ? [.scan(ScanRequest()), .stopScan]
                    : [.connect(peripheral.identifier, ConnectionRequest()), .release(peripheral.identifier)])
        )
        #expect(peripheral.state == .disconnected && !manager.isScanning)
    }

    @Test(
        "Below poweredOff peripherals become invalid, and are discovered as new objects",
        arguments: [CBManagerState.resetting, .unsupported, .unauthorized, .unknown]
    )
    func peripheralsBecomeInvalidBelowPoweredOff(state: CBManagerState) {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        fixture.deliver(.stateChanged(state))
        fixture.deliver(.stateChanged(.poweredOn))
        _ = fixture.takeCalls()
        fixture.manager.connect(peripheral)
        #expect(fixture.takeCalls().isEmpty)
        #expect(peripheral.state == .disconnected)
        #expect(fixture.manager.retrievePeripherals(withIdentifiers: [peripheral.identifier]).first !== peripheral)
    }
}
