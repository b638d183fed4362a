import OrderedCollections

/// The observers of a host's events: closures of apps, called in the order in which they were added.
///
/// A closure may hold the last reference to an object whose end calls the host. So a removed closure is returned, and the
/// caller releases it when this value is no longer being accessed.
struct Observers {
    typealias Closures<Event> = OrderedDictionary<UInt64, @Sendable (Event) -> Void>

    private(set) var host: Closures<HostEvent> = [:]
    private(set) var server: Closures<ServerRoleEvent> = [:]
    private(set) var security: Closures<SecurityEvent> = [:]

    mutating func add(_ identifier: UInt64, _ observer: @escaping @Sendable (HostEvent) -> Void) {
        host[identifier] = observer
    }

    mutating func add(_ identifier: UInt64, _ observer: @escaping @Sendable (ServerRoleEvent) -> Void) {
        server[identifier] = observer
    }

    mutating func add(_ identifier: UInt64, _ observer: @escaping @Sendable (SecurityEvent) -> Void) {
        security[identifier] = observer
    }

    /// Removes the observer with an identifier.
    ///
    /// - Returns: the closure, which the caller releases.
    mutating func remove(_ identifier: UInt64) -> Any? {
        host.removeValue(forKey: identifier) ?? server.removeValue(forKey: identifier)
            ?? security.removeValue(forKey: identifier)
    }

    /// Removes all observers.
    ///
    /// - Returns: the closures, which the caller releases.
    mutating func removeAll() -> Observers {
        let removed = self
        self = Observers()
        return removed
    }
}
