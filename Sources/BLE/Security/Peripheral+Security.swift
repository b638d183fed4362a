import BluetoothHost

extension Peripheral {
    /// What a client's link is worth; nil where it is not encrypted, or gone.
    public func security(of client: ClientID) async -> KeyStrength? {
        await host.strength(of: client)
    }

    /// Asks a client to make its link secure: to encrypt it with the key of the bond, or to pair.
    ///
    /// - Parameter required: what the key must be worth.
    /// - Returns: what it is worth.
    /// - Throws: ``BLEError/security(_:)``, also where the client does nothing about it.
    @discardableResult
    public func requestSecurity(
        of client: ClientID,
        _ required: RequiredSecurity = .encryption
    ) async throws(BLEError) -> KeyStrength {
        try await translating("securing the link") { () throws(HostError) in
            try await host.secure(client, required)
        }
    }

    /// Lets a client use what needs authorization, as long as it is connected, or not any more.
    public func setAuthorized(_ isAuthorized: Bool, _ client: ClientID) async throws(BLEError) {
        try await translating { () throws(HostError) in try await host.setAuthorized(isAuthorized, on: client) }
    }
}

extension Peripheral {
    /// Says who decides whether a client may have what needs authorization; what needs it is refused where nobody does.
    ///
    /// - Parameter decide: is asked once for each client and connection, when it first asks for such a thing. While 64 calls
    ///   of it have not returned, further clients are refused.
    public func setAuthorizer(_ decide: (@Sendable (_ client: ClientID, AuthorizationRequest) async -> Bool)?) async {
        guard let decide else { return await host.setAuthorizer(nil) }
        // The host keeps the closure, so the closure must not keep the host.
        let budget = AccessBudget(limit: 64)
        let authorizer: Authorizer = { [weak host] client, request in
            // A client has one open question, but one that connects again could have more.
            guard budget.take() else {
                host?.assumeIsolated { $0.authorize(request.identifier, on: client, isAuthorized: false) }
                return
            }
            Task(executorPreference: host?.loop.appTaskExecutor) {
                let isAuthorized = await decide(client, request)
                budget.giveBack()
                await host?.authorize(request.identifier, on: client, isAuthorized: isAuthorized)
            }
        }
        await host.setAuthorizer(authorizer)
    }
}

extension PeripheralEvent {
    /// The event of the face that an event of a client's link is.
    static func from(_ event: SecurityEvent) -> (ClientID, PeripheralEvent)? {
        switch event {
        case .encryptionChanged(let client, let strength): (client, .encryptionChanged(client, strength))
        case .pairingStarted(let client, _): (client, .pairingStarted(client))
        case .paired(let client, let result): (client, .paired(client, result))
        case .pairingFailed(let client, _, let error): (client, .pairingFailed(client, error))
        case .keyPressed, .authenticatedPayloadTimedOut, .keyMissing, .bondAdded, .bondRemoved, .bondsNotKept,
            .eventsDropped:
            nil
        }
    }
}
