import BLE
import Synchronization

extension DeviceTable {
    /// A client's request to connect to a device.
    struct Request {
        let address: UInt64
        /// The type of the address; nil if the client does not know it.
        let isRandom: Bool?
        let usesCache: Bool
        let client: Client
        /// The adapters that have refused the connection, because they hold no further one.
        var refusals: Set<Int> = []
    }

    /// The connections, the slots and the requests that wait.
    struct State {
        /// The connections, also those that are being made or that end, the oldest first.
        var connections: [DeviceConnection] = []
        /// The clients that are informed about slots.
        var subscribers: [Client] = []
        /// Requests to connect to devices whose connections end because their clients have gone; one for each device.
        var waiting: [UInt64: Request] = [:]
        /// The last change of the saved state (bond and database) of each device that is not connected, with its
        /// number.
        var changes: [UInt64: (number: UInt64, task: Task<Void, Never>)] = [:]
        var lastChange: UInt64 = 0
        /// The connections for commands, by device.
        var slots: [UInt64: DeviceSlot] = [:]
        var failedAttempts = FailedAttempts()
        /// How many links the adapters hold, by their positions.
        var capacities: [Int: LinkCapacity] = [:]
        var isStopping = false
        /// The slots of the last call of the closure for them.
        var lastSlots: ConnectionSlots?

        /// The number of slots in use.
        var usedCount: Int { connections.count + slots.count }

        /// The number of slots in use through an adapter.
        func usedCount(of adapter: Int) -> Int {
            connections.count { $0.adapterIndex == adapter } + slots.values.count { $0.adapterIndex == adapter }
        }

        /// The number of links through an adapter.
        func linkCount(of adapter: Int) -> Int {
            connections.count { $0.adapterIndex == adapter && $0.hasLink }
                + slots.values.count { $0.adapterIndex == adapter && $0.isConnected.load(ordering: .relaxed) }
        }
    }

    // MARK: Status

    var statuses: [GatewayStatus.ConnectionStatus] {
        let (connections, slots) = state.withLock { ($0.connections, $0.slots.sorted { $0.key < $1.key }.map(\.value)) }
        return connections.map { connection in
            GatewayStatus.ConnectionStatus(
                address: "\(connection.device)",
                isConnected: connection.isConnected,
                client: connection.client.networkAddress
            )
        }
            + slots.map { slot in
                GatewayStatus.ConnectionStatus(
                    address: "\(slot.device)",
                    isConnected: slot.isConnected.load(ordering: .relaxed),
                    client: "MQTT"
                )
            }
    }

    /// The number of connections through an adapter.
    func connectionCount(of adapter: Int) -> Int {
        state.withLock { $0.usedCount(of: adapter) }
    }
}
