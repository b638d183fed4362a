import ArgumentParser
import Configuration
import Foundation
import GatewayFleet
import GatewayMQTT
import GatewayWeb
import Logging
import ServiceLifecycle

/// Combines what the gateways of a fleet publish.
struct Fleet: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Combine what several gateways publish about the same tags.",
        discussion: """
            Writes one line of JSON for each transmission of a tag, with all gateways that received it, and one for each \
            tag whose gateway for connections changes. Messages that arrive while the program is away wait at the \
            broker. Ends with SIGTERM, SIGINT or SIGHUP.
            """
    )

    @OptionGroup var state: StateOptions

    @Option(
        help: ArgumentHelp(
            "The MQTT broker that the gateways publish to, as mqtt://user@host:port or mqtts://….",
            valueName: "address"
        )
    )
    var mqtt: String?

    @Option(
        help: ArgumentHelp(
            "The name of the session that the broker keeps (default: ble-gateway-fleet).",
            valueName: "name"
        )
    )
    var session: String?

    @Option(
        help: ArgumentHelp(
            "How long receptions of a transmission are collected (default: 2000).",
            valueName: "milliseconds"
        )
    )
    var window: Int?

    @Option(
        help: ArgumentHelp(
            "Publish the lines too, on topics that begin with this (default: not published).",
            valueName: "topic"
        )
    )
    var publish: String?

    @Option(
        help: ArgumentHelp(
            "The port of the metrics, for this machine only, or host:port (default: none).",
            valueName: "address"
        )
    )
    var http: String?

    @OptionGroup var log: LogOptions

    func run() async throws {
        let settings = try settings()
        guard let broker = settings.broker else {
            throw SettingsError(
                place: "fleet",
                value: nil,
                advice: "there is no broker; name the one of the gateways with --mqtt or the setting \"mqtt\""
            )
        }
        LineLogHandler.bootstrap(settings)
        // A reader of standard output that has gone is an error of a system call.
        signal(SIGPIPE, SIG_IGN)
        let logger = Logger(label: "ble-gateway")
        let directory = StateDirectory(path: settings.stateDirectory)
        try directory.create()
        let journal = try FleetJournal(directory: directory.fleetJournalPath)
        let service = try FleetService(
            Self.configuration(settings, broker: broker, logger: logger),
            journal: journal,
            logger: logger
        )
        var services: [any Service] = [service]
        if let address = settings.http {
            let page = FleetPage { service.status }
            services.append(WebServer(address: address, fleet: page, logger: logger))
        }
        if let manager = ServiceManager(environment: ProcessInfo.processInfo.environment) {
            services.append(
                ServiceReporter(manager: manager, logger: logger, serves: {}, answers: { await service.answer() })
            )
        }
        try await StopLimits.fleet.group(of: services).run()
    }

    /// Returns the settings from these options, the environment and the file.
    func settings() throws(SettingsError) -> GatewaySettings {
        var values = log.values
        values[.mqtt] = mqtt.map { .string($0) }
        values[.fleetSession] = session.map { .string($0) }
        values[.fleetWindow] = window.map { .int($0) }
        values[.fleetPublish] = publish.map { .string($0) }
        values[.http] = http.map { .string($0) }
        return try state.settings(values)
    }

    private static func configuration(
        _ settings: GatewaySettings,
        broker: BrokerAddress,
        logger: Logger
    ) -> FleetService.Configuration {
        var connection = MQTTConfiguration(broker: broker, gateway: "fleet", logger: logger)
        connection.password = settings.mqttPassword
        connection.authorityPath = settings.mqttAuthority
        connection.certificatePath = settings.mqttCertificate
        connection.privateKeyPath = settings.mqttPrivateKey
        var configuration = FleetService.Configuration(
            connection: connection,
            session: settings.fleetSession,
            topics: FleetTopics(prefix: settings.mqttTopic),
            publishing: settings.fleetPublish.map { FleetTopics(prefix: $0) }
        )
        configuration.window.window = .milliseconds(settings.fleetWindow)
        return configuration
    }
}
