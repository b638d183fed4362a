import ArgumentParser
import BLE
import Foundation
import GatewayCore
import Logging
import ServiceLifecycle

/// Serves until the process is stopped.
struct Run: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serve the adapters until SIGTERM or SIGINT.",
        discussion: """
            Without --adapter, the adapter is the one that BLE_ADAPTER names, or else hci0. `ble-gateway key` prints \
            the key that clients need.
            """
    )

    @OptionGroup var options: SettingsOptions

    func run() async throws {
        var settings = try options.settings()
        if settings.adapters.isEmpty { settings.adapters = [try .default()] }
        LineLogHandler.bootstrap(settings)
        try await GatewayProcess(settings: settings).run()
    }
}

/// A gateway with its state directory, its status socket and its signals.
struct GatewayProcess {
    let settings: GatewaySettings
    let directory: StateDirectory
    let configuration: GatewayConfiguration
    private let readings: LineWriter?
    private let logger: Logger

    /// Prepares the state directory and the key.
    ///
    /// - Throws: ``StateError`` if the directory or the key cannot be used.
    init(settings: GatewaySettings) throws(StateError) {
        self.settings = settings
        logger = Logger(label: "ble-gateway")
        directory = StateDirectory(path: settings.stateDirectory)
        try directory.create()
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
        if settings.readings == .json {
            let writer = LineWriter(descriptor: STDOUT_FILENO, logger: logger)
            configuration.whenObserved = { writer.write($0.json) }
            readings = writer
        } else {
            readings = nil
        }
        configuration.logger = logger
        if !settings.servesAPI {
            logger.info("clients are not served")
        } else if settings.isEncrypted {
            let (key, isNew) = try directory.keyFile.readOrCreate()
            configuration.encryptionKey = key
            if isNew { logger.notice("made an encryption key; `ble-gateway key` prints it") }
        } else {
            logger.warning("clients are served without encryption: everyone in the network can use the adapters")
        }
        self.configuration = configuration
    }

    /// Serves until SIGTERM or SIGINT.
    ///
    /// - Parameter whenServing: is called once, when clients can connect.
    func run(whenServing: @escaping @Sendable (_ port: Int) -> Void = { _ in }) async throws {
        var configuration = configuration
        configuration.whenServing = whenServing
        let gateway = Gateway(configuration: configuration)
        let status = try StatusServer(path: directory.statusSocketPath, logger: logger) { await gateway.status }
        var group = ServiceGroupConfiguration(
            services: [gateway, status],
            gracefulShutdownSignals: [.sigterm, .sigint],
            logger: Logger(label: "ble-gateway", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        group.maximumGracefulShutdownDuration = .seconds(10)
        group.maximumCancellationDuration = .seconds(5)
        defer { readings?.finish(timeout: .seconds(1)) }
        try await ServiceGroup(configuration: group).run()
        logger.notice("stopped")
    }
}
