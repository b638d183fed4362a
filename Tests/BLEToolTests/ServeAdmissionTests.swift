import BLE
import BLEProfiles
import BluetoothTesting
import BluetoothTypes
import Testing

@testable import BLETool

@Suite("Which clients may pair with ble serve, and when")
struct ServeAdmissionTests {
    private static let refusal = BLEError.security(.pairing(.endedByPeer(.pairingNotSupported)))

    private static func profile(permission: String) throws -> Profile {
        let text = """
            {"services": [{"uuid": "180F", "characteristics": [
              {"uuid": "2A19", "properties": ["read"], "permissions": ["\(permission)"], "value": "64"}]}]}
            """
        return try Profile(decoding: JSON(parsing: Array(text.utf8)))
    }

    /// `ble serve` with the given options and a profile that needs pairing.
    private struct Serving: Sendable {
        let server: ProfileServer
        let adapter: Adapter
        private let world: World
        private let address: DeviceAddress
        private let lines = PrintedLines()
        private let input: AsyncStream<String>.Continuation
        private let commands: AsyncStream<String>

        /// The lines about errors and about the pairing window.
        var told: [String] { lines.all }

        init(_ arguments: [String], permission: String = "readEncrypted", in world: World) async throws {
            self.world = world
            let serve = try Serve.parse(arguments + ["profile.json"])
            let profile = try ServeAdmissionTests.profile(permission: permission)
            let policy = try await serve.policy()
            let console = PairingConsole(
                asJSON: true,
                passkey: nil,
                answers: .commands,
                output: { _ in },
                complain: { _ in },
                consents: serve.consent(needsPairing: profile.needsPairing)
            )
            adapter = try await world.device("ble with \(permission)").openAdapter {
                $0.security = policy
                $0.pairingDelegate = console
            }
            address = try await adapter.information.identityAddress
            server = try await ProfileServer(
                profile,
                on: adapter,
                console: console,
                pairingWindow: serve.admission.pairingWindow?.duration
            ) { [lines] line in
                if line.contains("\"error\"") || line.contains("\"window\"") { lines.append(line) }
            }
            (commands, input) = AsyncStream.makeStream()
        }

        func run() async throws { try await server.run(adapter: "virtual", commands: commands) }

        /// Gives the server a command, which has ended when this returns.
        func tell(_ line: String) async throws {
            input.yield(line)
            try await world.sleep(for: .milliseconds(10))
        }

        /// Pairs from a device.
        ///
        /// - Returns: the error; nil if the devices are paired.
        func pair(from device: Device, usesPrivateAddress: Bool = false) async throws -> BLEError? {
            let adapter = try await device.openAdapter { $0.usesPrivateAddresses = usesPrivateAddress }
            let peer = try await adapter.central.connect(to: address)
            do throws(BLEError) {
                try await peer.pair()
                await peer.disconnect()
                return nil
            } catch {
                await peer.disconnect()
                return error
            }
        }
    }

    @Test func everyClientPairsIfSomethingNeedsIt() throws {
        try World.run { world in
            let serving = try await Serving([], in: world)
            for name in ["first", "second"] {
                try await world.sleep(for: .seconds(60))
                #expect(try await serving.pair(from: world.device(name)) == nil)
            }
            let open = try await Serving([], permission: "read", in: world)
            #expect(try await open.pair(from: world.device("third")) == Self.refusal)
        }
    }

    @Test func clientsPairOnlyWhileTheWindowIsOpen() throws {
        try World.run { world in
            let serving = try await Serving(["--pairing-window", "30"], in: world)
            async let run: Void = serving.run()
            #expect(try await serving.pair(from: world.device("first")) == nil)
            try await world.sleep(for: .seconds(60))
            #expect(try await serving.pair(from: world.device("second")) == Self.refusal)
            try await serving.tell("window 2min")
            try await world.sleep(for: .seconds(90))
            #expect(try await serving.pair(from: world.device("third")) == nil)
            try await serving.tell("window close")
            #expect(try await serving.pair(from: world.device("fourth")) == Self.refusal)
            let closed = #"{"event":"window","seconds":0.0}"#
            #expect(serving.told == [closed, #"{"event":"window","seconds":120.0}"#, closed])
            try await serving.tell("quit")
            try await run
        }
    }

    @Test func windowNeedsItsOption() throws {
        try World.run { world in
            let serving = try await Serving([], in: world)
            async let run: Void = serving.run()
            try await serving.tell("window 60")
            try await serving.tell("window close")
            #expect(serving.told.count == 2 && serving.told.allSatisfy { $0.contains("needs --pairing-window") })
            try await serving.tell("quit")
            try await run
        }
    }

    @Test func onlyAllowedClientsPair() throws {
        try World.run { world in
            let (first, second, third) = (world.device("first"), world.device("second"), world.device("third"))
            let allowed = [first, third].flatMap { ["--allow-pairing", "\($0.address)"] }
            let serving = try await Serving(allowed, in: world)
            #expect(try await serving.pair(from: first) == nil)
            #expect(try await serving.pair(from: second) == Self.refusal)
            #expect(try await serving.pair(from: third) == nil)
            // The identity of this device is known only at the end of the pairing, which is discarded then.
            _ = try await serving.pair(from: world.device("fourth"), usesPrivateAddress: true)
            #expect(await serving.adapter.bonds().map(\.identity) == [first.address, third.address])
        }
    }

    @Test func optionsOfAdmissionSayThatClientsMayPair() async throws {
        for arguments in [["--pairing-window", "30"], ["--allow-pairing", "F0:12:34:56:78:9A"]] {
            let serve = try Serve.parse(arguments + ["profile.json"])
            #expect(serve.admission.isGiven)
            #expect(
                Serve.problem(with: arguments + ["--no-pair", "profile.json"])
                    == "--no-pair excludes --pairing-window and --allow-pairing"
            )
        }
        for (option, text, problem) in [
            ("--pairing-window", "soon", "\"soon\" is not a time"),
            ("--allow-pairing", "F0:12", "\"F0:12\" is not a device address"),
            ("--allow-pairing", "lamp", "\"lamp\" is not a device address"),
        ] {
            #expect(Serve.problem(with: [option, text, "profile.json"])?.contains(problem) == true)
        }
        let policy = try await Serve.parse(["--allow-pairing", "f0:12:34:56:78:9a", "profile.json"]).policy()
        #expect(policy.pairable == .always)
        let addresses = [true, false].map { DeviceAddress(0xF012_3456_789A, isRandom: $0) }
        #expect(policy.pairingAcceptList == Set(addresses))
        #expect(try await Serve.parse(["profile.json"]).policy().pairingAcceptList == nil)
    }

    @Test(arguments: [true, false]) func networkPrivacyIsAnOptionOfEachCommand(isGiven: Bool) throws {
        let arguments = isGiven ? ["--network-privacy"] : []
        let options = [
            try Serve.parse(arguments + ["profile.json"]).options, try Scan.parse(arguments).options,
            try Info.parse(arguments).options, try Read.parse(arguments + ["Lamp", "2A19"]).peer.options,
        ]
        for option in options { #expect(option.configuration.usesNetworkPrivacy == isGiven) }
    }
}
