import ArgumentParser
import BLE
import Foundation
import GatewayCore

/// Reads the configuration and prints the settings that `run` would use.
struct Check: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check the configuration, and print the settings that `run` would use.",
        discussion: "Takes the options of `run`. Opens no adapter and no port, and writes nothing."
    )

    @OptionGroup var options: SettingsOptions

    func run() async throws {
        let settings = try options.settings()
        if settings.isEncrypted { _ = try StateDirectory(path: settings.stateDirectory).keyFile.read() }
        print(settings.text)
    }
}

extension GatewaySettings {
    /// The settings, one in each line.
    var text: String {
        let adapterNames = adapters.map { "\($0)" }.joined(separator: ", ")
        let lines = [
            ("name", name),
            ("friendly name", friendlyName ?? name),
            ("adapters", adapters.isEmpty ? "the default adapter: $BLE_ADAPTER, or hci0" : adapterNames),
            ("listens on", servesAPI ? "\(host ?? "all addresses"), port \(port)" : "nothing: clients are not served"),
            ("encryption", isEncrypted ? "required" : "none: everyone in the network can use the adapters"),
            ("scan mode", scanMode.rawValue),
            ("readings", readings == .none ? "not written" : "\(readings.rawValue), \(bindKeys.count) keys"),
            ("connections", "at most \(connectionLimit)"),
            ("clients", "at most \(clientLimit)"),
            ("broker", broker.map { "\($0)" } ?? "none"),
            ("status page", http.map { "http://\($0)/" } ?? "none"),
            ("commands", takesCommands ? "taken from the broker" : "not taken from the broker"),
            ("state directory", stateDirectory),
            ("log", "\(logLevel.rawValue), \(logFormat.rawValue)"),
        ]
        return lines.map { "\($0):".padding(toLength: 17, withPad: " ", startingAt: 0) + $1 }.joined(separator: "\n")
    }
}
