/// A part of the gateway that takes bytes from outside, and the operations on these bytes that may reveal faults.
///
/// A target fails by trapping: in the code that it calls, or if an invariant does not hold. Its input is a
/// ``FuzzScript``.
public enum GatewayFuzzTarget: String, CaseIterable, Sendable {
    /// One session of the native API: frames, the Noise handshake, and messages in any order.
    case session = "gateway-session"
    /// Several clients of one gateway without adapters: places, time, clients that do not read.
    case clients = "gateway-clients"
    /// The messages and topics of a fleet, and their consumer.
    case fleet = "gateway-fleet"
    /// Commands from an MQTT broker.
    case commands = "gateway-commands"
    /// One connection to the web server.
    case http = "gateway-http"
    /// Texts of the settings.
    case settings = "gateway-settings"
    /// The files of the program: its journal, its configuration file and its key.
    case files = "gateway-files"

    /// Processes `input` as bytes from outside.
    public func run(_ input: [UInt8]) {
        switch self {
        case .session: SessionFuzzing.run(FuzzScript(input))
        case .clients: ClientFuzzing.run(FuzzScript(input))
        case .fleet: FleetFuzzing.run(FuzzScript(input))
        case .commands: CommandFuzzing.run(FuzzScript(input))
        case .http: HTTPFuzzing.run(FuzzScript(input))
        case .settings: SettingFuzzing.run(FuzzScript(input))
        case .files: FileFuzzing.run(FuzzScript(input))
        }
    }

    /// Inputs that reach states that random bytes do not reach.
    public var seeds: [[UInt8]] {
        switch self {
        case .session: sessionSeeds.map(\.octets)
        case .clients: clientSeeds.map(\.octets)
        case .fleet: fleetSeeds.map(\.octets)
        case .commands: commandSeeds.map(\.octets)
        case .http: httpSeeds.map(\.octets)
        case .settings: settingSeeds.map(\.octets)
        case .files: fileSeeds.map(\.octets)
        }
    }

    /// The targets with a name: `gateway` for all.
    public static func named(_ name: String) -> [GatewayFuzzTarget] {
        name == "gateway" ? allCases : GatewayFuzzTarget(rawValue: name).map { [$0] } ?? []
    }
}

/// Traps if an invariant does not hold.
func require(_ condition: @autoclosure () -> Bool, _ text: @autoclosure () -> String) {
    if !condition() { fatalError(text()) }
}
