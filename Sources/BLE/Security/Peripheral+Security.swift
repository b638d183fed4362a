import BluetoothHost
import Synchronization

extension Peripheral {
    /// The strength of the key of a client's link; nil if the link is not encrypted or has ended.
    public func security(of client: ClientID) async -> KeyStrength? {
        await host.strength(of: client)
    }

    /// Requests a client to secure its link: to encrypt it with the key of the bond, or to pair.
    ///
    /// - Parameters:
    ///   - client: a connected client.
    ///   - required: the strength that the key must have.
    /// - Returns: the strength of the key.
    /// - Throws: ``BLEError/security(_:)``, also if the client does nothing.
    @discardableResult
    public func requestSecurity(
        of client: ClientID,
        _ required: RequiredSecurity = .encryption
    ) async throws(BLEError) -> KeyStrength {
        try await translating("securing the link") { () throws(HostError) in
            try await host.secure(client, required)
        }
    }

    /// Allows a client to use attributes that need authorization, while it is connected, or withdraws that.
    ///
    /// - Throws: ``BLEError/disconnected(_:)`` if the client's link has ended.
    public func setAuthorized(_ isAuthorized: Bool, _ client: ClientID) async throws(BLEError) {
        try await translating { () throws(HostError) in try await host.setAuthorized(isAuthorized, on: client) }
    }
}

extension Peripheral {
    /// Sets the function that decides whether a client may use attributes that need authorization. Without one, such
    /// accesses are refused.
    ///
    /// If the client's link ends while the function decides, its task is cancelled, and its result is ignored. If the
    /// function is replaced by nil while it decides, the access is refused at once with Insufficient Authorization
    /// (Vol 3, Part F, 3.4.1.1), and the result is ignored. Another function decides on later accesses only.
    ///
    /// - Parameter decide: is called for each access that needs authorization, until it has returned true once for the
    ///   client on its connection. A refused client can cause any number of calls. So a function that asks a person
    ///   remembers refusals itself. With enhanced bearers, several calls for a client can be in progress at the same
    ///   time. While 64 calls have not returned, further accesses are refused. A call counts until it returns, also if
    ///   it ignores its cancellation.
    public func setAuthorizer(_ decide: (@Sendable (_ client: ClientID, AuthorizationRequest) async -> Bool)?) async {
        guard let decide else { return await host.setAuthorizer(nil) }
        // The host keeps the closure, so the closure must not keep the host.
        let budget = AccessBudget(limit: 64)
        let authorizer: Authorizer = { [weak host] client, request in
            guard let host else { return }
            // Each bearer of a client has one open question, but the calls for its earlier connections may not have
            // returned.
            guard budget.take() else {
                host.assumeIsolated { $0.authorize(request.identifier, on: client, isAuthorized: false) }
                return
            }
            let endObserver = LinkEndObserver()
            let task = Task(executorPreference: host.loop.appTaskExecutor) { [weak host] in
                let isAuthorized = await decide(client, request)
                budget.release()
                await host?.authorize(request, of: client, isAuthorized: isAuthorized, endObserver)
            }
            host.assumeIsolated { endObserver.set($0.observeEnd(of: client) { _ in task.cancel() }) }
        }
        await host.setAuthorizer(authorizer)
    }
}

/// The observer that cancels the call which decides about a client, when the client's link ends. Its identifier is set
/// and used on the host's loop.
private final class LinkEndObserver: Sendable {
    private let number = Atomic<UInt64>(0)

    var identifier: UInt64 { number.load(ordering: .relaxed) }

    func set(_ identifier: UInt64) { number.store(identifier, ordering: .relaxed) }
}

extension BluetoothHost {
    /// Applies the app's decision about a client, and stops observing the end of the client's link.
    fileprivate func authorize(
        _ request: AuthorizationRequest,
        of client: ClientID,
        isAuthorized: Bool,
        _ endObserver: LinkEndObserver
    ) {
        // The observer was added in the turn that started the call, so its identifier is set.
        removeEndObserver(endObserver.identifier, of: client)
        authorize(request.identifier, on: client, isAuthorized: isAuthorized)
    }
}

extension PeripheralEvent {
    /// Returns the client and the public event for a security event of a client's link.
    static func from(_ event: SecurityEvent) -> (ClientID, PeripheralEvent)? {
        switch event {
        case .encryptionChanged(let client, let strength): (client, .encryptionChanged(client, strength))
        case .pairingStarted(let client, _): (client, .pairingStarted(client))
        case .paired(let client, let result): (client, .paired(client, result))
        case .pairingFailed(let client, _, let error): (client, .pairingFailed(client, error))
        case .keyPressed, .authenticatedPayloadTimedOut, .keyMissing, .bondAdded, .bondRemoved, .bondsNotSaved,
            .pairingWindowExpired, .eventsDropped:
            nil
        }
    }
}
