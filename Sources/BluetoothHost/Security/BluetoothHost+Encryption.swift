import BluetoothTypes
import HCI
import SMP

// What the controllers do with keys: which are given to them, and what comes of it.
extension BluetoothHost {
    /// The peer of a link has other keys than before, or none.
    func keysChanged(of link: Link) {
        let bond = record(for: link)?.bond
        link.protection.hasBond = bond?.strength != nil
        link.protection.bondKey = bond.flatMap { key(in: $0, for: link) }
        if link.protection.bondKey == nil { link.protection.loss = nil }
        updateSecurity(of: link)
        if !link.att.lanes.isEmpty { pumpLanes(of: link) }
    }

    private func key(in bond: Bond, for link: Link) -> LongTermKey? {
        link.role == .central ? bond.centralKey : bond.peripheralKey
    }

    /// The strength of a link's key as attributes and channels see it.
    ///
    /// It is nil if the link is not encrypted or the policy does not accept the key. It is also nil until the peer has shown
    /// that it is on the pairing accept list.
    func servedStrength(of link: Link) -> KeyStrength? {
        let protection = link.protection
        guard let strength = protection.strength, protection.policy.accepts(strength),
            isAdmittedByAcceptList(link)
        else { return nil }
        return strength
    }

    /// What attributes and channels see of a link's security: only what a key has proven.
    private func updateSecurity(of link: Link) {
        if link.protection.strength == nil { link.protection.isBondProven = false }
        let strength = servedStrength(of: link)
        link.client.isHeld = link.protection.awaitsProof
        link.session.security.isIdentityUnverified = link.protection.isRefusedByServer
        link.session.security.isEncrypted = strength != nil
        link.session.security.isAuthenticated = strength?.isAuthenticated ?? false
        link.session.security.isSecureConnections = strength?.isSecureConnections ?? false
        link.session.security.keySize = strength?.keySize ?? 0
        link.session.security.hasKey =
            link.protection.usableBondKey != nil
            || link.protection.passingBond.flatMap { key(in: $0, for: link) } != nil
        superviseVerification(of: link)
        endUnverifiedChannels(of: link)
    }

    /// Ends the channels of a link whose peer's identity is not verified any more, for example because encryption has ended.
    private func endUnverifiedChannels(of link: Link) {
        let protection = link.protection
        guard protection.awaitsProof, !protection.policy.servesUnverifiedClients, link.channels.count > 0
        else { return }
        for (channel, use) in link.channelUses.sorted(by: { $0.value.number < $1.value.number })
        where !link.channels.isHeld(channel) {
            // The peer may answer a request before its identity is verified.
            if case .opening = use.phase { endOpening(of: channel, on: link, .channel(.ended(.unverifiedPeer))) }
        }
        link.channels.peerIsUnverified()
        pumpChannels(of: link)
    }

    // MARK: Beginning

    /// As the central: has the controller encrypt the link, or change its key.
    func startEncryption(of link: Link, with key: LongTermKey) {
        encryptionBegins(of: link, with: key)
        let identifier = link.identifier
        send(
            LEEnableEncryption(
                connectionHandle: link.handle,
                randomNumber: key.randomNumber,
                encryptedDiversifier: key.encryptedDiversifier,
                longTermKey: key.value
            )
        ) { [weak self] result in
            guard case .failure(.status(let status, _)) = result else { return }
            self?.assumeIsolated { host in
                guard let link = host.links[identifier],
                    case .starting(key, let strength) = link.protection.encryption
                else { return }
                // Nothing was begun: the link is as it was.
                link.protection.encryption = strength.map { .on($0) } ?? .off
                host.encryptionFailed(with: status, on: link)
            }
        }
    }

    /// The controller has been given a key. It is not waited for longer than the Link Layer may take for a procedure
    /// (Vol 6, Part B, 5.2): its event may be lost.
    private func encryptionBegins(of link: Link, with key: LongTermKey) {
        link.protection.encryption = .starting(key, over: link.protection.strength)
        link.protection.encryptionDeadline = loop.now + .seconds(40)
        armTimer(of: link)
    }

    /// As the peripheral: the central begins to encrypt with the key of these names.
    func longTermKeyRequested(_ event: LELongTermKeyRequest) {
        guard let link = links[event.connectionHandle], link.role == .peripheral,
            let key = key(for: event, on: link)
        else {
            metrics.unknownKeyRequests.increment()
            logger.debug("no key for link \(event.connectionHandle) with EDIV \(event.encryptedDiversifier)")
            return sendAndForget(LELongTermKeyRequestNegativeReply(connectionHandle: event.connectionHandle))
        }
        encryptionBegins(of: link, with: key)
        sendAndForget(LELongTermKeyRequestReply(connectionHandle: event.connectionHandle, longTermKey: key.value))
    }

    /// While devices pair, that pairing's key alone is given, else one that both have kept.
    private func key(for event: LELongTermKeyRequest, on link: Link) -> LongTermKey? {
        let candidates: [LongTermKey?] =
            if link.protection.channel.isPairing {
                [link.protection.expectedKey]
            } else {
                [link.protection.passingBond.flatMap { key(in: $0, for: link) }, link.protection.usableBondKey]
            }
        return candidates.lazy.compactMap { $0 }.first {
            $0.encryptedDiversifier == event.encryptedDiversifier && $0.randomNumber == event.randomNumber
        }
    }

    // MARK: What comes of it

    /// Encryption of a link went on or off, or its key was changed, or the attempt has failed.
    func encryptionChanged(_ handle: ConnectionHandle, _ status: HCI.ErrorCode, isOn: Bool) {
        guard let link = links[handle] else { return }
        switch (link.protection.encryption, status == .success && isOn) {
        case (.starting(let key, _), true):
            link.protection.encryptionDeadline = nil
            link.protection.encryption = .on(key.strength)
            encryptionStarted(with: key, on: link)
        case (.starting, false):
            link.protection.encryption = .off
            encryptionFailed(with: status, on: link)
        case (.on, false):
            guard status == .success else { return }
            link.protection.encryption = .off
            encryptionEnded(on: link)
        case (.on, true): break
        case (.off, true): logger.warning("the controller encrypts the link to \(link.peer) with a key of its own")
        case (.off, false): break
        }
    }

    private func encryptionStarted(with key: LongTermKey, on link: Link) {
        link.protection.isCentralAsked = false
        link.protection.loss = nil
        link.protection.isBondProven = false
        updateSecurity(of: link)
        emit(.encryptionChanged(link.identifier, key.strength))
        watchAuthenticatedPayload(of: link)
        if key == link.protection.bondKey { bondWasProven(on: link) }
        tellChannel(of: link, key.strength)
        pursueSecurity(of: link)
        encryptionSettled(on: link)
    }

    private func encryptionEnded(on link: Link) {
        link.protection.isBondProven = false
        updateSecurity(of: link)
        emit(.encryptionChanged(link.identifier, nil))
        link.protection.isCentralAsked = false
        tellChannel(of: link, nil)
        identityMayBeUnverified(on: link)
        pursueSecurity(of: link)
    }

    private func tellChannel(of link: Link, _ strength: KeyStrength?) {
        let wasPairing = link.protection.channel.isPairing
        let steps = link.protection.channel.encryptionChanged(to: strength, at: loop.now, random: &random)
        proceed(link, steps, wasPairing: wasPairing)
    }

    private func encryptionFailed(with status: HCI.ErrorCode, on link: Link) {
        // A peer without the key says the former (Vol 6, Part B, 5.1.3.1); some controllers report the latter.
        let isKeyMissing = status == .pinOrKeyMissing || status == .authenticationFailure
        encryptionFailed(isKeyMissing ? .keyMissing : .encryptionFailed(status), on: link)
    }

    /// The controller has not reported how an encryption ended: the link counts as not encrypted.
    func encryptionTimedOut(on link: Link) {
        link.protection.encryptionDeadline = nil
        guard link.protection.isStarting else { return }
        logger.warning("the controller has not reported for 40 s whether the link to \(link.peer) is encrypted")
        link.protection.encryption = .off
        encryptionFailed(.timedOut, on: link)
    }

    private func encryptionFailed(_ error: SecurityError, on link: Link) {
        link.protection.encryptionDeadline = nil
        let wasEncrypted = link.session.security.isEncrypted
        updateSecurity(of: link)
        if wasEncrypted, link.protection.strength == nil { emit(.encryptionChanged(link.identifier, nil)) }
        // The pairing's own key has failed, even where the link is encrypted with an older one.
        guard !link.protection.channel.isPairing else { return tellChannel(of: link, nil) }
        // The central has done what it was asked to, in vain.
        link.protection.isCentralAsked = false
        tellChannel(of: link, nil)
        if error == .keyMissing {
            keyIsMissing(on: link)
        } else {
            link.protection.loss = error
        }
        if error == .keyMissing, link.protection.policy.keyLoss == .askToPairAgain,
            let waiter = link.protection.waiters.first
        {
            waiter.pairsAgain = true
            pursueSecurity(of: link)
        } else {
            failSecurityWaiters(of: link, .security(error))
            encryptionSettled(on: link)
        }
    }

    /// The peer of a bond does not have its key: the bond stays, for this may be somebody else.
    private func keyIsMissing(on link: Link) {
        link.protection.loss = .keyMissing
        logger.warning("\(link.identity) has lost the key of its bond, or is another device")
        emit(.keyMissing(link.identifier, identity: link.identity))
    }

    /// The link is encrypted with the key of its peer's bond: the peer is who it was.
    func bondWasProven(on link: Link) {
        link.protection.isBondProven = true
        perform(bonds.update(link.identity, .used))
        if let record = record(for: link) { linkBecameTrusted(link, record) }
        linkMayFulfilAttempts(link)
    }

    /// Ends the pairing, encryption and questions of a link that has ended.
    ///
    /// - Returns: why calls fail that waited for the link to be secure, or to be sent.
    func endSecurity(of link: Link, _ reason: DisconnectionReason) -> HostError {
        if link.att.isTrusted { perform(bonds.flush()) }
        let error: HostError
        let wasStarting = link.protection.isStarting && !link.protection.channel.isPairing
        switch reason {
        case .controller(.pinOrKeyMissing) where wasStarting:
            keyIsMissing(on: link)
            error = .security(.keyMissing)
        case .controller(.connectionTerminatedDueToMICFailure) where wasStarting:
            // The first encrypted packet could not be decrypted (Vol 6, Part B, 5.1.3.1). That does not show that the peer
            // lost its bond: the keys may differ, or one of the controllers may have changed the order of its packets.
            logger.warning("encryption with \(link.identity) failed: a packet could not be decrypted (MIC failure)")
            error = .security(.encryptionFailed(.connectionTerminatedDueToMICFailure))
        default:
            error = .disconnected(reason)
        }
        failSecurityWaiters(of: link, error)
        run(link.protection.channel.linkEnded(), on: link)
        takeBackQuestion(on: link)
        link.protection.encryptionDeadline = nil
        link.protection.verification = nil
        return error
    }
}
