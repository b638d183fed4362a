import BLESMP
import BluetoothTypes

// Requests of apps about the security of links.
extension BluetoothHost {
    // MARK: Policy

    /// Sets the security policy of the host and of all links. A pairing in progress keeps the policy that it began
    /// with.
    package func setSecurityPolicy(_ policy: SecurityPolicy) {
        pairing.policy = policy
        services.server.minimumKeySize = policy.minimumKeySizeInBytes
        for link in links.values {
            setPolicy(policy, of: link)
        }
        endInput()
    }

    /// The security policy of the host. A pairing removes from it the out-of-band data that it has used.
    package var currentSecurityPolicy: SecurityPolicy { pairing.policy }

    /// Saves a policy that is to be set again later. A pairing also removes the out-of-band data that it has used from
    /// this policy.
    ///
    /// - Returns: the identifier for ``takeSecurityPolicy(_:)``, which has to be called once.
    package func saveSecurityPolicy(_ policy: SecurityPolicy) -> UInt64 {
        let identifier = observers.makeIdentifier()
        pairing.save(policy, identifier)
        return identifier
    }

    /// Removes a saved policy, and returns it.
    package func takeSecurityPolicy(_ identifier: UInt64) -> SecurityPolicy? { pairing.takePolicy(identifier) }

    private func setPolicy(_ policy: SecurityPolicy, of link: Link) {
        inform(link) { security, context in security.setPolicy(policy, &context) }
    }

    /// Sets the handler that is asked about pairings.
    ///
    /// - Returns: the previous handler, and the identifier of the new one for ``restorePairingHandler(_:inPlaceOf:)``.
    @discardableResult
    package func setPairingHandler(_ handler: PairingHandler?) -> (previous: PairingHandler?, identifier: UInt64) {
        let identifier = observers.makeIdentifier()
        return (pairing.setHandler(handler, identifier), identifier)
    }

    /// Sets an earlier handler again, if the current handler is the one with `identifier`.
    package func restorePairingHandler(_ handler: PairingHandler?, inPlaceOf identifier: UInt64) {
        let replaced = pairing.restoreHandler(handler, inPlaceOf: identifier)
        withExtendedLifetime(replaced) {}
    }

    /// Whether a handler is asked about pairings.
    package var hasPairingHandler: Bool { pairing.handler != nil }

    /// Whether this host serves values or channels that need an encrypted link.
    package var servesProtectedValues: Bool {
        services.channels.hasProtectedServices || services.server.hasProtectedAttributes
    }

    /// Allows the peer of a link to use attributes that need authorization (Vol 3, Part C, 10.5), or withdraws that.
    package func setAuthorized(_ isAuthorized: Bool, on identifier: LinkIdentifier) throws(HostError) {
        try link(identifier).session.security.isAuthorized = isAuthorized
    }

    // MARK: Calls

    /// Returns the strength of a link's key; nil if the link is not encrypted or has ended.
    package func strength(of identifier: LinkIdentifier) -> KeyStrength? {
        links[identifier]?.security.strength
    }

    /// Makes a link as secure as required: by the bond's key if that is sufficient, otherwise by pairing.
    ///
    /// - Parameters:
    ///   - required: the strength that the key must have.
    ///   - pairsAgain: whether the devices pair even if they are bonded. The new bond replaces the existing one after
    ///     the pairing. As the central, the call also consents to replace the bond of another device. This is for a
    ///     peer at a private address that no bond resolves. The other device must not be connected, and the peer must
    ///     give its identity.
    ///   - policy: a policy for this link; nil to keep the present one.
    /// - Returns: the strength of the link's key. Returns at once if the link is already secure enough.
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

    /// Begins to make a link as secure as required, if it is not.
    func require(_ requirement: SecurityRequirement, of link: Link) {
        inform(link) { security, context in security.require(requirement, &context) }
    }

    /// Ends a call whose task was cancelled.
    func cancelSecurity(_ call: CallToken, of identifier: LinkIdentifier) {
        guard let link = links[identifier] else { return }
        inform(link) { security, context in security.cancel(.call(call), &context) }
    }

    /// The identity that this host distributes to peers when they pair.
    ///
    /// It contains the identity resolving key only if this host uses private addresses. A peer that has the key might
    /// ignore this host's identity address (Vol 6, Part B, 4.7).
    var localIdentity: LocalIdentity {
        LocalIdentity(
            address: information?.identityAddress ?? bonds.identity.staticAddress,
            resolvingKey: configuration.usesPrivateAddresses ? bonds.identity.resolvingKey : nil
        )
    }
}
