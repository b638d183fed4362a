import ArgumentParser
import BLE
import CoreMetrics
import Foundation
import GatewayCore
import GatewayMQTT
import GatewayWeb
import Logging
import ServiceLifecycle

/// Serves until the process is stopped.
struct Run: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serve the adapters until SIGTERM, SIGINT or SIGHUP.",
        discussion: """
            Without --adapter, the adapter is the one that BLE_ADAPTER names, or else hci0. An adapter that is absent \
            is opened when it appears. `ble-gateway key` prints the key that clients need.
            """
    )

    @OptionGroup var options: SettingsOptions

    func run() async throws {
        var settings = try options.settings()
        settings.adapters = try settings.adaptersToOpen(environment: ProcessInfo.processInfo.environment)
        LineLogHandler.bootstrap(settings)
        try await GatewayProcess(settings: settings).run()
    }
}

/// A gateway with its state directory, its status socket and its signals.
struct GatewayProcess {
    let settings: GatewaySettings
    let directory: StateDirectory
    let configuration: GatewayConfiguration
    /// Kept until the gateway has ended, so that no other one uses the directory before.
    private let lock: StateLock
    private let logger: Logger

    /// Locks the state directory and prepares the key.
    ///
    /// - Throws: ``StateError`` if the directory or the key cannot be used, or if another gateway uses the directory.
    init(settings: GatewaySettings) throws(StateError) {
        self.settings = settings
        logger = Logger(label: "ble-gateway")
        directory = StateDirectory(path: settings.stateDirectory)
        try directory.create()
        lock = try StateLock(directory)
        var configuration = GatewayConfiguration(name: settings.name)
        configuration.friendlyName = settings.friendlyName
        if let host = settings.host { configuration.host = host }
        configuration.port = settings.port
        configuration.adapters = settings.adapters
        configuration.stateDirectory = directory.path
        configuration.connectionLimit = settings.connectionLimit
        configuration.clientLimit = settings.clientLimit
        configuration.scanMode = settings.scanMode
        configuration.servesAPI = settings.servesAPI
        configuration.sensorKeys = settings.bindKeys
        configuration.logger = logger
        if !settings.servesAPI {
            logger.info("clients are not served")
        } else if settings.isEncrypted {
            let (key, isNew) = try directory.keyFile.readOrCreate()
            configuration.encryptionKey = key
            if isNew {
                let command = directory.keyCommand(
                    environment: ProcessInfo.processInfo.environment,
                    isRoot: getuid() == 0
                )
                logger.notice("made an encryption key; `\(command)` prints it")
            }
        } else {
            logger.warning("clients are served without encryption: everyone in the network can use the adapters")
        }
        self.configuration = configuration
    }

    /// Serves until SIGTERM, SIGINT or SIGHUP.
    ///
    /// - Parameter whenServing: is called once, when clients can connect.
    func run(whenServing: @escaping @Sendable (_ port: Int) -> Void = { _ in }) async throws {
        defer { withExtendedLifetime(lock) {} }
        var configuration = configuration
        configuration.whenServing = whenServing
        let publishing = settings.publishing(events: configuration.events, logger: logger)
        let publisher = try publishing.map { try MQTTPublisher($0) }
        let writer = settings.readings == .json ? LineWriter(descriptor: STDOUT_FILENO, logger: logger) : nil
        let devices = settings.http.map { _ in ReceivedDevices() }
        configuration.devices = devices
        configuration.whenObserved = observer(publisher, writer, devices)
        if let publisher { configuration.whenSlotsChanged = { publisher.publish($0) } }
        // Metrics go to the backend that is set before they are made.
        let registry = devices.map { _ in MetricsRegistry() }
        if let registry { MetricsSystem.bootstrap(registry) }
        configuration.commandIdleTimeout = .seconds(settings.mqttIdleTimeout)
        let gateway = Gateway(configuration: configuration)
        if settings.takesCommands { publisher?.takeCommands(gateway.commands) }
        let readStatus: @Sendable () async -> GatewayStatus = {
            var status = await gateway.status
            status.broker = publisher?.status
            return status
        }
        let status = try StatusServer(path: directory.statusSocketPath, logger: logger, status: readStatus)
        // Services stop in the reverse order. The status service is the first, so it answers until the end.
        var services: [any Service] = [status]
        if let publisher { services.append(publisher) }
        services.append(gateway)
        var server: WebServer?
        if let address = settings.http, let devices, let registry {
            let page = StatusPage(
                StatusPage.Source(
                    name: settings.friendlyName ?? settings.name,
                    status: readStatus,
                    devices: devices,
                    events: configuration.events,
                    registry: registry
                )
            )
            server = WebServer(address: address, names: settings.httpNames, page: page, logger: logger)
        }
        if let server { services.append(server) }
        if let manager = ServiceManager(environment: ProcessInfo.processInfo.environment) {
            services.append(
                ServiceReporter(
                    manager: manager,
                    logger: logger,
                    serves: { await gateway.waitUntilServing() },
                    answers: { [server] in
                        await gateway.answer()
                        await publisher?.answer()
                        await server?.answer()
                    }
                )
            )
        }
        defer { writer?.finish(timeout: .seconds(1)) }
        try await StopLimits.run.group(of: services).run()
        logger.notice("stopped")
    }

    /// Passes observations to where they are wanted; nil for nowhere.
    private func observer(
        _ publisher: MQTTPublisher?,
        _ writer: LineWriter?,
        _ devices: ReceivedDevices?
    ) -> (@Sendable (SensorObservation) -> Void)? {
        guard publisher != nil || writer != nil || devices != nil else { return nil }
        return { observation in
            devices?.observe(observation)
            writer?.write(observation.json)
            publisher?.publish(observation)
        }
    }
}

extension GatewaySettings {
    /// How readings are published; nil without a broker.
    func publishing(events: EventLog, logger: Logger) -> MQTTConfiguration? {
        guard let broker else { return nil }
        var configuration = MQTTConfiguration(broker: broker, gateway: name, logger: logger)
        configuration.events = events
        configuration.password = mqttPassword
        configuration.authorityPath = mqttAuthority
        configuration.certificatePath = mqttCertificate
        configuration.privateKeyPath = mqttPrivateKey
        configuration.topicPrefix = mqttTopic
        configuration.discoveryPrefix = mqttDiscovery
        configuration.theengsTopic = theengsTopic
        configuration.storePath = stateDirectory + "/mqtt.sqlite"
        configuration.storeLimit = mqttStoreLimit
        configuration.storeDays = mqttStoreDays
        return configuration
    }
}
