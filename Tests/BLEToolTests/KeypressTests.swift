import BLE
import BLESMP
import BluetoothTesting
import BluetoothTypes
import Testing

@testable import BLETool

@Suite("Keys of a passkey on the command line")
struct KeypressTests {
    /// A device with a display, and a person who types the shown passkey at a console.
    private struct Display: PairingDelegate {
        let console: PairingConsole
        let world: World

        func answer(_ inquiry: PairingInquiry) async -> PairingAnswer {
            guard case .showPasskey(let passkey) = inquiry.question else { return .accept }
            while (try? console.take(PairingReply(question: nil, answer: .passkey(passkey)))) == nil {
                guard (try? await world.sleep(for: .milliseconds(10))) != nil else { return .refuse }
            }
            return .accept
        }
    }

    @Test(
        "With --keypress the peer gets notifications for a passkey typed here, otherwise none",
        arguments: [true, false]
    )
    func peerIsToldOfKeys(isGiven: Bool) async throws {
        let options = try PairingOptions.parse(["--io", "keyboard"] + (isGiven ? ["--keypress"] : []))
        let policy = try await options.policy()
        let console = PairingConsole(
            asJSON: true,
            passkey: nil,
            answers: .commands,
            output: { _ in },
            complain: { _ in },
            consents: { _ in true }
        )
        let kinds = try World.run { world in
            let lock = try await world.device("lock").openAdapter {
                $0.security.ioCapability = .displayOnly
                $0.security.usesKeypressNotifications = true
                $0.pairingDelegate = Display(console: console, world: world)
            }
            let ble = try await world.device("ble").openAdapter {
                $0.security = policy
                $0.pairingDelegate = console
            }
            try await options.prepare(ble, policy, console)
            let events = await lock.securityEvents()
            let advertising = try await lock.peripheral.startAdvertising(
                AdvertisementConfiguration(interval: .milliseconds(30))
            )
            defer { withExtendedLifetime(advertising) {} }
            let peer = try await ble.central.connect(to: try await lock.information.identityAddress)
            #expect(try await peer.pair(RequiredSecurity(isAuthenticated: true)).isAuthenticated)
            await ble.close()
            await lock.close()
            var kinds: [KeypressNotification.Kind] = []
            for await event in events {
                if case .keyPressed(_, _, let kind) = event { kinds.append(kind) }
            }
            return kinds
        }
        let typed =
            [.entryStarted] + Array(repeating: KeypressNotification.Kind.digitEntered, count: 6) + [.entryCompleted]
        #expect(kinds == (isGiven ? typed : []))
    }

    @Test("Keypress notifications of a peer are printed as text and as JSON")
    func keysOfPeersAreShown() {
        let lines = PrintedLines()
        let peer = DeviceAddress(0x0012_3456_789A, isRandom: false)
        for asJSON in [false, true] {
            let console = PairingConsole(
                asJSON: asJSON,
                passkey: nil,
                answers: .commands,
                output: lines.append,
                complain: { _ in },
                consents: { _ in true }
            )
            for kind in KeypressNotification.Kind.allCases { console.show(kind, on: peer) }
        }
        #expect(
            lines.all.prefix(5) == [
                "\(peer): the passkey is being typed", "\(peer): a digit was typed", "\(peer): a digit was erased",
                "\(peer): the digits were cleared", "\(peer): the passkey was typed",
            ]
        )
        #expect(lines.all.count == 10)
        #expect(
            lines.all.last
                == #"{"event":"keyPressed","address":"00:12:34:56:78:9A","addressType":"public","key":"entryCompleted"}"#
        )
    }

    @Test("Authenticated payload timeouts that a controller supports are accepted")
    func authenticatedPayloadTimeoutOutOfRangeIsRefused() async throws {
        for (text, milliseconds) in [("10ms", 10), ("30", 30_000), ("655s", 655_000)] {
            let options = try PairingOptions.parse(["--authenticated-payload-timeout", text])
            #expect(try await options.policy().authenticatedPayloadTimeout == .milliseconds(milliseconds))
            #expect(!options.isGiven, "it does not say how to pair")
        }
        #expect(try await PairingOptions.parse([]).policy().authenticatedPayloadTimeout == nil)
        for text in ["9ms", "656"] {
            let problem = PairingOptions.problem(with: ["--authenticated-payload-timeout", text])
            #expect(problem == "--authenticated-payload-timeout is 10ms to 655s")
        }
        let problem = PairingOptions.problem(with: ["--authenticated-payload-timeout", "often"])
        #expect(problem?.contains("\"often\" is not a time") == true)
    }
}
