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
            /// The type of the characteristic that is configured; nil if it is not known.
            public var characteristic: BluetoothUUID?

            /// Creates the configuration of the descriptor with this handle.
            public init(
                handle: AttributeHandle,
                configuration: ClientConfiguration,
                characteristic: BluetoothUUID? = nil
            ) {
                self.handle = handle
                self.configuration = configuration
                self.characteristic = characteristic
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
        var kept = configurations.entries.filter { !$0.configuration.isEmpty }.map { entry in
            PersistentState.Configuration(
                handle: entry.handle,
                configuration: entry.configuration,
                characteristic: server.database.characteristic(configuredAt: entry.handle)?.type
            )
        }
        let waiting = unpublished.configurations.filter { configurations.value(at: $0.handle) == nil }
        if !waiting.isEmpty { kept = (kept + waiting).sorted { $0.handle < $1.handle } }
        return PersistentState(
            configurations: kept,
            clientFeatures: clientFeatures,
            knownDatabaseHash: awareness.isAware(of: server.revision) ? server.databaseHash : nil,
            isServiceChangedOwed: isServiceChangedOwed
        )
    }

    /// Stored configurations whose descriptors are not published yet.
    struct UnpublishedConfigurations {
        var configurations: [PersistentState.Configuration] = []
        /// The Database Hash of the database to which the handles belong.
        var databaseHash: UInt128?
    }

    /// Restores the stored state of the client. The caller does so once the link is encrypted with the key of the bond,
    /// and not earlier.
    ///
    /// Values that the client has already written on this connection stay. If the database has changed since the state
    /// was stored, the client has missed a change. ``isServiceChangedOwed`` then says whether the server must send
    /// Service Changed. A configuration whose handle now belongs to a characteristic of another type is left out. One
    /// whose handle does not exist waits for ``servicesPublished()``.
    public func restore(_ state: PersistentState) {
        unpublished.databaseHash = state.knownDatabaseHash
        let isCurrent = isDatabaseUnchanged
        if !awareness.hasBeenTold, !isCurrent { awareness.forget() }
        if state.isServiceChangedOwed || !isCurrent { announcedRevision = nil }
        let features = ClientSupportedFeatures(rawValue: state.clientFeatures)
        clientFeatures |= features.intersection(server.clientFeatures).rawValue
        restore(state.configurations)
    }

    /// Forgets the state of the client, because another device may be the client now. ``restore(_:)`` may follow.
    ///
    /// This state is the client's configurations and features, its knowledge of the database, and the app's
    /// authorization. The session reports each configuration that ends, but no change of ``persistentState``.
    ///
    /// The prepared writes of the fixed channel are dropped. Its request that waits for the app is answered with
    /// Unlikely Error once the app has answered. The owner ends the enhanced bearers, if there are any.
    public func forgetClient() {
        for entry in configurations.entries where !entry.configuration.isEmpty {
            guard let value = server.database.characteristic(configuredAt: entry.handle)?.value else { continue }
            emit(.configured(value, from: entry.configuration, to: []))
        }
        configurations = ClientConfigurations()
        unpublished = UnpublishedConfigurations()
        clientFeatures = 0
        awareness.clientMayHaveChanged(at: server.revision)
        announcedRevision = server.revision
        refusedRevision = nil
        security.isAuthorized = false
        forgetRequests()
    }

    /// Restores the stored configurations of characteristics that have been published since ``restore(_:)``.
    public func servicesPublished() {
        guard !unpublished.configurations.isEmpty else { return }
        let waiting = unpublished.configurations
        unpublished.configurations = []
        restore(waiting)
        if unpublished.configurations != waiting { persistentStateChanged() }
    }

    /// Whether the database has not changed since the client's state was stored, so that its handles are still valid.
    private var isDatabaseUnchanged: Bool {
        unpublished.databaseHash != nil && unpublished.databaseHash == server.databaseHash
    }

    /// In a changed database, a handle may belong to another characteristic. If the type of the former one is not
    /// known, only Service Changed is certain: its handle never changes.
    private func restore(_ kept: [PersistentState.Configuration]) {
        let isCurrent = isDatabaseUnchanged
        for kept in kept where configurations.value(at: kept.handle) == nil {
            if server.database.index(of: kept.handle) == nil {
                unpublished.configurations.append(kept)
                continue
            }
            guard let (value, type, allowed) = server.database.characteristic(configuredAt: kept.handle),
                kept.characteristic.map({ $0 == type }) ?? (isCurrent || value == server.serviceChanged)
            else { continue }
            let configuration = kept.configuration.intersection(allowed)
            guard !configuration.isEmpty else { continue }
            _ = configurations.set(configuration, at: kept.handle)
            emit(.configured(value, from: [], to: configuration))
        }
    }
}

extension AttributeDatabase {
    /// The characteristic whose Client Characteristic Configuration has this handle, and the bits that the descriptor
    /// may have; nil if there is none.
    func characteristic(
        configuredAt handle: AttributeHandle
    ) -> (value: AttributeHandle, type: BluetoothUUID, allowed: ClientConfiguration)? {
        guard case .clientConfiguration(let allowed, let value)? = lookUp(handle)?.metadata.source,
            let type = lookUp(value)?.metadata.type
        else { return nil }
        return (value, type, allowed)
    }
}
