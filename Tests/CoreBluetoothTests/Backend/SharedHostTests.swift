import BLE
import BLEHCITransport
import BLEKeyStore
import BluetoothHost
import BluetoothTypes
import Foundation
import Testing

@testable import BluetoothTesting
@testable import CoreBluetooth

@Suite("A host that managers share", .timeLimit(.minutes(5)))
struct SharedHostTests {
    /// A host on a virtual adapter, which reports when it is opened and closed.
    private func makeHost(_ air: String, _ steps: Mailroom<String>) -> SharedHost {
        SharedHost { _ in
            do throws(BLEError) {
                let adapter = try await Adapter.open(.virtual(name: air))
                steps.post("opened")
                let close: @Sendable () async -> Void = {
                    await adapter.close()
                    steps.post("closed")
                }
                return .success(OpenHost(adapter.host, store: .inMemory(), close: close))
            } catch {
                return .failure(OpeningFailure(error))
            }
        }
    }

    @Test("A shared host is opened with the first manager, closed after the last, and opened again with the next")
    func hostIsOpenWhileThereAreManagers() async throws {
        let steps = Mailroom<String>()
        let shared = makeHost("life", steps)
        for _ in 1...3 {
            let central = TestCentral(HostCentral(shared))
            let peripheral = TestPeripheral(HostPeripheral(shared))
            await central.events.next { if case .stateChanged(.poweredOn) = $0 { () } else { nil } }
            await peripheral.events.next { if case .stateChanged(.poweredOn) = $0 { () } else { nil } }
            central.backend.stop()
            try await peripheral.advertise("lamp", [])
            #expect(steps.waiting == ["opened"])
            peripheral.backend.stop()
            // The next backend starts while this one is still ending.
            let last = TestCentral(HostCentral(shared))
            await last.events.next { if case .stateChanged(.poweredOn) = $0 { () } else { nil } }
            #expect(steps.waiting == ["opened", "closed", "opened"])
            last.backend.stop()
            for step in ["opened", "closed", "opened", "closed"] { #expect(await steps.next { $0 } == step) }
        }
    }

    @Test("A manager that ends while the host is being opened leaves nothing behind")
    func managerThatEndsDuringTheOpeningLeavesNothingBehind() async {
        let steps = Mailroom<String>()
        let central = TestCentral(HostCentral(makeHost("gone", steps)))
        central.backend.scan(ScanRequest())
        central.backend.stop()
        for step in ["opened", "closed"] { #expect(await steps.next { $0 } == step) }
        #expect(central.events.waiting.isEmpty)
    }

    @Test(
        "A host that cannot be opened is reported as a state",
        arguments: [
            (TransportError.permissionDenied("hci0"), CBManagerState.unauthorized),
            (.blockedByRFKill(index: 0), .poweredOff),
            (.adapterDown(index: 0), .poweredOff),
            (.noAdapter, .unsupported),
            (.bluetoothUnavailable, .unsupported),
            (.adapterBusy(index: 0), .unsupported),
        ]
    )
    func hostThatCannotBeOpenedIsReportedAsAState(error: TransportError, state: CBManagerState) async {
        let failure = OpeningFailure(BLEError.adapter(error))
        #expect(failure.text == "\(error)")
        let shared = SharedHost { _ in .failure(failure) }
        for _ in 1...2 {
            let central = TestCentral(HostCentral(shared))
            let shown = await central.events.next { if case .stateChanged(let state) = $0 { state } else { nil } }
            #expect(shown == state)
            central.backend.stop()
        }
    }

    @Test("An adapter that is lost and then blocked or down is poweredOff, until it can be used again")
    func lostAdapterThatIsBlockedIsPoweredOff() throws {
        try World.run(seed: 84) { world in
            let device = world.device("phone")
            let obstacle = Guarded<TransportError?>(nil)
            let adapter = try await Adapter.open(
                on: world.loop,
                configuration: Adapter.Configuration(),
                random: world.makeGenerator()
            ) { () async throws(TransportError) in
                if let error = obstacle.withLock({ $0 }) { throw error }
                return try device.attach()
            }
            let phone = BackendDevice(device: device, adapter: adapter, in: world, store: .inMemory())
            let (central, peripheral) = (await phone.central(), await phone.peripheral())
            try await world.sleep(for: .seconds(10))
            obstacle.withLock { $0 = .blockedByRFKill(index: 0) }
            device.vanish()
            await Self.expect(.resetting, central, peripheral)
            await Self.expect(.poweredOff, central, peripheral)
            try await world.sleep(for: .seconds(100))
            #expect(central.events.waiting.isEmpty && peripheral.events.waiting.isEmpty)
            let late = TestCentral(HostCentral(phone.shared))
            let first = await late.events.next { if case .stateChanged(let state) = $0 { state } else { nil } }
            #expect(first == .poweredOff)

            obstacle.withLock { $0 = .adapterRemoved(index: 0) }
            await Self.expect(.resetting, central, peripheral)
            obstacle.withLock { $0 = .adapterDown(index: 0) }
            await Self.expect(.poweredOff, central, peripheral)
            device.comeBack()
            obstacle.withLock { $0 = nil }
            await Self.expect(.poweredOn, central, peripheral)
            #expect(central.events.waiting.isEmpty && peripheral.events.waiting.isEmpty)
        }
    }

    /// Waits until both managers have the next state.
    private static func expect(_ expected: CBManagerState, _ central: TestCentral, _ peripheral: TestPeripheral) async {
        let ofCentral = await central.events.next { if case .stateChanged(let state) = $0 { state } else { nil } }
        let ofPeripheral = await peripheral.events.next { if case .stateChanged(let state) = $0 { state } else { nil } }
        #expect(ofCentral == expected && ofPeripheral == expected)
    }

    @Test("A virtual adapter has one controller for each kind of manager, others one for both")
    func onlyVirtualAdaptersHaveAControllerForEachKindOfManager() {
        let central = HostRegistry.host(on: "virtual:registry", for: .central)
        #expect(HostRegistry.host(on: "virtual:registry", for: .central) === central)
        #expect(HostRegistry.host(on: "virtual:registry", for: .peripheral) !== central)
        #expect(HostRegistry.host(on: "virtual:registry 2", for: .central) !== central)
        let adapter = HostRegistry.host(on: "hci7", for: .central)
        #expect(HostRegistry.host(on: "hci:7", for: .peripheral) === adapter)
    }

    @Test("A manager without the name of an adapter uses hci0, whether or not it exists yet")
    func unnamedAdapterIsHCI0EvenIfItIsPluggedInLater() {
        let unnamed = HostRegistry.host(on: nil, for: .central, environment: nil)
        #expect(HostRegistry.host(on: "hci0", for: .peripheral) === unnamed)
        #expect(HostRegistry.host(on: "", for: .peripheral, environment: "") === unnamed)
        let other = HostRegistry.host(on: "hci7", for: .central)
        #expect(HostRegistry.host(on: nil, for: .central, environment: "hci7") === other)
    }

    /// Another object may have the address of an object that was released. A key that named such an object would find
    /// the host of another adapter.
    @Test func registryKeyOfAReleasedAdapterIsNotUsedAgain() async throws {
        var adapter: Adapter? = try await Adapter.open(.virtual(name: "registry key"))
        weak let key = adapter.map { HostRegistry.identity(of: $0) }
        weak let released = adapter
        let shared = HostRegistry.host(on: adapter, for: .central)
        await adapter?.close()
        adapter = nil
        while released != nil { await Task.yield() }
        #expect(key != nil)
        withExtendedLifetime(shared) {}
    }

    /// A host whose opening waits until the test lets it proceed.
    private func makeSlowHost(
        _ steps: Mailroom<String>,
        _ permits: Mailroom<Result<String, OpeningFailure>>,
        retryDelay: Duration = .seconds(3600)
    ) -> SharedHost {
        SharedHost(retryDelay: retryDelay) { options in
            steps.post("opening with \(options.capturePath ?? "nothing")")
            do {
                let air = try await permits.next { $0 }.get()
                let adapter = try await Adapter.open(.virtual(name: air))
                let close: @Sendable () async -> Void = {
                    await adapter.close()
                    steps.post("closed")
                }
                return .success(OpenHost(adapter.host, store: .inMemory(), close: close))
            } catch {
                return .failure(error as? OpeningFailure ?? OpeningFailure(.adapter(.noAdapter)))
            }
        }
    }

    @Test(arguments: [true, false]) func optionsOfAMemberThatHasLeftDoNotCount(isFirstOpeningSuccessful: Bool) async {
        let steps = Mailroom<String>()
        let permits = Mailroom<Result<String, OpeningFailure>>()
        let shared = makeSlowHost(steps, permits)
        let first = TestCentral(HostCentral(shared, options: HostOptions(capturePath: "first")))
        #expect(await steps.next { $0 } == "opening with first")
        let second = TestPeripheral(HostPeripheral(shared, options: HostOptions(capturePath: "second")))
        let third = TestCentral(HostCentral(shared))
        first.backend.stop()
        let air = "options \(isFirstOpeningSuccessful)"
        permits.post(isFirstOpeningSuccessful ? .success(air) : .failure(OpeningFailure(.adapter(.noAdapter))))
        if isFirstOpeningSuccessful { #expect(await steps.next { $0 } == "closed") }
        #expect(await steps.next { $0 } == "opening with second")
        permits.post(.success(air))
        await second.events.next { if case .stateChanged(.poweredOn) = $0 { () } else { nil } }
        await third.events.next { if case .stateChanged(.poweredOn) = $0 { () } else { nil } }
        #expect(first.events.waiting.isEmpty && second.events.waiting.isEmpty && third.events.waiting.isEmpty)
        second.backend.stop()
        third.backend.stop()
        #expect(await steps.next { $0 } == "closed")
    }

    @Test("A host that cannot be opened is tried again until it is open for all its managers")
    func hostThatCannotBeOpenedIsTriedAgain() async {
        let steps = Mailroom<String>()
        let permits = Mailroom<Result<String, OpeningFailure>>()
        let shared = makeSlowHost(steps, permits, retryDelay: .zero)
        let central = TestCentral(HostCentral(shared))
        let peripheral = TestPeripheral(HostPeripheral(shared))
        for _ in 1...3 {
            #expect(await steps.next { $0 } == "opening with nothing")
            permits.post(.failure(OpeningFailure(.adapter(.noAdapter))))
            await central.events.next { if case .stateChanged(.unsupported) = $0 { () } else { nil } }
            await peripheral.events.next { if case .stateChanged(.unsupported) = $0 { () } else { nil } }
        }
        #expect(await steps.next { $0 } == "opening with nothing")
        permits.post(.success("tried again"))
        await central.events.next { if case .stateChanged(.poweredOn) = $0 { () } else { nil } }
        await peripheral.events.next { if case .stateChanged(.poweredOn) = $0 { () } else { nil } }
        central.backend.stop()
        peripheral.backend.stop()
        #expect(await steps.next { $0 } == "closed")
    }

    @Test("A host that waits for its next attempt is released with its last manager")
    func hostThatWaitsForItsNextAttemptIsReleased() async {
        let steps = Mailroom<String>()
        let permits = Mailroom<Result<String, OpeningFailure>>()
        var shared: SharedHost? = makeSlowHost(steps, permits)
        weak let released = shared
        var central: TestCentral? = shared.map { TestCentral(HostCentral($0)) }
        permits.post(.failure(OpeningFailure(.adapter(.noAdapter))))
        await central?.events.next { if case .stateChanged(.unsupported) = $0 { () } else { nil } }
        _ = await shared?.settle()
        central?.backend.stop()
        central = nil
        shared = nil
        while released != nil { await Task.yield() }
        #expect(await steps.next { $0 } == "opening with nothing")
        #expect(steps.waiting.isEmpty)
    }

    @Test func hostIsNotOpenedAgainForEqualOptions() async {
        let steps = Mailroom<String>()
        let permits = Mailroom<Result<String, OpeningFailure>>()
        let shared = makeSlowHost(steps, permits)
        let first = TestCentral(HostCentral(shared))
        #expect(await steps.next { $0 } == "opening with nothing")
        first.backend.stop()
        let second = TestCentral(HostCentral(shared))
        permits.post(.success("equal options"))
        await second.events.next { if case .stateChanged(.poweredOn) = $0 { () } else { nil } }
        second.backend.stop()
        #expect(await steps.next { $0 } == "closed")
        #expect(steps.waiting.isEmpty)
    }
}

@Suite("The directory of peers")
struct PeerDirectoryTests {
    private let lasting = DeviceAddress(0x0011_2233_4455, isRandom: false)
    private let fixed = DeviceAddress(0xC011_2233_4455, isRandom: true)
    private let resolvable = DeviceAddress(0x4011_2233_4455, isRandom: true)

    private func open(_ directory: String) async -> KeyStore {
        await KeyStore.open(adapter: "A", in: directory, writeDelay: .seconds(3600)) { Issue.record("\($0)") }
    }

    private func temporaryPath() -> String {
        FileManager.default.temporaryDirectory.path + "/peers-\(UUID().uuidString)"
    }

    @Test("Known peers keep identifier and name over restarts, except those with private addresses")
    func knownPeersKeepIdentifierAndNameOverRestarts() async throws {
        let path = temporaryPath()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let store = await open(path)
        let first = PeerDirectory(store: store) { UUID() }
        let identifiers = [lasting, fixed, resolvable].map(first.identifier)
        #expect(Set(identifiers).count == 3)
        #expect([lasting, fixed, resolvable].map(first.identifier) == identifiers)
        #expect(identifiers.allSatisfy { first.use($0) })
        #expect(!first.use(UUID()))
        first.read(deviceName: "lamp", of: identifiers[0])
        #expect(first.name(of: identifiers[0]) == "lamp")
        await store.close()

        let second = PeerDirectory(store: await open(path)) { UUID() }
        #expect(second.known(identifiers).map(\.name) == ["lamp", nil])
        #expect(second.identifier(of: lasting) == identifiers[0])
        #expect(second.identifier(of: fixed) == identifiers[1])
        #expect(second.identifier(of: resolvable) != identifiers[2])
        #expect(second.address(of: identifiers[1]) == fixed)
        // The same number as a public and as a random address means two devices.
        #expect(second.identifier(of: DeviceAddress(fixed.value, isRandom: false)) != identifiers[1])
    }

    @Test func privateAddressesAreForgottenAtTheLimitUnlessConnected() {
        let directory = PeerDirectory(store: .inMemory(), limit: 64) { UUID() }
        let kept = directory.identifier(of: lasting)
        #expect(directory.use(kept))
        let connected = directory.identifier(of: resolvable)
        directory.setConnected(true, connected)
        var crowd: [UUID] = []
        for number in 0..<1000 {
            crowd.append(directory.identifier(of: DeviceAddress(0x4100_0000_0000 + UInt64(number), isRandom: true)))
            #expect(directory.use(crowd[number]))
        }
        let known = directory.known([kept, connected] + crowd).map(\.identifier)
        #expect(known.count <= 66)
        #expect(known.prefix(2) == [kept, connected])
        #expect(known.last == crowd.last)
    }

    @Test("10,000 advertisers cause no write and replace no known peer")
    func advertisersCauseNoWriteAndEvictNothing() async throws {
        let path = temporaryPath()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let store = await open(path)
        let directory = PeerDirectory(store: store) { UUID() }
        let retrieved = directory.heard(lasting, name: "lamp", services: ["180F"]).identifier
        #expect(directory.retrieve([retrieved]).map(\.name) == ["lamp"])
        let bonded = directory.heard(fixed, name: "lock", services: []).identifier
        directory.setBonded([fixed])
        await store.flush()
        let writes = store.writeCount
        #expect(writes == 1)
        var last: UUID?
        for number in 0..<10_000 {
            // Public and static addresses, which do not change.
            let value = (number.isMultiple(of: 2) ? 0x0100_0000_0000 : 0xC100_0000_0000) + UInt64(number)
            let address = DeviceAddress(value, isRandom: !number.isMultiple(of: 2))
            let identifier = directory.heard(address, name: "flood", services: ["180F"]).identifier
            #expect(directory.identifier(of: address) == identifier)
            last = identifier
        }
        await store.flush()
        #expect(store.writeCount == writes)
        #expect(directory.identifier(of: lasting) == retrieved)
        #expect(directory.identifier(of: fixed) == bonded)
        #expect(try directory.known([#require(last)]).count == 1, "the newest advertisers have identifiers")
        await store.close()
        let again = PeerDirectory(store: await open(path)) { UUID() }
        #expect(again.address(of: retrieved) == lasting)
        #expect(again.address(of: bonded) == fixed)
    }

    @Test("A bonded peer is never removed, however many others an app has used since")
    func bondedPeersAreNeverEvicted() {
        let directory = PeerDirectory(store: .inMemory(), limit: 8) { UUID() }
        let bonded = directory.identifier(of: lasting)
        directory.setBonded([lasting])
        for number in 0..<100 {
            #expect(
                directory.use(directory.identifier(of: DeviceAddress(0x0200_0000 + UInt64(number), isRandom: false)))
            )
        }
        #expect(directory.identifier(of: lasting) == bonded)
        directory.setBonded([])
        for number in 100..<200 {
            #expect(
                directory.use(directory.identifier(of: DeviceAddress(0x0200_0000 + UInt64(number), isRandom: false)))
            )
        }
        #expect(directory.address(of: bonded) == nil)
    }

    @Test("A peer that connects is saved only once it is bonded")
    func strangersAreNotSaved() async {
        let path = temporaryPath()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let store = await open(path)
        let directory = PeerDirectory(store: store) { UUID() }
        let identifier = directory.identifier(of: lasting)
        await store.flush()
        #expect(store.writeCount == 0)
        directory.setBonded([lasting])
        await store.close()
        #expect(store.writeCount == 1)
        #expect(PeerDirectory(store: await open(path)) { UUID() }.address(of: identifier) == lasting)
    }

    /// A directory with a device that was bonded, whose bond was removed, and that has paired again under a new private
    /// address. Then it has the first identifier for its identity, and the second one for the address.
    private func pairAgain(
        in directory: PeerDirectory,
        whileHeld: Bool
    ) -> (first: UUID, second: UUID, holds: [HeldPeer]) {
        let former = directory.heldPeer(at: lasting)
        directory.setBonded([lasting])
        directory.setBonded([])
        let present = directory.heldPeer(at: resolvable)
        #expect(directory.use(present.identifier))
        directory.setConnected(true, present.identifier)
        let (first, second) = (former.identifier, present.identifier)
        guard whileHeld else { return (first, second, [present]) }
        return (first, second, [former, present])
    }

    @Test("A device that bonds again keeps its present identifier; an app that has saved the former one finds it")
    func deviceThatBondsAgainKeepsItsPresentIdentifier() async {
        let path = temporaryPath()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let store = await open(path)
        let directory = PeerDirectory(store: store) { UUID() }
        let (first, second, holds) = pairAgain(in: directory, whileHeld: false)
        #expect(first != second)
        directory.identify(resolvable, as: lasting)
        directory.setBonded([lasting])
        directory.setConnected(false, second)
        #expect(directory.heard(lasting, name: "lock", services: ["180F"]).identifier == second)
        #expect(directory.identifier(of: resolvable) == second)
        #expect(directory.retrieve([first, second]).map(\.identifier) == [second, second])
        #expect(directory.connected(withServices: ["180F"]).isEmpty)
        withExtendedLifetime(holds) {}
        await store.close()

        let again = PeerDirectory(store: await open(path)) { UUID() }
        #expect(again.retrieve([first, second]).map(\.identifier) == [second, second])
        #expect(again.address(of: first) == lasting && again.address(of: second) == lasting)
        #expect(again.identifier(of: lasting) == second)
    }

    @Test("While an app keeps the object of the former identifier, both stay, and the saved one finds the device")
    func retainedIdentifierStaysWhenTheDeviceBondsAgain() async {
        let path = temporaryPath()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let store = await open(path)
        let directory = PeerDirectory(store: store) { UUID() }
        let (first, second, holds) = pairAgain(in: directory, whileHeld: true)
        directory.identify(resolvable, as: lasting)
        directory.setBonded([lasting])
        #expect(directory.identifier(of: lasting) == first)
        // Objects keep their identifiers.
        #expect(directory.known([first, second]).map(\.identifier) == [first, second])
        #expect(directory.isSame(second, asAnyOf: [UUID(), first]) && directory.isSame(first, asAnyOf: [second]))
        #expect(!directory.isSame(second, asAnyOf: [UUID()]))
        #expect(directory.address(of: second) == lasting)
        directory.discovered(["180F"], of: second)
        #expect(directory.connected(withServices: ["180F"]).map(\.identifier) == [first])
        directory.setConnected(false, second)
        #expect(directory.connected(withServices: ["180F"]).isEmpty)
        withExtendedLifetime(holds) {}
        await store.close()

        let again = PeerDirectory(store: await open(path)) { UUID() }
        #expect(again.retrieve([second]).map(\.identifier) == [first])
        #expect(again.use(second) && again.address(of: second) == lasting)
    }

    @Test func repeatedPairingsKeepABoundedNumberOfIdentifiers() {
        let directory = PeerDirectory(store: .inMemory()) { UUID() }
        let addresses = (0..<20).map { DeviceAddress(0x4200_0000_0000 + UInt64($0), isRandom: true) }
        var identifiers: [UUID] = []
        for address in addresses {
            identifiers.append(directory.identifier(of: address))
            directory.identify(address, as: lasting)
        }
        #expect(directory.known(identifiers).count == 9)
        #expect(directory.known([identifiers[18]]).map(\.identifier) == [identifiers[19]])
        #expect(addresses.count { directory.identifier(of: $0) == identifiers[19] } == 8)
    }

    @Test("An invalid record is ignored")
    func invalidRecordIsIgnored() async throws {
        let path = temporaryPath()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let file = StateFile(directory: path, name: "A.json")
        let identifier = UUID()
        let records = [
            #"{"address":"00:11:22:33:44:55","isRandom":false,"identifier":"\#(identifier)"}"#,
            #"{"address":"00:11:22:33:44:55","isRandom":false,"identifier":"\#(UUID())"}"#,
            #"{"address":"00:11:22:33:44:56","isRandom":false,"identifier":"\#(identifier)"}"#,
            #"{"address":"nonsense","isRandom":false,"identifier":"\#(UUID())"}"#,
            #"{"address":"40:11:22:33:44:55","isRandom":true,"identifier":"\#(UUID())"}"#,
        ]
        try file.replace(with: Data(#"{"format":1,"peripherals":[\#(records.joined(separator: ","))]}"#.utf8))
        let directory = PeerDirectory(store: await open(path)) { UUID() }
        #expect(directory.identifier(of: lasting) == identifier)
        #expect(directory.address(of: identifier) == lasting)
    }
}

@Suite("Restoring state by a restore identifier")
struct RestorationTests {
    @Test("A central manager's scan and peripherals are restored once, if there were any")
    func scanAndPeripheralsOfACentralAreRestoredOnce() throws {
        try World.run(seed: 81) { world in
            let pair = try await LampAndPhone(world)
            let first = await pair.phoneDevice.central(restoreIdentifier: "app")
            #expect(first.events.waiting.isEmpty)
            let peripheral = await first.find([Lamp.service]).identifier
            await first.connect(peripheral)
            first.backend.scan(ScanRequest(services: [Lamp.service], allowsDuplicates: true))
            try await world.sleep(for: .seconds(1))

            // The state that a new process finds after this one was killed.
            let second = HostCentral(pair.phoneDevice.shared, restoreIdentifier: "app")
            let events = Mailroom<CentralEvent>()
            second.start { event in
                events.post(event)
                return true
            }
            try await world.sleep(for: .seconds(1))
            guard case .restored(let restored)? = events.waiting.first else {
                Issue.record("\(events.waiting)")
                return
            }
            #expect(restored.peripherals.map(\.identifier) == [peripheral])
            #expect(restored.scan == ScanRequest(services: [Lamp.service], allowsDuplicates: true))
            guard case .stateChanged(.poweredOn)? = events.waiting.dropFirst().first else {
                Issue.record("\(events.waiting)")
                return
            }
            // Backends that stop normally leave no state behind.
            first.backend.stop()
            second.stop()
            try await world.sleep(for: .seconds(10))
            let third = await pair.phoneDevice.central(restoreIdentifier: "app")
            #expect(third.events.waiting.isEmpty)
        }
    }

    @Test("A state is delivered once, even if the manager that received it does nothing")
    func stateIsDeliveredOnce() throws {
        try World.run(seed: 83) { world in
            let pair = try await LampAndPhone(world)
            let first = await pair.phoneDevice.central(restoreIdentifier: "app")
            first.backend.scan(ScanRequest(services: [Lamp.service]))
            let advertiser = await pair.phoneDevice.peripheral(restoreIdentifier: "app")
            try await advertiser.advertise("phone", [])
            // Each manager represents a process that starts after the previous one was killed.
            for isRestored in [true, false] {
                let central = await pair.phoneDevice.central(restoreIdentifier: "app")
                #expect(
                    central.events.waiting.contains { if case .restored = $0 { true } else { false } } == isRestored
                )
                let peripheral = await pair.phoneDevice.peripheral(restoreIdentifier: "app")
                #expect(
                    peripheral.events.waiting.contains { if case .restored = $0 { true } else { false } } == isRestored
                )
            }
        }
    }

    @Test(
        "If the adapter cannot be opened at first, the state is restored after the report of that and before poweredOn",
        .timeLimit(.minutes(5))
    )
    func stateIsRestoredAfterAFailedOpening() async throws {
        let path = FileManager.default.temporaryDirectory.path + "/restoration-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let former = await KeyStore.open(adapter: "A", in: path) { Issue.record("\($0)") }
        let saved = Restoration(store: former)
        let scan = ScanRequest(services: [Lamp.service])
        saved.set(Restoration.Central(scan: Restoration.Scan(scan)), for: "app")
        saved.set(Restoration.Advertisement(localName: "lamp", services: ["FFE0"]), for: "app")
        await former.close()

        let store = await KeyStore.open(adapter: "A", in: path) { Issue.record("\($0)") }
        let permits = Mailroom<Result<String, OpeningFailure>>()
        let shared = SharedHost(retryDelay: .zero) { _ in
            do {
                let air = try await permits.next { $0 }.get()
                let adapter = try await Adapter.open(.virtual(name: air))
                return .success(OpenHost(adapter.host, store: store, close: { await adapter.close() }))
            } catch {
                return .failure(error as? OpeningFailure ?? OpeningFailure(.adapter(.noAdapter)))
            }
        }
        let central = TestCentral(HostCentral(shared, restoreIdentifier: "app"))
        let peripheral = TestPeripheral(HostPeripheral(shared, restoreIdentifier: "app"))
        permits.post(.failure(OpeningFailure(.adapter(.noAdapter))))
        permits.post(.success("restored later"))
        await central.events.next { if case .stateChanged(.poweredOn) = $0 { () } else { nil } }
        await peripheral.events.next { if case .stateChanged(.poweredOn) = $0 { () } else { nil } }
        let (centralEvents, peripheralEvents) = (central.events.waiting, peripheral.events.waiting)
        #expect(centralEvents.count == 2 && peripheralEvents.count == 2)
        guard case .stateChanged(.unsupported)? = centralEvents.first,
            case .restored(let restored)? = centralEvents.last,
            case .stateChanged(.unsupported)? = peripheralEvents.first,
            case .restored? = peripheralEvents.last
        else {
            Issue.record("\(centralEvents) \(peripheralEvents)")
            return
        }
        #expect(restored.scan == scan)
        central.backend.stop()
        peripheral.backend.stop()
        _ = await shared.settle()
        await store.close()
    }

    @Test("A peripheral manager's advertisement is restored")
    func advertisementOfAPeripheralManagerIsRestored() throws {
        try World.run(seed: 82) { world in
            let device = try await BackendDevice("lamp", in: world)
            let first = await device.peripheral(restoreIdentifier: "app")
            #expect(first.events.waiting.isEmpty)
            try await first.advertise("lamp", [Lamp.service])
            let second = await device.peripheral(restoreIdentifier: "app")
            guard case .restored(let restored)? = second.events.waiting.first else {
                Issue.record("\(second.events.waiting)")
                return
            }
            #expect(restored == RestoredPeripheral(localName: "lamp", services: [Lamp.service]))
            first.backend.stopAdvertising()
            try await world.sleep(for: .seconds(1))
            #expect(await device.peripheral(restoreIdentifier: "app").events.waiting.isEmpty)
        }
    }

    @Test("An advertisement that did not start is not restored; a later one that started is", arguments: [true, false])
    func advertisementThatDidNotStartIsNotRestored(isReplaced: Bool) throws {
        try World.run(seed: 85) { world in
            let device = try await BackendDevice("lamp", in: world)
            let first = await device.peripheral(restoreIdentifier: "app")
            let data = AdvertisingData([.completeLocalName("hall")])
            // The shortest interval is 20 ms.
            let invalid = AdvertisementPayload(data, scanResponse: AdvertisingData(), interval: .zero)
            let valid = AdvertisementPayload(localName: "lamp", services: [])
            let results = Mailroom<Result<Void, BackendError>>()
            first.backend.startAdvertising(invalid) { results.post($0) }
            if isReplaced { first.backend.startAdvertising(valid) { results.post($0) } }
            #expect(await results.next { $0.failure } == .core(.invalidParameters))
            let restored = await device.peripheral(restoreIdentifier: "app").events.waiting.compactMap { event in
                if case .restored(let peripheral) = event { peripheral.localName } else { nil }
            }
            #expect(restored == (isReplaced ? ["lamp"] : []))
        }
    }
}
