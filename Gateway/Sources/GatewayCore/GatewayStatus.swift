import BLE

/// What a gateway does, at one moment.
public struct GatewayStatus: Sendable, Codable, Equatable {
    /// An adapter.
    public struct AdapterStatus: Sendable, Codable, Equatable {
        /// The specification that it was opened by, or its number. No other adapter has the same name.
        public var name: String
        /// Whether it is open.
        public var isOpen: Bool
        /// Whether it scans.
        public var isScanning: Bool
        /// The reason why it is not open; nil if it is.
        public var failure: String?
        /// The number of connections through it.
        public var connectionCount: Int
        /// The kernel's name of it now, for example "hci0"; nil for other adapters.
        public var kernelName: String?
        /// Its address; nil if it was never open.
        public var address: String?
        /// The number of connections that it can hold at one time; nil if it is not known.
        public var connectionCapacity: Int?

        /// Creates a status.
        public init(
            name: String,
            isOpen: Bool,
            isScanning: Bool,
            failure: String?,
            connectionCount: Int,
            kernelName: String? = nil,
            address: String? = nil,
            connectionCapacity: Int? = nil
        ) {
            self.name = name
            self.isOpen = isOpen
            self.isScanning = isScanning
            self.failure = failure
            self.connectionCount = connectionCount
            self.kernelName = kernelName
            self.address = address
            self.connectionCapacity = connectionCapacity
        }
    }

    /// A client of the native API.
    public struct ClientStatus: Sendable, Codable, Equatable {
        /// The client's network address.
        public var address: String
        /// What the client says it is.
        public var information: String
        /// Whether it receives advertisements.
        public var receivesAdvertisements: Bool
        /// The number of advertisements sent to it.
        public var advertisementCount: UInt64
        /// The number of advertisements that it was too slow to receive.
        public var droppedAdvertisementCount: UInt64
    }

    /// A connection to a device, or an attempt to make one.
    public struct ConnectionStatus: Sendable, Codable, Equatable {
        /// The device's address, for example "C0:00:00:00:00:01".
        public var address: String
        /// Whether it is connected; otherwise the gateway is connecting.
        public var isConnected: Bool
        /// The network address of the client that requested it.
        public var client: String
    }

    /// The connection to an MQTT broker.
    public struct BrokerStatus: Sendable, Codable, Equatable {
        /// The broker's address.
        public var address: String
        /// Whether it is connected.
        public var isConnected: Bool
        /// The number of messages that wait, or that the broker has not confirmed.
        public var waitingCount: Int
        /// The number of messages that the broker has confirmed.
        public var deliveredCount: UInt64
        /// The number of messages that were dropped because too many waited.
        public var droppedCount: UInt64
        /// The reason why messages cannot be stored; nil if they can.
        public var storeFailure: String?

        /// Creates a status.
        public init(
            address: String,
            isConnected: Bool = false,
            waitingCount: Int = 0,
            deliveredCount: UInt64 = 0,
            droppedCount: UInt64 = 0,
            storeFailure: String? = nil
        ) {
            self.address = address
            self.isConnected = isConnected
            self.waitingCount = waitingCount
            self.deliveredCount = deliveredCount
            self.droppedCount = droppedCount
            self.storeFailure = storeFailure
        }
    }

    /// Whether the native API is to be served.
    public var servesClients: Bool
    /// The TCP port that clients connect to; nil if the gateway does not serve yet.
    public var port: Int?
    /// The greatest number of connections: the configured limit, or what the controllers hold if that is known to be
    /// less.
    public var connectionLimit: Int
    public var adapters: [AdapterStatus]
    public var clients: [ClientStatus]
    public var connections: [ConnectionStatus]
    /// The number of advertisements received from all adapters.
    public var advertisementCount: UInt64
    /// The number of advertisements sent to all clients, also to former ones. One that two clients received counts
    /// twice.
    public var forwardedAdvertisementCount: UInt64
    /// The number of advertisements that clients were too slow to receive, also former ones.
    public var droppedAdvertisementCount: UInt64
    /// How adapters scan if they do.
    public var scanMode: ScanMode
    /// The number of clients that were disconnected, by reason.
    public var closedClientCounts: [String: UInt64]
    /// The broker that readings of sensors are published to; nil for none.
    public var broker: BrokerStatus?
}
