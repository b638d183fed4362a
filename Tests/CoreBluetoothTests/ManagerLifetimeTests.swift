import BLE
import BLEGATT
import BluetoothHost
import BluetoothTesting
import BluetoothTypes
import Foundation
import Testing

@testable import CoreBluetooth

/// The lines that are reported while this object exists.
private final class Reports: Sendable {
    let lines: Mailroom<String>
    private let former: @Sendable (String) -> Void

    init() {
        let lines = Mailroom<String>()
        self.lines = lines
        former = ProgrammerError.output.withLock { output in
            let former = output.write
            output.write = { line in
                lines.post(line)
                former(line)
            }
            return former
        }
    }

    deinit {
        ProgrammerError.output.withLock { $0.write = former }
    }

    func contain(_ text: String) -> Bool { lines.waiting.contains { $0.contains(text) } }
}

@Suite("Managers after their release", .serialized, .timeLimit(.minutes(5)))
struct ManagerLifetimeTests {
    @Test("The reason why an adapter cannot be opened is reported once, however often it is tried again")
    func reasonOfAFailedOpeningIsReportedOnce() async {
        let reports = Reports()
        let failure = OpeningFailure(.adapter(.unknownHost("report.invalid")))
        let central = TestCentral(HostCentral(SharedHost(retryDelay: .zero) { _ in .failure(failure) }))
        for _ in 1...3 { await central.events.next { if case .stateChanged(.unsupported) = $0 { () } else { nil } } }
        central.backend.stop()
        #expect(reports.lines.waiting.count { $0.contains("report.invalid") } == 1)
    }

    @Test func networkPrivacyIsReportedIfTheAdapterIsOpenWithoutIt() async throws {
        let reports = Reports()
        let options: [String: Any] = [CBCentralManagerOptionAdapterKey: "virtual:opened without privacy"]
        let queue = DispatchQueue(label: "privacy")
        let first = CBCentralManager(delegate: nil, queue: queue, options: options)
        _ = await (first.backend as? any HostMember)?.shared.settle()
        let second = CBCentralManager(
            delegate: nil,
            queue: queue,
            options: options.merging([CBCentralManagerOptionNetworkPrivacyKey: true]) { $1 }
        )
        await reports.lines.next { $0.contains("option for network privacy has no effect") ? () : nil }
        withExtendedLifetime((first, second)) {}
    }

    @Test func releasedManagerDisconnectsItsPeripherals() async {
        let backend = ScriptedCentralBackend()
        var manager: CBCentralManager? = CBCentralManager(
            delegate: nil,
            queue: DispatchQueue(label: "released"),
            backend: backend
        )
        backend.deliver(.stateChanged(.poweredOn))
        let peripherals = (1...3).map { manager!.peripheral(KnownPeripheral(identifier: UUID(), name: "\($0)")) }
        manager!.deliveryQueue.sync {}
        for peripheral in peripherals { manager!.connect(peripheral) }
        for peripheral in peripherals.prefix(2) {
            backend.deliver(.connected(peripheral.connection, mtu: 100, on: .placeholder(1)))
        }
        manager!.deliveryQueue.sync {}
        manager!.cancelPeripheralConnection(peripherals[1])
        #expect(peripherals.map(\.state) == [.connected, .disconnecting, .connecting])
        var values = peripherals[0].broadcastOfValues().sequence(limit: 1).makeAsyncIterator()
        // The delivery queue may still hold the manager for a moment.
        weak let released = manager
        let queue = manager!.deliveryQueue
        manager = nil
        while released != nil { queue.sync {} }
        #expect(peripherals.map(\.state) == [.disconnected, .disconnected, .disconnected])
        #expect(peripherals.allSatisfy { !$0.canSendWriteWithoutResponse && $0.services == nil })
        #expect(await values.next() == nil)
        #expect(backend.takeCalls().last == .stop)
    }

    @Test("A call on a peripheral of a released manager is reported, and throws if it is awaited")
    func callsOnPeripheralAreReported() async {
        let reports = Reports()
        let backend = ScriptedCentralBackend()
        let peripheral: CBPeripheral
        do {
            let manager = CBCentralManager(delegate: nil, queue: nil, backend: backend)
            peripheral = manager.peripheral(KnownPeripheral(identifier: UUID(), name: "orphan"))
        }
        peripheral.discoverServices(nil)
        #expect(reports.contain("name = orphan"))
        #expect(reports.contain("its manager was released"))
        await #expect(throws: CBError.self) { try await peripheral.linux.discoverServices() }
        #expect(backend.takeCalls() == [.stop])
    }

    @Test("A peripheral that the app keeps over a reset is reported as no longer valid")
    func peripheralKeptOverAResetIsReportedAsInvalid() {
        let reports = Reports()
        let fixture = CentralFixture()
        let peripheral = fixture.manager.peripheral(KnownPeripheral(identifier: UUID(), name: "kept over a reset"))
        fixture.deliver(.stateChanged(.resetting))
        fixture.deliver(.stateChanged(.poweredOn))
        fixture.manager.connect(peripheral)
        fixture.manager.cancelPeripheralConnection(peripheral)
        let lines = reports.lines.waiting.filter { $0.contains("name = kept over a reset") }
        #expect(lines.count == 2)
        #expect(lines.allSatisfy { $0.contains("is no longer valid: its manager was released or reset") })
        #expect(fixture.takeCalls().isEmpty)
    }

    @Test("A call that reaches a backend after its end is reported and answered")
    func callsOnStoppedBackendsAreReported() throws {
        let reports = Reports()
        try World.run(seed: 91) { world in
            let pair = try await LampAndPhone(world)
            pair.phone.backend.stop()
            let read = await pair.phone.read(0x0003, of: UUID())
            #expect(read == .failure(.core(.notConnected)))
            pair.phone.backend.scan(ScanRequest())
            pair.lamp.backend.stop()
            let publishing = await outcome { pair.lamp.backend.publish(Lamp.definition, $0) }
            #expect(publishing.failure == .core(.notConnected))
            try await world.sleep(for: .seconds(1))
        }
        for call in ["read(_:of:_:)", "scan(_:number:)", "publish(_:including:_:)"] {
            #expect(reports.contain("\(call) has no effect"))
        }
    }

    @Test("A change of security after the adapter was closed is reported")
    func securityOfClosedAdapterIsReported() async {
        let reports = Reports()
        let shared = SharedHost { _ in .failure(OpeningFailure(.adapter(.noAdapter))) }
        let security = CBSecurity(shared: shared)
        security.setPairingDelegate(nil)
        let identity = DeviceAddress(1, isRandom: false)
        #expect(await !security.removeBond(identity))
        #expect(await !security.setBondPrivileged(true, for: identity))
        #expect(await security.makeOutOfBandData() == nil)
        let calls = ["setPairingDelegate(_:)", "removeBond(_:)", "setBondPrivileged(_:for:)"]
        for call in calls + ["makeOutOfBandData(isSecureConnections:)"] {
            #expect(reports.contain("\(call) has no effect"))
        }
    }

    /// The object of an app that is usual on iOS: it owns the manager, and is the delegate for everything.
    private final class Controller: PairingDelegate, Sendable {
        let manager: CBCentralManager

        init(_ adapter: String) {
            manager = CBCentralManager(
                delegate: nil,
                queue: DispatchQueue(label: "controller"),
                options: [CBCentralManagerOptionAdapterKey: adapter]
            )
            manager.linux.security?.setPairingDelegate(self)
        }

        func answer(_ inquiry: PairingInquiry) async -> PairingAnswer { .accept }
    }

    @Test func pairingDelegateThatOwnsItsManagerIsReleased() async throws {
        var controller: Controller? = Controller("virtual:pairing delegate that owns its manager")
        let shared = try #require(controller?.manager.backend as? any HostMember).shared
        _ = await shared.settle()
        #expect(shared.open != nil)
        weak let released = controller
        controller = nil
        // The loop may still hold the delegate for a moment.
        while released != nil { await Task.yield() }
        while shared.open != nil { await Task.yield() }
    }

    @Test func pairingsAreRefusedAfterTheDelegateIsReleased() throws {
        final class Delegate: PairingDelegate {
            func answer(_ inquiry: PairingInquiry) async -> PairingAnswer { .accept }
        }
        let reports = Reports()
        try World.run(seed: 97) { world in
            let pair = try await LampAndPhone(world)
            var delegate: Delegate? = Delegate()
            let security = CBSecurity(shared: pair.lampDevice.shared)
            if let delegate { security.setPairingDelegate(delegate) }
            try await world.sleep(for: .seconds(1))
            let peer = try await pair.phoneDevice.adapter.central.connect(to: pair.lampDevice.device.address)
            try await peer.pair()
            _ = await security.removeBond(pair.phoneDevice.device.address)
            withExtendedLifetime(delegate) {}
            delegate = nil
            _ = await pair.phoneDevice.adapter.removeBond(pair.lampDevice.device.address)
            try await world.sleep(for: .seconds(60))
            let other = try await pair.phoneDevice.adapter.central.connect(to: pair.lampDevice.device.address)
            await #expect(throws: BLEError.self) { try await other.pair() }
        }
        #expect(reports.contain("the pairing delegate was released"))
    }

    @Test("Another manager can publish the services of a released one")
    func servicesCanBePublishedAgain() throws {
        var fixture: PeripheralFixture? = PeripheralFixture()
        try fixture!.publish()
        fixture!.subscribe()
        let (service, characteristic) = (fixture!.service, fixture!.characteristic)
        #expect(characteristic.subscribedCentrals?.count == 1)
        fixture = nil
        #expect(characteristic.subscribedCentrals?.isEmpty == true)
        characteristic.properties = .read
        #expect(characteristic.properties == .read)
        let next = PeripheralFixture()
        try next.publish(service, at: 0x0020)
        #expect(next.takeTold() == ["added 180D"])
    }

    @Test("A service belongs to one manager, and the end of another one leaves its subscriptions")
    func servicesBelongToOneManager() throws {
        let fixture = PeripheralFixture()
        try fixture.publish()
        fixture.subscribe()
        let characteristic = fixture.characteristic
        var other: PeripheralFixture? = PeripheralFixture()
        other!.manager.add(fixture.service)
        #expect(other!.takeCalls().isEmpty)
        #expect(other!.takeTold() == ["added 180D"])
        #expect((other!.recorder.errors.first as? CBError)?.code == .invalidParameters)
        other!.manager.removeAllServices()
        #expect(characteristic.subscribedCentrals?.count == 1)
        other = nil
        #expect(characteristic.subscribedCentrals?.count == 1)
        // The service is still immutable.
        characteristic.properties = .read
        #expect(characteristic.properties == [.read, .write, .notify])
    }
}
