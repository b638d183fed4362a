import BluetoothTypes
import HCI
import SMP

// What links are to be, and how they become so: with the key of a bond, or by pairing.
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
        let wasUnverified = link.protection.awaitsProof
        link.protection.policy = policy
        keysChanged(of: link)
        switch (wasUnverified, link.protection.awaitsProof) {
        case (true, false): identityNeedsNoVerification(on: link)
        case (false, true): identityMayBeUnverified(on: link)
        case (true, true), (false, false): break
        }
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
        links[identifier]?.protection.strength
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
        let waiter = makeIdentifier()
        let outcome = try await wait(for: .security(identifier, waiter: waiter)) { host, call in
            guard let link = host.links[identifier] else {
                return host.end(call, .failure(host.endOfLink(identifier)))
            }
            if let policy { host.setPolicy(policy, of: link) }
            host.require(required, of: link, as: waiter, for: .app, pairsAgain: pairsAgain) { [calls = host.calls] in
                switch $0 {
                case .success(let strength): calls.end(call, .secured(strength))
                case .failure(let error): calls.end(call, .failure(error))
                }
            }
            host.endInput()
        }
        guard case .secured(let strength) = outcome else { throw .closed }
        return strength
    }

    /// Waits until a link is secure enough, having begun what makes it so.
    func require(
        _ required: RequiredSecurity,
        of link: Link,
        as identifier: UInt64? = nil,
        for initiative: Protection.Initiative,
        pairsAgain: Bool = false,
        completion: @escaping (Result<KeyStrength, HostError>) -> Void
    ) {
        // A pairing that goes on already is as good as another.
        let joins = pairsAgain && link.protection.channel.isPairing
        let waiter = SecurityWaiter(
            identifier: identifier ?? makeIdentifier(),
            required: required,
            initiative: initiative,
            pairsAgain: pairsAgain && !joins,
            completion: completion
        )
        waiter.hasPaired = joins
        link.protection.waiters.append(waiter)
        setTimer(of: waiter, on: link.identifier)
        pursueSecurity(of: link)
    }

    /// A peripheral's wish, which the central need not follow, is given up after a while.
    private func setTimer(of waiter: SecurityWaiter, on identifier: LinkIdentifier) {
        waiter.timer = schedule(.security(identifier, call: waiter.identifier), after: .seconds(40))
    }

    /// Ends a call that has waited for long, unless something is still under way for it.
    func securityTimedOut(_ number: UInt64, of link: Link) {
        guard let waiter = link.protection.waiters.first(where: { $0.identifier == number }) else { return }
        if link.protection.isBusy {
            setTimer(of: waiter, on: link.identifier)
        } else {
            finish(number, of: link, .failure(.security(.timedOut)))
            encryptionSettled(on: link)
        }
    }

    func cancelSecurityWaiter(_ waiter: UInt64, of identifier: LinkIdentifier) {
        guard let link = links[identifier] else { return }
        finish(waiter, of: link, .failure(.cancelled))
        // Nobody else wants what was begun for the call.
        if link.protection.waiters.isEmpty, link.protection.initiative != .peer {
            run(link.protection.channel.cancel(.unspecifiedReason), on: link)
        }
        endInput()
    }

    private func finish(_ waiter: UInt64, of link: Link, _ result: Result<KeyStrength, HostError>) {
        guard let index = link.protection.waiters.firstIndex(where: { $0.identifier == waiter }) else { return }
        let waiter = link.protection.waiters.remove(at: index)
        timers.cancel(waiter.timer)
        waiter.completion(result)
    }

    /// Tells all that wait that it comes to nothing.
    func failSecurityWaiters(of link: Link, _ error: HostError) {
        let waiters = link.protection.waiters
        link.protection.waiters = []
        for waiter in waiters {
            timers.cancel(waiter.timer)
            waiter.completion(.failure(error))
        }
    }

    // MARK: What is done

    /// Lets those go on for whom the link is secure enough, and begins what the others need, unless something is under way.
    func pursueSecurity(of link: Link) {
        guard links[link.identifier] != nil, !link.protection.isBusy else { return }
        if let strength = link.protection.strength {
            let served = link.protection.waiters.filter { $0.isServed(by: strength) }
            for waiter in served { finish(waiter.identifier, of: link, .success(strength)) }
        }
        // Who was told may have begun something.
        guard let waiter = link.protection.waiters.first, !link.protection.isBusy else { return }
        if waiter.hasPaired, let strength = link.protection.strength {
            finish(waiter.identifier, of: link, .failure(.security(.insufficient(strength))))
            return pursueSecurity(of: link)
        }
        if let key = link.protection.usableBondKey, !waiter.pairsAgain, link.protection.loss == nil,
            waiter.required.isMet(by: key.strength)
        {
            switch link.role {
            case .central: startEncryption(of: link, with: key)
            case .peripheral:
                link.protection.replacesBond = false
                askCentral(of: link, for: waiter)
            }
        } else if let loss = link.protection.loss, !waiter.pairsAgain {
            refuse(waiter, loss, on: link)
        } else if lacksKey(for: waiter, on: link) {
            refuse(waiter, .keyMissing, on: link)
        } else {
            pair(link, for: waiter)
        }
    }

    /// Whether, as the central, the bond has no key that could verify the peer, and the policy fails for a key that is missing.
    /// The app can still pair. A peripheral sends a Security Request instead, because the central may begin a pairing.
    private func lacksKey(for waiter: SecurityWaiter, on link: Link) -> Bool {
        link.role == .central && link.protection.awaitsProof && link.protection.bondKey == nil
            && link.protection.policy.keyLoss == .fail && waiter.initiative == .demand && !waiter.pairsAgain
    }

    private func pair(_ link: Link, for waiter: SecurityWaiter) {
        let isBondEnough = link.protection.bondKey.map { waiter.required.isMet(by: $0.strength) } ?? false
        let replacesBond = waiter.initiative == .app && (waiter.replacesBond || !isBondEnough)
        let obstacle = obstacle(to: waiter, on: link) ?? (replacesBond ? nil : obstacleToReplacement(on: link))
        if let obstacle { return refuse(waiter, obstacle, on: link) }
        link.protection.replacesBond = replacesBond
        for waiter in link.protection.waiters {
            waiter.hasPaired = true
            waiter.pairsAgain = false
        }
        askCentral(of: link, for: waiter)
    }

    /// Nothing can be done for those who wait; a peripheral that has asked is told.
    private func refuse(_ waiter: SecurityWaiter, _ error: SecurityError, on link: Link) {
        if waiter.initiative == .peer {
            let isTooSoon = if case .repeatedAttempts = error { true } else { false }
            run(link.protection.channel.cancel(isTooSoon ? .repeatedAttempts : .pairingNotSupported), on: link)
        }
        failSecurityWaiters(of: link, .security(error))
    }

    /// Sends a Pairing Request as the central, a Security Request as the peripheral.
    private func askCentral(of link: Link, for waiter: SecurityWaiter) {
        prepareChannel(of: link, for: waiter.required)
        link.protection.initiative = waiter.initiative
        link.protection.isCentralAsked = link.role == .peripheral
        let wasPairing = link.protection.channel.isPairing
        let steps = link.protection.channel.start(at: loop.now, random: &random)
        proceed(link, steps, wasPairing: wasPairing)
    }

    /// Why no pairing may begin now, if so.
    private func obstacle(to waiter: SecurityWaiter, on link: Link) -> SecurityError? {
        let policy = link.protection.policy
        if waiter.required.isAuthenticated || policy.requiresAuthentication, !policy.canAuthenticate {
            return .refused("it needs authentication, and nothing can be shown or typed here")
        }
        if let wait = pairingAttempts.wait(for: link.identity, at: loop.now) { return .repeatedAttempts(wait) }
        let isChosen = link.isChosenByApp(waiter.initiative) || waiter.initiative == .demand && link.role == .central
        if !isChosen, let wait = pairingAttempts.waitOfAll(at: loop.now) { return .repeatedAttempts(wait) }
        if let obstacle = obstacleOfAcceptList(to: link.identity, policy) { return obstacle }
        switch waiter.initiative {
        case .app: break
        case .demand: if !policy.securesOnDemand { return .refused("the policy does not pair on demand") }
        case .peer:
            if !policy.pairsOnRequest { return .refused("the policy does not pair when a peripheral asks") }
            if let obstacle = obstacleToPeersPairing(on: link) ?? obstacleToEveryModel(policy) { return obstacle }
        }
        if policy.bonds, bonds.isFull, bonds[link.identity] == nil { return .tooManyBonds(bonds.limit) }
        return nil
    }

    /// Why each pairing that a peer asks for would be refused, whatever its association model; nil where one may succeed.
    private func obstacleToEveryModel(_ policy: SecurityPolicy) -> SecurityError? {
        guard policy.ownOutOfBandData == nil, policy.peerOutOfBandData == nil else { return nil }
        if pairingHandler == nil, policy.justWorks != .always {
            return .refused("a peer asks for it, and there is no pairing delegate to consent")
        }
        if policy.justWorks == .never, !policy.canAuthenticate {
            return .refused("the policy refuses just works, and nothing can be shown or typed here")
        }
        return nil
    }

    /// Sets how the link's next pairing is to be.
    func prepareChannel(of link: Link, for required: RequiredSecurity = .encryption) {
        guard !link.protection.channel.isPairing else { return }
        var parameters = link.protection.policy.pairingParameters
        if required.isAuthenticated { parameters.requiresAuthentication = true }
        if required.isSecureConnections { parameters.requiresSecureConnections = true }
        parameters.minimumKeySize = max(parameters.minimumKeySize, min(required.keySize, 16))
        link.protection.channel.parameters = parameters
        link.protection.channel.identity = localIdentity
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

extension SecurityWaiter {
    func isServed(by strength: KeyStrength) -> Bool {
        !pairsAgain && required.isMet(by: strength)
    }
}
