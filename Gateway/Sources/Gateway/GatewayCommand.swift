import ArgumentParser
import Foundation
import GatewayCore

/// The program `ble-gateway`.
struct GatewayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ble-gateway",
        abstract: "Serve Bluetooth adapters to Home Assistant, and to other clients of the ESPHome native API.",
        discussion: """
            Settings come from options, then from environment variables BLE_GATEWAY_…, then from the file that --config \
            or BLE_GATEWAY_CONFIG names. The exit status is 0 on success only, 64 if the command line cannot be read, \
            and 1 for any other error, such as an invalid value of a setting.
            """,
        version: Gateway.version,
        subcommands: [Run.self, Check.self, Key.self, Status.self, Demo.self, Announcement.self, Fleet.self]
    )
}

extension GatewayCommand {
    /// Returns the command that shows the help for a command line without the name of the program.
    static func helpCommand(for arguments: some Sequence<String>) -> String {
        let names = configuration.subcommands.map { $0._commandName }
        guard let name = arguments.first(where: { _ in true }), names.contains(name) else {
            return "ble-gateway --help"
        }
        return "ble-gateway \(name) --help"
    }
}

@main
enum Main {
    static func main() async {
        exit(await run())
    }

    /// Runs the command and returns the exit status.
    private static func run() async -> Int32 {
        do {
            var command = try await GatewayCommand.asyncParseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            return EXIT_SUCCESS
        } catch {
            return report(error)
        }
    }

    /// Prints an error in one line and returns the exit status.
    private static func report(_ error: any Error) -> Int32 {
        let code = GatewayCommand.exitCode(for: error)
        if code.isSuccess {
            do throws(OutputError) {
                try StandardOutput.line(GatewayCommand.fullMessage(for: error))
            } catch {
                complain(error.oneLine)
                return EXIT_FAILURE
            }
        } else if code == .validationFailure {
            let message = GatewayCommand.message(for: error)
            let help = GatewayCommand.helpCommand(for: CommandLine.arguments.dropFirst())
            complain("\(message.hasSuffix(".") ? String(message.dropLast()) : message); see `\(help)`")
        } else if !(error is ExitCode) {
            complain(error.oneLine)
        }
        return code.rawValue
    }

    private static func complain(_ message: String) {
        StandardError.write("ble-gateway: \(message)\n")
    }
}

extension Error {
    /// The description of the error without line breaks.
    var oneLine: String {
        "\(self)".split(whereSeparator: \.isNewline).joined(separator: " ")
    }
}
