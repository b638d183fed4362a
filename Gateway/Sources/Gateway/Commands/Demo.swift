import ArgumentParser
import BLE
import Configuration
import Foundation
import GatewayCore

/// Serves simulated devices on a simulated radio.
struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serve two simulated sensors and a lamp, without any hardware.",
        discussion: """
            Everything is in this process: the devices, the radio and the gateway. Clients find them as if they were \
            in range. The state directory is the folder `demo` in that of `run`, unless --state-dir names another. The \
            adapter is simulated too, so --adapter is refused.
            """
    )

    @OptionGroup var options: SettingsOptions

    func validate() throws {
        guard options.adapters.isEmpty else {
            throw ValidationError("demo has a simulated adapter; leave out --adapter, or use `ble-gateway run`")
        }
    }

    func run() async throws {
        var settings = try settings()
        let air = "demo-\(getpid())"
        settings.adapters = [.virtual(name: air)]
        LineLogHandler.bootstrap(settings)
        let process = try GatewayProcess(settings: settings)
        let devices = try await DemoDevices.start(on: .virtual(name: air))
        do {
            try await Self.serve(process)
        } catch {
            await devices.stop()
            throw error
        }
        await devices.stop()
    }

    /// Returns the settings from the options, the environment and the file, without an adapter.
    func settings() throws(SettingsError) -> GatewaySettings {
        var defaults: [Setting: ConfigContent] = [.name: .string("ble-gateway-demo"), .logLevel: .string("warning")]
        // Without clients, the readings may be all that the demo has.
        if try options.settings().servesAPI { defaults[.readings] = .string(ReadingsFormat.none.rawValue) }
        var settings = try options.settings(defaults: defaults)
        if options.state.stateDir == nil { settings.stateDirectory += "/demo" }
        return settings
    }

    /// Serves until a signal stops the process, and prints the introduction when clients can connect.
    ///
    /// - Throws: ``OutputError`` if the introduction cannot be written, or the error of the gateway.
    private static func serve(_ process: GatewayProcess) async throws {
        let (ports, continuation) = AsyncStream.makeStream(of: Int.self)
        // An error of one task ends the other one.
        try await withThrowingDiscardingTaskGroup { group in
            group.addTask {
                defer { continuation.finish() }
                try await process.run { continuation.yield($0) }
            }
            group.addTask {
                for await port in ports { try StandardOutput.line(Self.introduction(of: process, port: port)) }
            }
        }
    }

    /// What the demo has, and what to do next.
    private static func introduction(of process: GatewayProcess, port: Int) -> String {
        let configuration = process.configuration
        let key = configuration.encryptionKey.map { "with the encryption key \($0.base64)" } ?? "without encryption"
        let page =
            process.settings.http.map { "\nThe status page is at http://\($0)/ with the metrics at /metrics." } ?? ""
        return """
            Three simulated devices are in range of this gateway:
              \(DemoDevices.thermometerAddress)  Demo Thermometer  temperature and battery, with notifications
              \(DemoDevices.broadcasterAddress)  Demo Hygro        broadcasts temperature and humidity as BTHome v2
              \(DemoDevices.lampAddress)  Demo Lamp         on, off and brightness, with notifications

            In Home Assistant: Settings, Devices & services, Add integration, ESPHome.
            Host: the address of this machine. Port: \(port).
            Connect \(key).
            Then Home Assistant shows the hygrometer as a discovered BTHome device.

            `ble-gateway status --state-dir \(process.directory.path)` shows clients and connections. Control-C ends the demo.\(page)
            """
    }
}
