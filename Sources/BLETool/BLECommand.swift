import ArgumentParser
import BLE
import Glibc

/// The command line tool.
struct BLECommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ble",
        abstract: "Bluetooth Low Energy from the command line.",
        discussion: """
            A TARGET is a device's address, its name, or service:UUID for the first that advertises the service. A \
            CHARACTERISTIC is a UUID, SERVICE/UUID or #HANDLE. The exit status is 0 on success only, and 64 if the \
            command line is wrong.
            """,
        version: SwiftBLE.version,
        groupedSubcommands: [
            CommandGroup(name: "Controller", subcommands: [Adapters.self, Doctor.self, Info.self]),
            CommandGroup(
                name: "Central",
                subcommands: [Scan.self, Sync.self, Explore.self, Read.self, Write.self, Subscribe.self, Link.self]
            ),
            CommandGroup(name: "Peripheral", subcommands: [Serve.self, Advertise.self]),
            CommandGroup(name: "Both", subcommands: [Channel.self, Iso.self, Sounding.self, Throughput.self]),
            CommandGroup(name: "Security", subcommands: [Pair.self, Bonds.self]),
            CommandGroup(name: "Captures", subcommands: [Monitor.self, Decode.self, ReplayCapture.self]),
            CommandGroup(name: "Without hardware", subcommands: [Demo.self, Controller.self]),
        ]
    )
}

extension BLECommand {
    /// Returns the command that shows the help for a command line without the name of the program.
    static func helpCommand(for arguments: some Sequence<String>) -> String {
        var command: any ParsableCommand.Type = BLECommand.self
        var names = ["ble"]
        for argument in arguments {
            let subcommands = command.configuration.subcommands
            guard let next = subcommands.first(where: { $0._commandName == argument }) else { break }
            names.append(argument)
            command = next
        }
        return "\(names.joined(separator: " ")) --help"
    }
}

@main
enum Main {
    static func main() async {
        // If the reader of an output has closed its end, the write fails but the process continues, so that it can
        // release links and advertisements.
        signal(SIGPIPE, SIG_IGN)
        let interruption = Interruption()
        let task = Task { await run(interruption) }
        let handlers = interruption.handle { task.cancel() }
        let status = await task.value
        withExtendedLifetime(handlers) { exit(status) }
    }

    /// The exit status.
    private static func run(_ interruption: Interruption) async -> Int32 {
        do {
            var command = try await BLECommand.asyncParseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            return EXIT_SUCCESS
        } catch {
            return report(error, interruption)
        }
    }

    /// Prints the message of an error, or the help or version that it stands for. Returns the exit status.
    ///
    /// - Parameter output: prints the help or the version.
    static func report(
        _ error: any Error,
        _ interruption: Interruption,
        output: (String) throws(OutputError) -> Void = { text throws(OutputError) in try Output.standard.line(text) }
    ) -> Int32 {
        if let signal = interruption.signal { return 128 + signal }
        if let error = error as? OutputError, error.isBrokenPipe { return 128 + SIGPIPE }
        // The message has already been printed.
        if let code = error as? ExitCode { return code.rawValue }
        let code = BLECommand.exitCode(for: error)
        if code.isSuccess {
            do throws(OutputError) {
                try output(BLECommand.fullMessage(for: error))
            } catch {
                return report(error, interruption)
            }
        } else if code == .validationFailure {
            let message = BLECommand.message(for: error)
            let help = BLECommand.helpCommand(for: CommandLine.arguments.dropFirst())
            Output.complain("\(message.hasSuffix(".") ? String(message.dropLast()) : message); see `\(help)`")
        } else {
            Output.complain(ToolError.description(of: error))
        }
        return code.rawValue
    }
}
