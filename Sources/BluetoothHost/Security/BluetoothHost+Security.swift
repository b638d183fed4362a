import BluetoothTypes
import SMP

// How apps make links secure.
extension BluetoothHost {
    // MARK: Policy

    /// Changes what is asked of peers from now on. A pairing that is going on keeps to what it began with.
    package func setSecurityPolicy(_ policy: SecurityPolicy) {
        securityPolicy = policy
        server.minimumKeySize = policy.minimumKeySize
        for link in links.values {
            setPolicy(policy, of: link)
        }
        endInput()
    }

    private func setPolicy(_ policy: SecurityPolicy, of link: Link) {
        inform(link) { security, context in security.setPolicy(policy, &context) }
    }

    /// Sets the handler that is asked about pairings.
    ///
    /// - Returns: the handler before, and what this one is called, for ``restorePairingHandler(_:inPlaceOf:)``.
    @discardableResult
    package func setPairingHandler(_ handler: PairingHandler?) -> (previous: PairingHandler?, identifier: UInt64) {
        let previous = pairingHandler
        pairingHandler = handler
        pairingHandlerIdentifier = makeIdentifier()
        return (previous, pairingHandlerIdentifier)
    }

    /// Sets an earlier handler again, unless another one was set since.
    package func restorePairingHandler(_ handler: PairingHandler?, inPlaceOf identifier: UInt64) {
        if pairingHandlerIdentifier == identifier { pairingHandler = handler }
    }

    /// Whether a handler is asked about pairings.
    package var hasPairingHandler: Bool { pairingHandler != nil }

    /// Whether this host serves values or channels that need an encrypted link.
    package var servesProtectedValues: Bool {
        channelServices.hasProtectedServices || server.database.hasProtectedAttributes
    }

    /// Lets the peer of a link use what needs authorization (Vol 3, Part C, 10.5), or not any more.
    package func setAuthorized(_ isAuthorized: Bool, on identifier: LinkIdentifier) throws(HostError) {
        try link(identifier).session.security.isAuthorized = isAuthorized
    }

    // MARK: Calls

    /// What a link's key is worth; nil where the link is not encrypted, or gone.
    package func strength(of identifier: LinkIdentifier) -> KeyStrength? {
        links[identifier]?.security.strength
    }

    /// Makes a link as secure as is required: with the bond's key where that is enough, else by pairing.
    ///
    /// - Parameters:
    ///   - pairsAgain: whether the devices are to pair though they are bonded; the bond is replaced once they have.
    ///   - policy: for this link, in place of the host's.
    /// - Returns: what the link's key is worth. The call ends at once where the link is secure enough.
    @discardableResult
    package func secure(
        _ identifier: LinkIdentifier,
        _ required: RequiredSecurity = .encryption,
        pairsAgain: Bool = false,
        policy: SecurityPolicy? = nil
    ) async throws(HostError) -> KeyStrength {
        let outcome = try await wait(for: .security(identifier)) { host, call in
            guard let link = host.links[identifier] else {
                return host.end(call, .failure(host.endOfLink(identifier)))
            }
            if let policy { host.setPolicy(policy, of: link) }
            host.require(SecurityRequirement(.call(call), required, for: .app, pairsAgain: pairsAgain), of: link)
            host.endInput()
        }
        guard case .secured(let strength) = outcome else { throw .closed }
        return strength
    }

    /// Begins what makes a link secure enough, unless it is.
    func require(_ requirement: SecurityRequirement, of link: Link) {
        inform(link) { security, context in security.require(requirement, &context) }
    }

    /// Ends a call that does not wait any longer.
    func cancelSecurity(_ call: CallToken, of identifier: LinkIdentifier) {
        guard let link = links[identifier] else { return }
        inform(link) { security, context in security.cancel(.call(call), &context) }
    }

    /// What this host tells its peers of itself when they pair.
    ///
    /// It gives the key to its private addresses only where it uses such: peers that have one might not listen to its
    /// identity address (Vol 6, Part B, 4.7).
    var localIdentity: LocalIdentity {
        LocalIdentity(
            address: information?.identityAddress ?? bonds.identity.staticAddress,
            resolvingKey: configuration.usesPrivateAddresses ? bonds.identity.resolvingKey : nil
        )
    }
}
