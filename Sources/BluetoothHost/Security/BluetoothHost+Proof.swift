import ATT
import BluetoothTypes
import ByteCoding
import GATT
import L2CAP
import SMP

// What is done with a bonded peer only once it has proven by encryption that it is the one (BLESA), and how a client goes on
// that is answered that its link is not secure enough.
extension BluetoothHost {
    /// A link has come to be: one to a bonded peer is encrypted at once, where the policy says so.
    func secureBondedLink(_ link: Link) {
        let policy = link.protection.policy
        guard link.protection.awaitsProof, link.role == .central || policy.requestsEncryption else { return }
        verifyIdentity(of: link)
    }

    /// Encrypts a link with the key of its peer's bond, or asks the central to.
    func verifyIdentity(of link: Link) {
        let identifier = link.identifier
        require(.encryption, of: link, for: .demand) { [weak self] result in
            guard case .failure(let error) = result else { return }
            self?.assumeIsolated { $0.verificationFailed(error, on: identifier) }
        }
    }

    /// Ends the procedures and channels that wait for a bonded peer to verify its identity, which it has not.
    private func verificationFailed(_ error: HostError, on identifier: LinkIdentifier) {
        logger.debug("a bonded link is not encrypted: \(error)")
        guard let link = links[identifier], link.protection.awaitsProof else { return }
        link.protection.verificationFailure = error
        link.att.refuseProcedures(error)
        performClientEffects(of: link)
        link.att.elevationFailureWasTaken()
        pumpClient(of: link)
        giveUpChannels(of: link, error)
    }

    /// Has the peer of a link verify its identity, if it has to, after encryption has ended or the policy has changed.
    /// Procedures and channels under way wait for that.
    func identityMayBeUnverified(on link: Link) {
        guard links[link.identifier] != nil, link.protection.awaitsProof else { return }
        if !link.att.lanes.isEmpty { pumpLanes(of: link) }
        let isNeeded = !link.client.isIdle || link.channelUses.values.contains(where: \.isOpening)
        guard isNeeded || link.role == .central || link.protection.policy.requestsEncryption else { return }
        verifyIdentity(of: link)
    }

    /// Resumes the procedures and channels of a link whose policy no longer requires that the peer verifies its identity.
    func identityNeedsNoVerification(on link: Link) {
        pumpClient(of: link)
        pumpLanes(of: link)
        pumpChannels(of: link)
        linkMayFulfilAttempts(link)
    }

    /// Does something at once, or when the peer has proven who it is.
    func whenProven(_ link: Link, _ action: @escaping (Result<Void, HostError>) -> Void) {
        guard link.protection.awaitsProof else { return action(.success(())) }
        require(.encryption, of: link, for: .demand) { result in action(result.map { _ in () }) }
    }

    /// Returns the link for a new channel. If the peer's identity is not verified, the verification begins and the channel waits
    /// for it.
    ///
    /// - Throws: the reason why the peer's identity cannot be verified, if that is known already.
    func provableLink(_ identifier: LinkIdentifier) throws(HostError) -> Link {
        let link = try link(identifier)
        if link.protection.awaitsProof {
            if let loss = link.protection.loss { throw .security(loss) }
            if link.protection.waiters.isEmpty {
                verifyIdentity(of: link)
                if link.protection.awaitsProof, link.protection.waiters.isEmpty {
                    throw link.protection.verificationFailure ?? .security(.timedOut)
                }
            }
        }
        return link
    }

    /// Whether a value that a server sends by itself may be handed up: not before a bonded peer has proven who it is.
    func acceptsValues(on link: Link) -> Bool {
        guard link.protection.awaitsProof else { return true }
        metrics.unprovenValues.increment()
        return false
    }

    /// Resumes or fails the operations that waited for encryption on `link`.
    func encryptionSettled(on link: Link) {
        guard links[link.identifier] != nil else { return }
        if !link.protection.awaitsProof {
            requestOwedMTU(on: link)
            pumpClient(of: link)
            pumpLanes(of: link)
        }
        guard !link.protection.isBusy else { return }
        if link.protection.awaitsProof { giveUpChannels(of: link, .security(link.protection.loss ?? .timedOut)) }
        pumpChannels(of: link)
    }

    /// Ends the openings of channels. A request that is in the client lane is not sent.
    private func giveUpChannels(of link: Link, _ error: HostError) {
        for (channel, _) in link.channelUses.sorted(by: { $0.value.number < $1.value.number }) {
            endOpening(of: channel, on: link, error)
        }
    }

    // MARK: Clients

    /// What a server's refusal asks of a link; nil where the link is that already, or the refusal is about something else.
    private func requirement(of error: ATT.ErrorCode, on link: Link) -> RequiredSecurity? {
        let required: RequiredSecurity
        switch (error, link.protection.strength) {
        case (.insufficientAuthentication, nil), (.insufficientEncryption, nil): required = .encryption
        // An authenticated key that is not enough is to be one of LE Secure Connections.
        case (.insufficientAuthentication, let strength):
            required = RequiredSecurity(
                isAuthenticated: true,
                isSecureConnections: strength?.isAuthenticated ?? false
            )
        case (.encryptionKeySizeTooShort, _): required = RequiredSecurity(keySize: 16)
        default: return nil
        }
        if let strength = link.protection.strength, required.isMet(by: strength) { return nil }
        return required
    }

    /// Begins to make a link as secure as a server has asked for; its client then sends the request again.
    ///
    /// - Returns: whether that can be tried.
    func elevateSecurity(of link: Link, after error: ATT.ErrorCode) -> Bool {
        let identifier = link.identifier
        guard links[identifier] != nil, link.protection.policy.securesOnDemand,
            let required = requirement(of: error, on: link)
        else { return false }
        // The packets that the refusal lets go are sent first.
        loop.execute { [weak self] in
            self?.assumeIsolated { host in
                guard let link = host.links[identifier] else { return }
                host.require(required, of: link, for: .demand) { [weak host] result in
                    host?.assumeIsolated { $0.securityElevated(result, error, on: identifier) }
                }
                host.endInput()
            }
        }
        return true
    }

    private func securityElevated(
        _ result: Result<KeyStrength, HostError>,
        _ error: ATT.ErrorCode,
        on identifier: LinkIdentifier
    ) {
        guard let link = links[identifier], link.att.bearer.awaitedRequest == nil else { return }
        let failure: HostError? = if case .failure(let failure) = result { failure } else { nil }
        var buffer = sender.takeBuffer()
        let opcode = link.att.securityElevated(failure, after: error, into: &buffer)
        performClientEffects(of: link)
        link.att.elevationFailureWasTaken()
        advanceClient(of: link, opcode, consume buffer)
        if opcode == nil { pumpClient(of: link) }
        pumpLanes(of: link)
    }
}

extension ChannelUse {
    fileprivate var isOpening: Bool {
        if case .opening = phase { true } else { false }
    }
}
