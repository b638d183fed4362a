import ArgumentParser
import BLE
import Foundation
import GatewayCore

/// Prints the service file with which Avahi announces the gateway.
struct Announcement: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the service file for Avahi, which announces the gateway to Home Assistant.",
        discussion: """
            The file goes to /etc/avahi/services. It has the gateway's address, which the gateway stores at its \
            first start: run this command after that, as the user of the service and with the same configuration. \
            The port, the encryption and the names come from the configuration file or from environment variables, \
            because this command does not take the options of `run` for them.
            """
    )

    @OptionGroup var state: StateOptions

    func run() async throws {
        try StandardOutput.line(serviceFile())
    }

    /// The service file of the gateway that the options name, without the line break at its end.
    ///
    /// - Throws: ``SettingsError`` or ``StateError`` if there is nothing to announce.
    func serviceFile() throws -> String {
        let settings = try state.settings()
        try Self.checkPort(of: settings)
        let directory = StateDirectory(path: settings.stateDirectory)
        guard let address = try directory.gatewayAddress else {
            throw StateError(
                path: directory.path,
                failure: "it has no address of a gateway",
                advice: "start the gateway once, or name its directory with --state-dir"
            )
        }
        return Self.serviceFile(settings, address: address)
    }

    /// - Throws: ``SettingsError`` if clients cannot connect, or not to a port that is known before.
    static func checkPort(of settings: GatewaySettings) throws(SettingsError) {
        guard !settings.servesAPI || settings.port == 0 else { return }
        throw SettingsError(
            place: settings.servesAPI ? "port" : "api",
            value: settings.servesAPI ? "0" : "false",
            advice: "there is no port to announce; change the setting, or do not announce the gateway"
        )
    }

    /// The service file with these settings and this address.
    static func serviceFile(_ settings: GatewaySettings, address: DeviceAddress) -> String {
        // Like ESPHome: without colons and in lower case.
        let mac = "\(address)".filter { $0 != ":" }.lowercased()
        var records = [
            ("mac", mac),
            ("friendly_name", settings.friendlyName ?? settings.name),
            ("version", Gateway.version),
            ("platform", "HOST"),
            ("board", "host"),
            ("network", "ethernet"),
        ]
        if settings.isEncrypted { records.append(("api_encryption", "Noise_NNpsk0_25519_ChaChaPoly_SHA256")) }
        let lines = records.map { "    <txt-record>\($0)=\(escaped($1))</txt-record>" }
        return """
            <?xml version="1.0" standalone="no"?>
            <!DOCTYPE service-group SYSTEM "avahi-service.dtd">
            <!-- Made by `ble-gateway announcement`. -->
            <service-group>
              <name replace-wildcards="yes">%h</name>
              <service>
                <type>_esphomelib._tcp</type>
                <port>\(settings.port)</port>
            \(lines.joined(separator: "\n"))
              </service>
            </service-group>
            """
    }

    private static func escaped(_ text: String) -> String {
        // The characters "]]>" must not be in a text (XML 1.0, 2.4).
        text.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
            .replacingOccurrences(of: ">", with: "&gt;")
    }
}

extension StateDirectory {
    /// The address by which clients recognize the gateway; nil until its first start.
    fileprivate var gatewayAddress: DeviceAddress? {
        get throws(StateError) {
            let file = "\(path)/gateway-address"
            if access(file, R_OK) != 0, let refusal = StateError.refusal(path, errno) { throw refusal }
            guard let text = try? String(contentsOfFile: file, encoding: .utf8) else { return nil }
            return DeviceAddress(text.trimmingCharacters(in: .whitespacesAndNewlines), isRandom: false)
        }
    }
}
