import Configuration

/// A setting of the gateway. The raw value is its key in the configuration file.
enum Setting: String, CaseIterable {
    case name
    case friendlyName
    case adapters
    case host
    case port
    case plaintext
    case api
    case scanMode
    case connectionLimit
    case clientLimit
    case readings
    case bindKeys
    case mqtt
    case mqttPassword
    case mqttTopic
    case mqttDiscovery
    case mqttAuthority
    case mqttCertificate
    case mqttPrivateKey
    case mqttFormat
    case http
    case httpNames
    case mqttCommands
    case mqttIdleTimeout
    case mqttStoreLimit
    case mqttStoreDays
    case fleetSession
    case fleetWindow
    case fleetPublish
    case stateDirectory
    case logLevel
    case logFormat

    /// The prefix of the environment variables of all settings.
    static let environmentPrefix = "BLE_GATEWAY_"

    /// The key in a configuration.
    var key: AbsoluteConfigKey { AbsoluteConfigKey([rawValue]) }

    /// The environment variable, for example `BLE_GATEWAY_SCAN_MODE`.
    var environmentVariable: String {
        Self.environmentPrefix
            + rawValue.map { $0.isUppercase ? "_\($0)" : $0.uppercased() }.joined()
    }

    /// The option of `run`, or of `fleet` for its settings; nil if only the file and the environment have the setting.
    var option: String? {
        switch self {
        case .friendlyName, .clientLimit, .httpNames, .mqttPassword, .mqttTopic, .mqttDiscovery, .mqttAuthority,
            .mqttCertificate, .mqttPrivateKey, .mqttFormat, .mqttCommands, .mqttIdleTimeout,
            .mqttStoreLimit, .mqttStoreDays:
            nil
        case .adapters: "--adapter"
        case .api: "--no-api"
        case .stateDirectory: "--state-dir"
        case .name: "--name"
        case .host: "--host"
        case .port: "--port"
        case .plaintext: "--plaintext"
        case .scanMode: "--scan-mode"
        case .connectionLimit: "--connection-limit"
        case .readings: "--readings"
        case .bindKeys: "--bind-key"
        case .mqtt: "--mqtt"
        case .http: "--http"
        case .fleetSession: "--session"
        case .fleetWindow: "--window"
        case .fleetPublish: "--publish"
        case .logLevel: "--log-level"
        case .logFormat: "--log-format"
        }
    }

    /// Whether the value is a key or a password, or an address that may have one by mistake. Errors do not show it.
    var isSecret: Bool {
        switch self {
        case .bindKeys, .mqtt, .mqttPassword: true
        default: false
        }
    }

    /// The type of the value.
    var type: ConfigType {
        switch self {
        case .adapters, .bindKeys, .httpNames: .stringArray
        case .port, .connectionLimit, .clientLimit, .mqttIdleTimeout, .mqttStoreLimit, .mqttStoreDays, .fleetWindow:
            .int
        case .plaintext, .api, .mqttCommands: .bool
        default: .string
        }
    }
}
