import BLEGATT
import BluetoothTypes

/// The saved form of the state that this host's server keeps of a bonded client.
struct ServerStateEntry: Codable {
    let state: ServerSession.PersistentState

    private enum Key: String, CodingKey {
        case configurations
        case clientFeatures
        case knownDatabaseHash
        case isServiceChangedOwed
    }

    /// A Client Characteristic Configuration by its handle.
    private struct Configuration: Codable {
        let handle: UInt16
        let value: UInt16
        /// The type of the characteristic. Older files have none.
        let characteristic: UUIDEntry?
    }

    init(_ state: ServerSession.PersistentState) {
        self.state = state
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        let entries = try container.decodeIfPresent([Configuration].self, forKey: .configurations) ?? []
        guard entries.allSatisfy({ $0.handle != 0 }) else {
            throw container.problem(.configurations, "no attribute has the handle 0")
        }
        state = ServerSession.PersistentState(
            configurations: entries.sorted { $0.handle < $1.handle }.map {
                .init(
                    handle: AttributeHandle(rawValue: $0.handle),
                    configuration: ClientConfiguration(rawValue: $0.value),
                    characteristic: $0.characteristic?.uuid
                )
            },
            clientFeatures: try container.decodeIfPresent(UInt8.self, forKey: .clientFeatures) ?? 0,
            knownDatabaseHash: try container.decodeNumber(.knownDatabaseHash),
            isServiceChangedOwed: try container.decodeIfPresent(Bool.self, forKey: .isServiceChangedOwed) ?? false
        )
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        let configurations = state.configurations.map {
            Configuration(
                handle: $0.handle.rawValue,
                value: $0.configuration.rawValue,
                characteristic: $0.characteristic.map(UUIDEntry.init)
            )
        }
        try container.encode(configurations, forKey: .configurations)
        try container.encode(state.clientFeatures, forKey: .clientFeatures)
        try container.encodeIfPresent(state.knownDatabaseHash?.digits, forKey: .knownDatabaseHash)
        try container.encode(state.isServiceChangedOwed, forKey: .isServiceChangedOwed)
    }
}
