import BluetoothTypes
import GATT

/// What this host's server remembers of a bonded client, as it is written.
struct ServerStateEntry: Codable {
    let state: ServerSession.PersistentState

    private enum Key: String, CodingKey {
        case configurations
        case clientFeatures
    }

    /// A Client Characteristic Configuration by its handle.
    private struct Configuration: Codable {
        let handle: UInt16
        let value: UInt16
    }

    init(_ state: ServerSession.PersistentState) {
        self.state = state
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        var state = ServerSession.PersistentState()
        for entry in try container.decodeIfPresent([Configuration].self, forKey: .configurations) ?? [] {
            guard entry.handle != 0 else {
                throw container.problem(.configurations, "no attribute has the handle 0")
            }
            state.configurations[AttributeHandle(entry.handle)] = ClientConfiguration(rawValue: entry.value)
        }
        state.clientFeatures = try container.decodeIfPresent(UInt8.self, forKey: .clientFeatures) ?? 0
        self.state = state
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        let configurations = state.configurations.sorted { $0.key.rawValue < $1.key.rawValue }.map {
            Configuration(handle: $0.key.rawValue, value: $0.value.rawValue)
        }
        try container.encode(configurations, forKey: .configurations)
        try container.encode(state.clientFeatures, forKey: .clientFeatures)
    }
}
