import BLEHCITransport
import OrderedCollections

/// What a host reports to: the closures of apps, and callers that wait for the outcome of commands and attempts.
///
/// The engines name them by identifiers and tokens. Closures for the same events are called in the order in which they
/// were added.
///
/// A closure may hold the last reference to an object whose end calls the host. So a removed closure is returned, and
/// the caller releases it when this value is no longer being accessed.
struct Observers {
    typealias Closures<Event> = OrderedDictionary<UInt64, @Sendable (Event) -> Void>

    private var lastIdentifier: UInt64 = 0
    private(set) var host: Closures<HostEvent> = [:]
    private(set) var server: Closures<ServerRoleEvent> = [:]
    private(set) var security: Closures<SecurityEvent> = [:]
    /// The closures for failed attempts to open a transport to a lost controller.
    private(set) var reopenings: Closures<TransportError> = [:]
    /// The closures of scans, in the order of the scans in ``ScanTable``.
    var scans: OrderedDictionary<ScanIdentifier, @Sendable (ScanEvent) -> Void> = [:]
    /// The closures of synchronizations with periodic advertising trains.
    var synchronizations: [SynchronizationIdentifier: @Sendable (SynchronizationEvent) -> Void] = [:]
    /// The closures for the subevents of advertisements' trains.
    var subevents: [AdvertisementIdentifier: OrderedDictionary<UInt64, @Sendable (SubeventEvent) -> Void>] = [:]
    /// The closures of receptions of transferred synchronizations.
    var receptions: [SyncTransferReceptionIdentifier: SyncTransferObserver] = [:]
    /// The closures of sessions of Channel Sounding, by the numbers of the sessions.
    var soundings: [UInt64: @Sendable (ChannelSoundingSessionEvent) -> Void] = [:]
    /// The closures of observers of links.
    var links: [LinkObservation: LinkObserver] = [:]
    /// The closures of isochronous streams.
    var streams: [IsochronousStreamIdentifier: StreamObserver] = [:]
    /// The synchronizations that only broadcast groups need.
    var broadcastSynchronizations: Set<SynchronizationIdentifier> = []
    /// The callers that open streams or accept requests, by the numbers of the openings and requests.
    var streamOpenings: [UInt64: StreamOpening] = [:]
    /// The closures for requests for streams, in the order in which they were added.
    var streamRequests: OrderedDictionary<UInt64, @Sendable (IsochronousStreamRequest) -> Void> = [:]
    /// The callers of attempts to connect, by the identifiers of the attempts.
    var connections: [UInt64: ConnectionCaller] = [:]
    /// The closures of channels of links.
    var channels = SlotTable<ChannelObserver>()
    /// The callers of commands.
    var commands = SlotTable<CommandCaller>()

    /// The closure for events of the server role, if there is exactly one.
    var onlyServerObserver: (@Sendable (ServerRoleEvent) -> Void)? {
        server.count == 1 ? server.values[0] : nil
    }

    /// Returns an identifier that nothing else in the host has.
    mutating func makeIdentifier() -> UInt64 {
        lastIdentifier += 1
        return lastIdentifier
    }

    mutating func add(_ identifier: UInt64, _ observer: @escaping @Sendable (HostEvent) -> Void) {
        host[identifier] = observer
    }

    mutating func add(_ identifier: UInt64, _ observer: @escaping @Sendable (ServerRoleEvent) -> Void) {
        server[identifier] = observer
    }

    mutating func add(_ identifier: UInt64, _ observer: @escaping @Sendable (SecurityEvent) -> Void) {
        security[identifier] = observer
    }

    mutating func add(_ identifier: UInt64, _ observer: @escaping @Sendable (TransportError) -> Void) {
        reopenings[identifier] = observer
    }

    /// Removes the observer with an identifier.
    ///
    /// - Returns: the closure, which the caller releases.
    mutating func remove(_ identifier: UInt64) -> Any? {
        if let removed = reopenings.removeValue(forKey: identifier) { return removed }
        return host.removeValue(forKey: identifier) ?? server.removeValue(forKey: identifier)
            ?? security.removeValue(forKey: identifier)
    }

    /// Removes all closures of apps.
    ///
    /// - Returns: the value before, with the closures, which the caller releases.
    mutating func removeAll() -> Observers {
        let removed = self
        self = Observers()
        lastIdentifier = removed.lastIdentifier
        commands = removed.commands
        return removed
    }
}
