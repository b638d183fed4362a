import BLE
import BluetoothSensors
import ESPHomeProtocol
import Logging

/// Settings of a gateway.
public struct GatewayConfiguration: Sendable {
    /// The name of the gateway on the network: lower-case letters, digits and hyphens, as in a host name.
    public var name: String
    /// The name that people see; nil for ``name``.
    public var friendlyName: String?
    /// The address to listen on.
    public var host: String
    /// The TCP port to listen on; 0 for any free port, see ``Gateway/status``.
    public var port: Int
    /// The pre-shared key of the encryption; nil to serve clients without encryption.
    public var encryptionKey: NoiseKey?
    /// Whether the native API is served.
    public var servesAPI = true
    /// The adapters to open.
    public var adapters: [AdapterSpecification]
    /// The directory in which bonds and identities are kept, among them the random address that the gateway reports to
    /// its clients. If it is nil, nothing is kept, and that address is the one of the first adapter, or made from
    /// ``name`` if there is none. Clients do not distinguish gateways with the same address.
    public var stateDirectory: String?
    /// The greatest number of connections to devices at one time, over all adapters.
    public var connectionLimit: Int
    /// The greatest number of clients at one time.
    public var clientLimit: Int
    /// How long a connection for commands remains after the last one, if it has no subscription.
    public var commandIdleTimeout = Duration.seconds(30)
    /// How adapters scan until a client requests another mode, and again when no client receives advertisements any
    /// more. The last request of the clients that are connected counts.
    public var scanMode: ScanMode
    /// How long an attempt to connect lasts at least that counts as failed although its client has ended it.
    var failedAttemptTime = Duration.seconds(5)
    /// How long the gateway waits for the ends of links when it stops. Those that remain end with their adapters.
    var linkEndTimeout = Self.defaultLinkEndTimeout
    /// How long the gateway then waits for the ends of the connections that used these links.
    var connectionEndTimeout = Self.defaultConnectionEndTimeout
    /// The keys of sensors that encrypt their readings. The kind of an address, public or random, is ignored.
    public var sensorKeys: [DeviceAddress: BindKey] = [:]
    /// Is called for each report of a sensor that says something new, and for each sensor at least once a minute while
    /// it reports; nil to decode no sensors.
    ///
    /// Calls for one sensor are in the order of its advertisements. They come from the adapters' threads, so the
    /// closure must not block.
    public var whenObserved: (@Sendable (SensorObservation) -> Void)?
    /// Is called with the connections that the gateway can make: when it starts, and after each change. Calls are in
    /// the order of the changes. The closure must not block.
    public var whenSlotsChanged: (@Sendable (ConnectionSlots) -> Void)?
    /// Receives what happens, for example that a client has connected.
    public var events = EventLog()
    /// Receives all advertisements; nil if nothing needs a table of devices.
    public var devices: ReceivedDevices?
    /// Receives the gateway's messages.
    public var logger: Logger
    /// Is called once with the TCP port, when clients can connect.
    public var whenServing: @Sendable (_ port: Int) -> Void = { _ in }

    static let defaultLinkEndTimeout = Duration.seconds(2)
    static let defaultConnectionEndTimeout = Duration.seconds(2)

    /// Creates a configuration with default values, without encryption and adapters.
    public init(name: String = "ble-gateway") {
        self.name = name
        host = "::"
        port = 6053
        adapters = []
        connectionLimit = 20
        clientLimit = 16
        scanMode = .active
        logger = Logger(label: "ble-gateway")
    }
}

/// Whether a scan requests scan responses.
public enum ScanMode: String, Sendable, CaseIterable, Codable {
    /// The scan only listens.
    case passive
    /// The scan requests scan responses, which many devices put their names in.
    case active
}
