import ArgumentParser
import BLE
import BluetoothTypes

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Advertise and serve the services of a profile until stopped.",
        discussion: """
            What happens is told in lines of JSON. Commands are read from standard input, a line each: set UUID HEX, \
            notify UUID HEX, indicate UUID HEX, disconnect, quit; for UUID there may be SERVICE/UUID or #HANDLE, and - \
            for an empty value. The end of standard input does not stop the server.
            """
    )

    @OptionGroup var options: GlobalOptions

    @Argument(help: "The profile: a file in JSON, or - for standard input.")
    var profile: String

    func run() async throws {
        let profile = try Profile(contentsOf: profile)
        let specification = try options.controller.specification()
        let readsCommands = self.profile != "-"
        try await options.withAdapter {
            if let name = profile.name { $0.deviceName = name }
            if let appearance = profile.appearance { $0.appearance = appearance }
        } _: { adapter in
            let server = try await ProfileServer(profile, on: adapter)
            do {
                try await server.run(adapter: "\(specification)", readsCommands: readsCommands)
            } catch  where Task.isCancelled && !(error is OutputError) {
                // Being stopped is how serving ends.
            }
            await uncancelled { await server.stop() }
        }
    }
}
