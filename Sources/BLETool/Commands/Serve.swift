import ArgumentParser
import BLE
import BluetoothTypes
import Profiles

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Advertise and serve the services of a profile until stopped.",
        discussion: """
            What happens is told in lines of JSON. Commands are read from standard input, a line each: set UUID HEX, \
            notify UUID HEX, indicate UUID HEX, disconnect, quit; for UUID there may be SERVICE/UUID or #HANDLE, and - \
            for an empty value. The end of standard input does not stop the server.
            An indication is sent to each client once it has confirmed those before. The next command is read meanwhile; \
            \(PendingValues.limit) indications of a characteristic can wait, and as many notifications; the command \
            after them waits until a client has taken one.
            Docs/Profiles.md describes the profile: its keys, permissions and defaults.
            Clients may pair where the profile has something that needs it, or a pairing option is given. Questions are \
            told in events, one at a time, each with its number N; passkey N DIGITS, yes N and no N answer. --passkey \
            answers the first question for a passkey only.
            """
    )

    @OptionGroup var options: GlobalOptions

    @OptionGroup(title: "Pairing") var pairing: PairingOptions

    @Argument(help: "The profile: a file in JSON, or - for standard input.")
    var profile: String

    func run() async throws {
        let profile = try Profile(contentsOf: profile)
        let specification = try options.controller.specification()
        let readsCommands = self.profile != "-"
        let policy = try pairing.policy()
        let (mayPair, mayReplace) = (
            pairing.isGiven || profile.needsPairing && !pairing.noPair, pairing.replaceBond
        )
        let console = PairingConsole(asJSON: true, passkey: pairing.passkey, readsInput: false) {
            mayPair && ($0.replaces == nil || $0.isProven || mayReplace)
        }
        try await options.withAdapter {
            if let name = profile.name { $0.deviceName = name }
            if let appearance = profile.appearance { $0.appearance = appearance }
            $0.security = policy
            $0.pairingDelegate = console
        } _: { adapter in
            try await pairing.prepare(adapter, policy, console)
            let server = try await ProfileServer(profile, on: adapter, console: console)
            do {
                try await server.run(
                    adapter: "\(specification)",
                    commands: readsCommands ? StandardInput.lines() : nil
                )
            } catch  where Task.isCancelled && !(error is OutputError) {
                // Being stopped is how serving ends.
            }
            await uncancelled { await server.stop() }
        }
    }
}
