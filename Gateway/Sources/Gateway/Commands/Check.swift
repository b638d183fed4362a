import ArgumentParser
import BLE
import Foundation
import GatewayCore
import GatewayMQTT
import Logging

/// Reads the configuration and prints the settings that `run` would use.
struct Check: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check the configuration, and print the settings that `run` would use.",
        discussion: "Takes the options of `run`. Opens no adapter and no port, and writes nothing."
    )

    @OptionGroup var options: SettingsOptions

    func run() async throws {
        let settings = try options.settings()
        try settings.check()
        try StandardOutput.line(settings.text)
    }
}

extension GatewaySettings {
    /// Checks what the settings refer to, in the order in which `run` uses it. It does not check whether adapters and
    /// ports are free.
    ///
    /// - Throws: the error with which `run` would end.
    fileprivate func check() throws {
        _ = try adaptersToOpen(environment: ProcessInfo.processInfo.environment)
        let directory = StateDirectory(path: stateDirectory)
        try directory.check()
        if servesAPI, isEncrypted { _ = try directory.keyFile.read() }
        // A publisher reads the files of the connection when it is created. It does nothing else before it runs.
        let logger = Logger(label: "ble-gateway", factory: { _ in SwiftLogNoOpLogHandler() })
        if let configuration = publishing(events: EventLog(), logger: logger) { _ = try MQTTPublisher(configuration) }
        try StatusServer.checkLength(of: directory.statusSocketPath)
    }

    /// The settings, one in each line.
    var text: String {
        let adapterNames = adapters.map { "\($0)" }.joined(separator: ", ")
        let lines = [
            ("name", name),
            ("friendly name", friendlyName ?? name),
            ("adapters", adapters.isEmpty ? "the default adapter: $BLE_ADAPTER, or hci0" : adapterNames),
            ("listens on", servesAPI ? "\(host ?? "all addresses"), port \(port)" : "nothing: clients are not served"),
            ("encryption", encryptionText),
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

    private var encryptionText: String {
        guard servesAPI else { return "not used: clients are not served" }
        return isEncrypted ? "required" : "none: everyone in the network can use the adapters"
    }
}
