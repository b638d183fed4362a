import BLE
import ESPHomeProtocol
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import Synchronization

/// A Bluetooth proxy: it serves Bluetooth adapters to clients of the ESPHome native API, such as Home Assistant.
///
/// ```swift
/// var configuration = GatewayConfiguration(name: "kitchen")
/// configuration.adapters = [try AdapterSpecification(parsing: "hci0")]
/// configuration.encryptionKey = .random()
/// try await Gateway(configuration: configuration).run()
/// ```
public final class Gateway: Service {
    /// The version that is reported to clients.
    public static let version = SwiftBLE.version

    private static let threadCount = 1
    /// How late advertisements are read, so that the gateway wakes up seldom. Together with the time that they wait in
    /// batches, this is less than the 100 ms that clients expect.
    private static let advertisingReportDelay = Duration.milliseconds(50)
    /// How long clients wait for the first adapter, so that those that connect at once find it.
    private static let adapterTimeout = Duration.seconds(10)
    /// How long adapters may take to close.
    private static let adapterEndTimeout = Duration.seconds(5)
    /// The longest time between the request to end and the end: that of links, adapters and connections, which end one
    /// after the other, and one second for the rest.
    public static let longestEnd =
        GatewayConfiguration.defaultLinkEndTimeout + adapterEndTimeout
        + GatewayConfiguration.defaultConnectionEndTimeout + .seconds(1)

    private let configuration: GatewayConfiguration
    private let group: MultiThreadedEventLoopGroup
    private let watch: AdapterWatch
    private let adapters: AdapterSet
    private let hub: GatewayHub
    private let port = Mutex<Int?>(nil)
    /// Performs commands on devices, for others than the clients of the native API.
    public let commands: DeviceCommands

    /// Creates a gateway that opens the configuration's adapters.
    public convenience init(configuration: GatewayConfiguration) {
        self.init(configuration: configuration, adapters: [])
    }

    /// Creates a gateway on adapters that are open, in addition to the configuration's. The caller closes them.
    public convenience init(configuration: GatewayConfiguration, adapters: [Adapter]) {
        self.init(configuration: configuration, adapters: adapters, system: MachineAdapters())
    }

    /// - Parameter system: how the configuration's adapters are observed and opened.
    init(configuration: GatewayConfiguration, adapters: [Adapter], system: any AdapterSystem) {
        self.configuration = configuration
        group = MultiThreadedEventLoopGroup(numberOfThreads: Self.threadCount)
        let logger = configuration.logger
        let settings = Self.adapterSettings(configuration)
        var sources = adapters.map { AdapterRunner.Source.adapter($0) }
        let watch = AdapterWatch(system)
        self.watch = watch
        for (position, specification) in configuration.adapters.enumerated() {
            var others = configuration.adapters
            others.remove(at: position)
            sources.append(
                .opener(
                    AdapterOpener(
                        specification: specification,
                        configuration: settings,
                        system: system,
                        others: others
                    )
                )
            )
        }
        let sensors = configuration.whenObserved.map { observed in
            SensorReader(
                gateway: configuration.name,
                keys: configuration.sensorKeys,
                logger: logger,
                observed: observed
            )
        }
        let scanner = Scanner(
            adapterCount: sources.count,
            mode: configuration.scanMode,
            sensors: sensors,
            devices: configuration.devices,
            eventLoop: group.next(),
            logger: logger
        )
        let names = AdapterRunner.names(of: sources)
        let runners = sources.enumerated().map { index, source in
            AdapterRunner(
                index: index,
                name: names[index],
                source: source,
                watch: watch,
                scanner: scanner,
                events: configuration.events,
                logger: logger
            )
        }
        self.adapters = AdapterSet(runners: runners, scanner: scanner)
        let devices = DeviceTable(
            limit: configuration.connectionLimit,
            adapters: self.adapters,
            failedAttemptTime: configuration.failedAttemptTime,
            events: configuration.events,
            whenSlotsChanged: configuration.whenSlotsChanged,
            logger: logger
        )
        hub = GatewayHub(configuration: configuration, scanner: scanner, devices: devices)
        commands = DeviceCommands(
            devices: devices,
            idleTimeout: configuration.commandIdleTimeout,
            logger: logger
        )
    }

    /// Returns the settings with which the gateway opens its adapters.
    static func adapterSettings(_ configuration: GatewayConfiguration) -> Adapter.Configuration {
        let logger = configuration.logger
        var settings = Adapter.Configuration()
        settings.advertisingReportDelay = advertisingReportDelay
        settings.logger = logger
        settings.warn = { logger.warning("\(Gateway.withStateOption($0))") }
        settings.deviceName = configuration.name
        settings.stateLocation = configuration.stateDirectory.map { .directory($0) } ?? .nowhere
        // A device that requests security is paired: the gateway has links only to devices that clients have chosen.
        // Such a pairing replaces no bond.
        settings.security.justWorks = .always
        return settings
    }

    /// Returns a text about the state directory, with the option that names another one. The library does not know the
    /// option.
    static func withStateOption(_ text: String) -> String {
        let advice = "name another directory"
        return text.replacing(advice, with: "\(advice) with --state-dir")
    }

    // MARK: Serving

    /// Serves until graceful shutdown or until the task is cancelled. It can be called once.
    ///
    /// - Throws: an error of the network if the gateway cannot listen.
    public func run() async throws {
        do {
            try await withThrowingDiscardingTaskGroup { tasks in
                if configuration.adapters.contains(where: \.isOfKernel) {
                    tasks.addTask { [watch] in await watch.run() }
                }
                hub.devices.adaptersChanged()
                for runner in adapters.runners {
                    tasks.addTask { [hub] in await runner.run { hub.devices.adaptersChanged() } }
                }
                // A gateway that is to end does not wait for an adapter.
                let server =
                    configuration.servesAPI
                    ? try await cancelWhenGracefulShutdown { [self] in try await startServer() } : nil
                try? await gracefulShutdown()
                port.withLock { $0 = nil }
                await server?.stop()
                hub.endClients()
                async let commandsEnd: Void = commands.stop(timeout: configuration.linkEndTimeout)
                await hub.devices.stop(timeout: configuration.linkEndTimeout)
                await commandsEnd
                tasks.cancelAll()
            }
        } catch {
            await finish()
            throw error
        }
        await finish()
    }

    /// Waits for the connections whose links have ended with their adapters, and ends the thread of the clients.
    private func finish() async {
        // Connections send to their clients until they have ended, so the thread must exist until then.
        if await !hub.devices.waitForEnds(atMost: configuration.connectionEndTimeout) {
            configuration.logger.warning("connections to devices have not ended in time")
        }
        try? await group.shutdownGracefully()
    }

    /// - Returns: nil if the gateway is to end.
    private func startServer() async throws -> APIServer? {
        guard let information = await makeInformation() else { return nil }
        let server = try await APIServer.start(
            hub: hub,
            information: information,
            configuration: configuration,
            group: group
        )
        port.withLock { $0 = server.port }
        configuration.logger.info("serving", metadata: ["port": "\(server.port ?? 0)"])
        configuration.whenServing(server.port ?? 0)
        return server
    }

    /// Returns the information about the gateway that clients can request, once an adapter is open or the time is over.
    ///
    /// - Returns: nil if the gateway is to end.
    private func makeInformation() async -> ServerInformation? {
        let adapterAddress = await adapterAddress()
        guard !Task.isCancelled else { return nil }
        let identity = GatewayIdentity(directory: configuration.stateDirectory, logger: configuration.logger)
        // A random address that cannot be kept would be another one after each start.
        let address = identity.loadOrCreate() ?? adapterAddress ?? Self.address(for: configuration.name)
        return ServerInformation(
            name: configuration.name,
            friendlyName: configuration.friendlyName,
            address: address,
            version: Self.version
        )
    }

    /// The address of the first adapter that is open, within the time limit.
    private func adapterAddress() async -> UInt64? {
        let clock = ContinuousClock()
        let end = clock.now + Self.adapterTimeout
        while !adapters.runners.isEmpty, clock.now < end, !Task.isCancelled {
            for runner in adapters.runners {
                if let information = try? await runner.adapter?.information {
                    return information.identityAddress.value
                }
            }
            try? await Task.sleep(for: .milliseconds(20))
        }
        return nil
    }

    /// A locally administered address that depends on the name only (FNV-1a).
    private static func address(for name: String) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in name.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return GatewayIdentity.localAddress(hash)
    }

    // MARK: Status

    /// Returns once the thread of the clients and those of all adapters have answered.
    public func answer() async {
        try? await group.next().submit {}.get()
        for runner in adapters.runners { _ = try? await runner.adapter?.information }
    }

    /// Waits until clients can connect; returns at once if none are served.
    public func waitUntilServing() async {
        guard configuration.servesAPI else { return }
        while port.withLock({ $0 }) == nil, !Task.isCancelled { try? await Task.sleep(for: .milliseconds(20)) }
    }

    /// What the gateway does now.
    public var status: GatewayStatus {
        get async {
            GatewayStatus(
                servesClients: configuration.servesAPI,
                port: port.withLock { $0 },
                connectionLimit: hub.devices.connectionSlots.limit,
                adapters: adapters.runners.map { runner in
                    GatewayStatus.AdapterStatus(
                        name: runner.name,
                        isOpen: runner.usableAdapter != nil,
                        isScanning: adapters.scanner.isScanning(runner.index),
                        failure: runner.failure,
                        connectionCount: hub.devices.connectionCount(of: runner.index),
                        kernelName: runner.kernelName,
                        address: runner.address,
                        connectionCapacity: hub.devices.capacity(of: runner.index)
                    )
                },
                clients: hub.clientStatuses,
                connections: hub.devices.statuses,
                advertisementCount: adapters.scanner.advertisementCount,
                forwardedAdvertisementCount: hub.advertisementCounts.forwarded,
                droppedAdvertisementCount: hub.advertisementCounts.dropped,
                scanMode: adapters.scanner.mode,
                closedClientCounts: hub.closedClientCounts
            )
        }
    }
}
