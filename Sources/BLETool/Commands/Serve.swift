import ArgumentParser
import BLE
import BLEProfiles
import BluetoothTypes

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Advertise and serve the services of a profile until stopped.",
        discussion: """
            Events are printed as lines of JSON. Commands are read from standard input, one per line: set UUID HEX, \
            notify UUID HEX, indicate UUID HEX, train HEX, transfer [N], disconnect, window TIME, window close, quit; \
            for UUID there may be SERVICE/UUID or #HANDLE, and - for an empty value. train replaces the data of the \
            profile's train. transfer informs each client of its timing, so that the client can receive it without \
            scanning. The end of standard input does not stop the server.
            An indication is sent to each client when it has confirmed the previous ones. Commands are read in the \
            meantime. At most \(PendingValues.limit) indications of a characteristic wait, and as many notifications. \
            The command after them waits until a client has received one.
            Docs/Profiles.md describes the profile: its keys, permissions and defaults.
            Clients may pair if the profile has something that needs it, or a pairing option is given. Pairing by just \
            works is then accepted from every client, unless --authenticated, --pairing-window or --allow-pairing \
            limits it. With --pairing-window, window TIME opens the window again for that long, and window close ends \
            it. A bonded client reconnects at any time.
            Questions are asked in events, one at a time, each with its number N. The answers are passkey N DIGITS, \
            yes N and no N. --passkey answers the first question for a passkey only.
            """
    )

    @OptionGroup var options: GlobalOptions

    @OptionGroup(title: "Pairing") var pairing: PairingOptions

    @OptionGroup(title: "Pairing") var admission: AdmissionOptions

    @Argument(help: "The profile: a file in JSON, or - for standard input.", completion: .file())
    var profile: String

    func validate() throws {
        if pairing.noPair, admission.isGiven {
            throw ValidationError("--no-pair excludes --pairing-window and --allow-pairing")
        }
        if profile == "-" {
            try pairing.validate(inputHas: "the profile", remedy: "name a file for the profile")
        }
    }

    /// The security policy for clients.
    func policy() async throws -> SecurityPolicy {
        var policy = try await pairing.policy()
        admission.apply(to: &policy)
        return policy
    }

    /// Returns the answer to clients that request pairing, if the policy does not decide it.
    func consent(needsPairing: Bool) -> PairingConsole.Consent {
        let mayPair = pairing.isGiven || admission.isGiven || needsPairing && !pairing.noPair
        return { [mayReplace = pairing.replaceBond] in
            mayPair && ($0.replaces == nil || $0.isIdentityVerified || mayReplace)
        }
    }

    func run() async throws {
        let profile = try await Profile(contentsOf: profile)
        let specification = try options.controller.specification()
        let readsCommands = self.profile != "-"
        let policy = try await policy()
        let console = PairingConsole(
            asJSON: true,
            passkey: pairing.passkey,
            answers: .commands,
            consents: consent(needsPairing: profile.needsPairing)
        )
        try await options.withAdapter {
            if let name = profile.name { $0.deviceName = name }
            if let appearance = profile.appearance { $0.appearance = appearance }
            $0.usesAdvertisingCoding = profile.advertise.coding != nil
            $0.security = policy
            $0.pairingDelegate = console
        } _: { adapter in
            try await pairing.prepare(adapter, policy, console)
            let server = try await ProfileServer(
                profile,
                on: adapter,
                console: console,
                pairingWindow: admission.pairingWindow?.duration
            )
            do {
                try await server.run(
                    adapter: "\(specification)",
                    commands: readsCommands ? StandardInput.lines() : nil
                )
            } catch  where Task.isCancelled && !(error is OutputError) {
                // Cancellation is the normal end of serving.
            }
            await uncancelled { await server.stop() }
        }
    }
}
