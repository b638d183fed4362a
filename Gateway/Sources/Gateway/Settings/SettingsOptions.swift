import ArgumentParser
import Configuration
import Foundation
import GatewayCore
import Logging

/// The options that find the state of a gateway.
struct StateOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The configuration file, in JSON.", valueName: "file"),
        completion: .file(extensions: ["json"])
    )
    var config: String?

    @Option(
        help: ArgumentHelp(
            "Where the key, the bonds and the status socket are (default: $STATE_DIRECTORY, /var/lib/ble-gateway for "
                + "root, $XDG_STATE_HOME/ble-gateway or ~/.local/state/ble-gateway).",
            valueName: "directory"
        ),
        completion: .directory
    )
    var stateDir: String?

    /// Returns the settings from these options, the environment and the file.
    ///
    /// - Parameters:
    ///   - options: further options.
    ///   - defaults: the values of settings that neither an option, the environment nor the file gives. They
    ///     replace the built-in defaults.
    func settings(
        _ options: [Setting: ConfigContent] = [:],
        defaults: [Setting: ConfigContent] = [:]
    ) throws(SettingsError) -> GatewaySettings {
        let environment = ProcessInfo.processInfo.environment
        var options = options
        if let stateDir { options[.stateDirectory] = .string(stateDir) }
        var sources = [SettingsSource.options(options), try .environment(environment)]
        let path = config ?? environment[SettingsFile.environmentVariable].flatMap { $0.isEmpty ? nil : $0 }
        if let path { sources.append(try .file(.read(path))) }
        sources.append(.options(defaults))
        return try GatewaySettings(
            merging: sources,
            defaultStateDirectory: StateDirectory.defaultPath(environment: environment, isRoot: getuid() == 0),
            hostName: ProcessInfo.processInfo.hostName
        )
    }
}

/// The options of the log.
struct LogOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The least severe messages to log: trace, debug, info (default), notice, warning, error or critical.",
            valueName: "level"
        ),
        completion: .list(Logger.Level.allCases.map(\.rawValue))
    )
    var logLevel: String?

    @Option(
        help: ArgumentHelp("The format of log lines: text (default) or json.", valueName: "format"),
        completion: .list(LogFormat.allCases.map(\.rawValue))
    )
    var logFormat: String?

    /// The settings that the options give.
    var values: [Setting: ConfigContent] {
        var values: [Setting: ConfigContent] = [:]
        values[.logLevel] = logLevel.map { .string($0) }
        values[.logFormat] = logFormat.map { .string($0) }
        return values
    }
}

/// The options that override the configuration of a gateway.
struct SettingsOptions: ParsableArguments {
    @OptionGroup var state: StateOptions

    @Option(
        name: .customLong("adapter"),
        help: ArgumentHelp("An adapter, for example hci0; may be repeated.", valueName: "adapter"),
        completion: .custom { _, _, _ in SettingsOptions.adapterCandidates() }
    )
    var adapters: [String] = []

    @Option(help: ArgumentHelp("The address to listen on (default: all).", valueName: "address"))
    var host: String?

    @Option(help: ArgumentHelp("The TCP port to listen on, 0 for a free one (default: 6053).", valueName: "number"))
    var port: Int?

    @Flag(help: "Serve without encryption: everyone in the network can use the adapters.")
    var plaintext = false

    @Flag(name: .customLong("no-api"), help: "Do not serve the ESPHome native API: only readings of sensors.")
    var omitsAPI = false

    @Option(
        help: ArgumentHelp(
            "How readings of sensors are written to standard output: json (default without --mqtt) or none.",
            valueName: "format"
        ),
        completion: .list(ReadingsFormat.allCases.map(\.rawValue))
    )
    var readings: String?

    @Option(
        help: ArgumentHelp(
            "The MQTT broker that readings of sensors are published to, as mqtt://user@host:port or mqtts://….",
            valueName: "address"
        )
    )
    var mqtt: String?

    @Option(
        help: ArgumentHelp(
            "The port of the status page and the metrics, for this machine only, or host:port (default: none).",
            valueName: "address"
        )
    )
    var http: String?

    @Option(
        name: .customLong("bind-key"),
        help: ArgumentHelp(
            "The address and the key of a sensor that encrypts its readings; may be repeated.",
            valueName: "address=key"
        )
    )
    var bindKeys: [String] = []

    @Option(help: "The name of the gateway in the network (default: the host name up to its first dot).")
    var name: String?

    @Option(
        help: ArgumentHelp("How to scan until a client chooses: passive or active (default).", valueName: "mode"),
        completion: .list(ScanMode.allCases.map(\.rawValue))
    )
    var scanMode: String?

    @Option(help: ArgumentHelp("The greatest number of connections to devices (default: 20).", valueName: "number"))
    var connectionLimit: Int?

    @OptionGroup var log: LogOptions

    /// Returns the settings from these options, the environment and the file.
    ///
    /// - Parameter defaults: the values of settings that neither an option, the environment nor the file
    ///   gives. They replace the built-in defaults.
    func settings(defaults: [Setting: ConfigContent] = [:]) throws(SettingsError) -> GatewaySettings {
        try state.settings(values, defaults: defaults)
    }

    /// The settings that the options give.
    var values: [Setting: ConfigContent] {
        var values: [Setting: ConfigContent] = [:]
        if !adapters.isEmpty { values[.adapters] = .stringArray(adapters) }
        if plaintext { values[.plaintext] = .bool(true) }
        if omitsAPI { values[.api] = .bool(false) }
        if !bindKeys.isEmpty { values[.bindKeys] = .stringArray(bindKeys) }
        values[.readings] = readings.map { .string($0) }
        values[.mqtt] = mqtt.map { .string($0) }
        values[.http] = http.map { .string($0) }
        values[.host] = host.map { .string($0) }
        values[.port] = port.map { .int($0) }
        values[.name] = name.map { .string($0) }
        values[.scanMode] = scanMode.map { .string($0) }
        values[.connectionLimit] = connectionLimit.map { .int($0) }
        return values.merging(log.values) { $1 }
    }
}

extension SettingsOptions {
    /// The values of `--adapter` that shells propose: the kernel's adapters, and a controller in software.
    ///
    /// - Parameter folder: the folder with an entry for each adapter, and for each connection, as "hci0:42".
    static func adapterCandidates(in folder: String = "/sys/class/bluetooth") -> [String] {
        let entries = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        let numbers = entries.compactMap { $0.hasPrefix("hci") ? UInt16($0.dropFirst(3)) : nil }
        return numbers.sorted().map { "hci\($0)" } + ["virtual"]
    }
}
