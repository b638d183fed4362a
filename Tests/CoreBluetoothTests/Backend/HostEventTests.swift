import BLE
import BLEKeyStore
import BluetoothHost
import BluetoothTesting
import BluetoothTypes
import Foundation
import Testing

@testable import CoreBluetooth

@Suite("Events that hosts report to apps beyond Apple's API", .timeLimit(.minutes(5)))
struct HostEventTests {
    /// A device that shows a passkey.
    private struct Display: PairingDelegate {
        let passkeys: Mailroom<UInt32>

        func answer(_ inquiry: PairingInquiry) async -> PairingAnswer {
            if case .showPasskey(let passkey) = inquiry.question { passkeys.post(passkey) }
            return .accept
        }
    }

    /// An app that consents to each pairing.
    private struct Recorder: PairingDelegate {
        let inquiries: Mailroom<PairingInquiry>

        func answer(_ inquiry: PairingInquiry) async -> PairingAnswer {
            inquiries.post(inquiry)
            return .accept
        }
    }

    /// An app in which a person types the passkey that the other device shows.
    private struct Keyboard: PairingDelegate {
        let security: CBSecurity
        let passkeys: Mailroom<UInt32>

        func answer(_ inquiry: PairingInquiry) async -> PairingAnswer {
            guard case .enterPasskey = inquiry.question else { return .accept }
            let passkey = await passkeys.next { $0 }
            for kind in Keypress.allCases {
                guard await security.reportKeypress(kind, for: inquiry) else { return .refuse }
            }
            return .passkey(passkey)
        }
    }

    private func policy(_ capability: IOCapability) -> SecurityPolicy {
        var policy = SecurityPolicy()
        policy.ioCapability = capability
        policy.usesKeypressNotifications = true
        return policy
    }

    @Test func keypressesAndPairingsAreSecurityEvents() throws {
        try World.run(seed: 92) { world in
            let pair = try await LampAndPhone(world)
            let passkeys = Mailroom<UInt32>()
            let lamp = CBSecurity(shared: pair.lampDevice.shared)
            lamp.setPolicy(policy(.displayOnly))
            lamp.setPairingDelegate(Display(passkeys: passkeys))
            let phone = CBSecurity(shared: pair.phoneDevice.shared)
            phone.setPolicy(policy(.keyboardOnly))
            phone.setPairingDelegate(Keyboard(security: phone, passkeys: passkeys))
            let (lampEvents, phoneEvents) = (lamp.events, phone.events)
            let address = pair.lampDevice.device.address
            let peer = try await pair.phoneDevice.adapter.central.connect(to: address)
            #expect(try await peer.pair(RequiredSecurity(isAuthenticated: true)).isAuthenticated)
            // The last keys may still be on their way.
            try await world.sleep(for: .seconds(1))
            await pair.phoneDevice.adapter.close()
            await pair.lampDevice.adapter.close()

            var kinds: [Keypress] = []
            var bonds = 0
            for await event in lampEvents {
                switch event {
                case .keyPressed(_, _, let kind): kinds.append(kind)
                case .bondAdded: bonds += 1
                default: break
                }
            }
            #expect(kinds == Keypress.allCases && bonds == 1)
            var results: [PairingResult] = []
            for await event in phoneEvents {
                if case .paired(_, let result) = event { results.append(result) }
            }
            #expect(results.map(\.identity) == [address])
        }
    }

    @Test func keypressWithoutAQuestionIsNotSent() throws {
        try World.run(seed: 93) { world in
            let pair = try await LampAndPhone(world)
            let inquiries = Mailroom<PairingInquiry>()
            let lamp = CBSecurity(shared: pair.lampDevice.shared)
            lamp.setPolicy(policy(.keyboardOnly))
            lamp.setPairingDelegate(Recorder(inquiries: inquiries))
            let peer = try await pair.phoneDevice.adapter.central.connect(to: pair.lampDevice.device.address)
            try await peer.pair()
            let inquiry = await inquiries.next { $0 }
            #expect(await lamp.reportKeypress(.digitEntered, for: inquiry) == false)
        }
    }

    @Test func peersPairOnlyWhileTheWindowIsOpen() throws {
        try World.run(seed: 96) { world in
            let pair = try await LampAndPhone(world)
            let lamp = CBSecurity(shared: pair.lampDevice.shared)
            var policy = SecurityPolicy()
            policy.pairable = .duringWindow
            lamp.setPolicy(policy)
            lamp.setPairingDelegate(Recorder(inquiries: Mailroom()))
            for (number, isOpen) in [false, true, false].enumerated() {
                if isOpen { lamp.openPairingWindow(for: .seconds(600)) } else { lamp.closePairingWindow() }
                let phone = try await BackendDevice("phone \(number)", in: world).adapter
                let peer = try await phone.central.connect(to: pair.lampDevice.device.address)
                let isPaired = (try? await peer.pair()) != nil
                #expect(isPaired == isOpen)
                await phone.close()
            }
        }
    }

    /// Reads a sequence of adapter events to its end.
    private func isEndedByClosing(_ events: Events<HostEvent>) async -> Bool {
        var last: HostEvent?
        for await event in events { last = event }
        if case .closed? = last { return true }
        return false
    }

    @Test func sequencesEndWithTheLastManagerAndBeginWithTheNext() async {
        let shared = SharedHost { _ in
            do throws(BLEError) {
                let adapter = try await Adapter.open(.virtual(name: "host events"))
                return .success(OpenHost(adapter.host, store: .inMemory(), close: { await adapter.close() }))
            } catch {
                return .failure(OpeningFailure(error))
            }
        }
        for _ in 1...3 {
            // No manager has the adapter open.
            #expect(await isEndedByClosing(shared.events.adapterEvents()))
            for await event in shared.events.securityEvents() { Issue.record("\(event)") }
            let central = TestCentral(HostCentral(shared))
            let early = shared.events.adapterEvents()
            await central.events.next { if case .stateChanged(.poweredOn) = $0 { () } else { nil } }
            let other = TestCentral(HostCentral(shared))
            let (late, security) = (shared.events.adapterEvents(), CBSecurity(shared: shared).events)
            await other.events.next { if case .stateChanged(.poweredOn) = $0 { () } else { nil } }
            central.backend.stop()
            let reader = Task { await isEndedByClosing(late) }
            other.backend.stop()
            #expect(await isEndedByClosing(early))
            #expect(await reader.value)
            for await event in security { Issue.record("\(event)") }
        }
    }

    @Test func stateThatCannotBeUsedIsTheFirstEvent() async throws {
        let directory = FileManager.default.temporaryDirectory.path + "/host-events-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let name = "host events \(UUID().uuidString)"
        var configuration = Adapter.Configuration()
        configuration.stateLocation = .directory(directory)
        configuration.warn = { _ in }
        let first = try await Adapter.open(.virtual(name: name), configuration: configuration)
        let path = try #require(first.store.path)
        await first.close()
        let file = StateFile(directory: directory, name: String(path.split(separator: "/").last ?? ""))
        try file.replace(with: Data("{".utf8))
        let adapter = try await Adapter.open(.virtual(name: name), configuration: configuration)
        let options = [CBCentralManagerOptionAdapterKey: adapter]
        let central = CBCentralManager(delegate: nil, queue: DispatchQueue(label: "central"), options: options)
        let peripheral = CBPeripheralManager(delegate: nil, queue: DispatchQueue(label: "peripheral"), options: options)
        let sequences = [central.linux.adapterEvents, central.linux.adapterEvents, peripheral.linux.adapterEvents]
        for events in sequences {
            guard case .stateUnavailable(let reason)? = await events.first(where: { _ in true }) else {
                Issue.record("there was no event")
                continue
            }
            #expect(reason.contains("is damaged"))
        }
        // The host has reported it before this sequence was made.
        let later = central.linux.adapterEvents
        guard case .stateUnavailable? = await later.first(where: { _ in true }) else {
            Issue.record("there was no event")
            return
        }
        await adapter.close()
        for events in sequences + [later] { #expect(await isEndedByClosing(events)) }
        withExtendedLifetime((central, peripheral)) {}
    }

    /// The last manager ends, and its settings on an adapter that the app has opened end with it.
    @Test func releaseOfTheLastManagerEndsWhatWasSetOnAnAdapter() throws {
        try World.run(seed: 94) { world in
            let device = world.device("lamp")
            let adapter = try await device.openAdapter()
            let shared = HostRegistry.host(on: adapter, for: .peripheral)
            let security = CBSecurity(shared: shared)
            weak var released: Mailroom<PairingInquiry>?
            for _ in 1...2 {
                let manager = TestPeripheral(HostPeripheral(shared))
                await manager.events.next { if case .stateChanged(.poweredOn) = $0 { () } else { nil } }
                let (events, adapterEvents) = (security.events, shared.events.adapterEvents())
                var delegate: Recorder? = Recorder(inquiries: Mailroom())
                released = delegate?.inquiries
                if let delegate { security.setPairingDelegate(delegate) }
                delegate = nil
                try await world.sleep(for: .seconds(1))
                #expect(released != nil)
                #expect(await adapter.host.hasPairingHandler)
                manager.backend.stop()
                for await event in events { Issue.record("\(event)") }
                #expect(await isEndedByClosing(adapterEvents))
                try await world.sleep(for: .seconds(1))
                #expect(released == nil)
                #expect(await !adapter.host.hasPairingHandler)
                // No manager has the adapter open.
                for await event in security.events { Issue.record("\(event)") }
                #expect(await security.bonds().isEmpty)
            }
            #expect(try await adapter.information.identityAddress == device.address)
        }
    }

    @Test(arguments: [true, false]) func optionSetsThePrivacyMode(isNetwork: Bool) async throws {
        let name = "virtual:privacy \(isNetwork)"
        let central = CBCentralManager(
            delegate: nil,
            queue: DispatchQueue(label: "central"),
            options: [CBCentralManagerOptionAdapterKey: name, CBCentralManagerOptionNetworkPrivacyKey: isNetwork]
        )
        let peripheral = CBPeripheralManager(
            delegate: nil,
            queue: DispatchQueue(label: "peripheral"),
            options: [
                CBPeripheralManagerOptionAdapterKey: name,
                CBPeripheralManagerOptionNetworkPrivacyKey: NSNumber(value: isNetwork),
            ]
        )
        // Hosts of other tests may have failed.
        _ = await HostRegistry.settle()
        for backend in [central.backend as? any HostMember, peripheral.backend as? any HostMember] {
            let host = try #require(backend?.shared.open?.host)
            #expect(await host.usesNetworkPrivacy == isNetwork)
        }
        withExtendedLifetime((central, peripheral)) {}
    }

    @Test func optionsOfTheFirstManagerAfterAnOpeningCount() async throws {
        let name = "virtual:privacy of the next"
        for isNetwork in [false, true, false] {
            let central = CBCentralManager(
                delegate: nil,
                queue: DispatchQueue(label: "central"),
                options: [CBCentralManagerOptionAdapterKey: name, CBCentralManagerOptionNetworkPrivacyKey: isNetwork]
            )
            let backend = try #require(central.backend as? any HostMember)
            _ = await backend.shared.settle()
            let host = try #require(backend.shared.open?.host)
            #expect(await host.usesNetworkPrivacy == isNetwork)
            central.backend?.stop()
            _ = await backend.shared.settle()
        }
    }
}
