import BLEATT
import BluetoothTypes

extension ServerSession {
    /// The state that outlives the connection of a bonded client (Vol 3, Part G, 2.5.2.1, 3.3.3.3, 7.1 and 7.2).
    public struct PersistentState: Hashable, Sendable {
        /// The value of one Client Characteristic Configuration descriptor.
        public struct Configuration: Hashable, Sendable {
            /// The descriptor's handle.
            public var handle: AttributeHandle
            /// The client's value of the descriptor: notifications, indications or both.
            public var configuration: ClientConfiguration

            /// Creates the configuration of the descriptor with this handle.
            public init(handle: AttributeHandle, configuration: ClientConfiguration) {
                self.handle = handle
                self.configuration = configuration
            }
        }

        /// The configurations in the order of their handles; descriptors with value zero are left out.
        public var configurations: [Configuration]
        /// The value that the client has written to Client Supported Features.
        public var clientFeatures: UInt8
        /// The Database Hash of the database that the client knows; nil if it has missed a change, or there is no hash.
        public var knownDatabaseHash: UInt128?
        /// Whether the client has not confirmed a Service Changed that it should receive.
        public var isServiceChangedOwed: Bool

        /// Creates a state. By default, it is that of a client without subscriptions.
        public init(
            configurations: [Configuration] = [],
            clientFeatures: UInt8 = 0,
            knownDatabaseHash: UInt128? = nil,
            isServiceChangedOwed: Bool = false
        ) {
            self.configurations = configurations
            self.clientFeatures = clientFeatures
            self.knownDatabaseHash = knownDatabaseHash
            self.isServiceChangedOwed = isServiceChangedOwed
        }
    }

    /// The state to keep of a bonded client.
    public var persistentState: PersistentState {
        PersistentState(
            configurations: configurations.entries.filter { !$0.configuration.isEmpty }
                .map { .init(handle: $0.handle, configuration: $0.configuration) },
            clientFeatures: clientFeatures,
            knownDatabaseHash: awareness.isAware(of: server.revision) ? server.databaseHash : nil,
            isServiceChangedOwed: isServiceChangedOwed
        )
    }

    /// Restores the stored state of the client. The caller does so once the link is encrypted with the key of the bond,
    /// and not earlier.
    ///
    /// Values that the client has already written on this connection stay. If the database has changed since the state
    /// was stored, the client has missed a change. ``isServiceChangedOwed`` then says whether the server must send
    /// Service Changed.
    public func restore(_ state: PersistentState) {
        let isCurrent = state.knownDatabaseHash != nil && state.knownDatabaseHash == server.databaseHash
        if !awareness.hasBeenTold, !isCurrent { awareness.forget() }
        if state.isServiceChangedOwed || !isCurrent { announcedRevision = nil }
        let features = ClientSupportedFeatures(rawValue: state.clientFeatures)
        clientFeatures |= features.intersection(server.clientFeatures).rawValue
        for kept in state.configurations where configurations.value(at: kept.handle) == nil {
            guard
                case .clientConfiguration(let allowed, let valueHandle)? =
                    server.database.lookUp(kept.handle)?.metadata.source
            else { continue }
            let configuration = kept.configuration.intersection(allowed)
            guard !configuration.isEmpty else { continue }
            _ = configurations.set(configuration, at: kept.handle)
            emit(.configured(valueHandle, from: [], to: configuration))
        }
    }
}
