import ESPHomeMessages

/// What a server tells its clients about itself.
public struct ServerInformation: Hashable, Sendable {
    /// The abilities of a Bluetooth proxy.
    public struct ProxyFeatures: OptionSet, Hashable, Sendable {
        public let rawValue: UInt32

        public init(rawValue: UInt32) { self.rawValue = rawValue }

        public static let passiveScan = ProxyFeatures(rawValue: 1 << 0)
        public static let activeConnections = ProxyFeatures(rawValue: 1 << 1)
        public static let remoteCaching = ProxyFeatures(rawValue: 1 << 2)
        public static let pairing = ProxyFeatures(rawValue: 1 << 3)
        public static let cacheClearing = ProxyFeatures(rawValue: 1 << 4)
        public static let rawAdvertisements = ProxyFeatures(rawValue: 1 << 5)
        public static let stateAndMode = ProxyFeatures(rawValue: 1 << 6)
        public static let connectionParameters = ProxyFeatures(rawValue: 1 << 7)

        /// All of them.
        public static let all = ProxyFeatures(rawValue: 0xFF)
    }

    /// The name on the network.
    public var name: String
    /// The name that people see.
    public var friendlyName: String
    /// The address that identifies the server, as a 48-bit number.
    public var address: UInt64
    /// The version of the software.
    public var version: String
    /// The model.
    public var model: String
    /// The manufacturer.
    public var manufacturer: String
    /// What the Bluetooth proxy can do.
    public var features: ProxyFeatures

    public init(
        name: String,
        friendlyName: String? = nil,
        address: UInt64,
        version: String,
        model: String = "Bluetooth gateway",
        manufacturer: String = "swift-ble",
        features: ProxyFeatures = .all
    ) {
        self.name = name
        self.friendlyName = friendlyName ?? name
        self.address = address
        self.version = version
        self.model = model
        self.manufacturer = manufacturer
        self.features = features
    }

    /// The address as 12 hexadecimal digits in lower case.
    var addressDigits: String {
        let digits = String(address & 0xFFFF_FFFF_FFFF, radix: 16)
        return String(repeating: "0", count: 12 - digits.utf8.count) + digits
    }

    /// The address as pairs of hexadecimal digits in upper case with colons.
    var addressText: String {
        let digits = Array(addressDigits.uppercased())
        return stride(from: 0, to: 12, by: 2).map { String(digits[$0...($0 + 1)]) }.joined(separator: ":")
    }

    /// The response to a request for the device information.
    func deviceInformation(isEncrypted: Bool) -> Message {
        var response = ESPHomeDeviceInfoResponse()
        response.name = name
        response.friendlyName = friendlyName
        response.macAddress = addressText
        response.bluetoothMacAddress = addressText
        response.esphomeVersion = version
        // Clients that compare versions with ESPHome's do not, if a project is named; the name is "author.project".
        response.projectName = "swift-ble.gateway"
        response.projectVersion = version
        response.model = model
        response.manufacturer = manufacturer
        response.bluetoothProxyFeatureFlags = features.rawValue
        response.apiEncryptionSupported = isEncrypted
        return Message(.deviceInfoResponse, response)
    }

    /// The response to Hello.
    func hello() -> Message {
        var response = ESPHomeHelloResponse()
        response.apiVersionMajor = APIVersion.server.major
        response.apiVersionMinor = APIVersion.server.minor
        response.serverInfo = "\(name) (swift-ble \(version))"
        response.name = name
        return Message(.helloResponse, response)
    }

    /// The server's message before the handshake: the chosen protocol, the name and the address.
    var handshakeHello: [UInt8] {
        [0x01] + Array(name.utf8.filter { $0 != 0 }) + [0] + Array(addressDigits.utf8) + [0]
    }
}
