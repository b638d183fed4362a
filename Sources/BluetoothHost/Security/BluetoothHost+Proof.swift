import ATT
import BluetoothTypes
import ByteCoding
import GATT
import L2CAP
import SMP

// Operations that wait until encryption has verified the identity of a bonded peer (BLESA), and requests that a server
// has refused because the link is not secure enough.
extension BluetoothHost {
    /// Encrypts a link with the key of its peer's bond. As the peripheral, sends a Security Request instead.
    func verifyIdentity(of link: Link) {
        require(.verification, of: link)
    }

    /// Ends the procedures and channels that wait for the identity of a bonded peer, because it could not be verified.
    func verificationFailed(_ error: HostError, on link: Link) {
        guard links[link.identifier] != nil, link.isUnverified else { return }
        logger.debug("\(link.peer) is not verified: \(error)")
        link.att.refuseProcedures(error)
        performClientEffects(of: link)
        link.att.elevationFailureWasTaken()
        pumpClient(of: link)
        giveUpChannels(of: link, error)
    }

    /// Resumes the operations of a link, leaves them waiting, or ends them, depending on the gate.
    func gateChanged(of link: Link) {
        guard links[link.identifier] != nil else { return }
        let gate = link.security.published.gate
        if gate == .open {
            requestOwedMTU(on: link)
            pumpClient(of: link)
            pumpLanes(of: link)
            pumpChannels(of: link)
            return linkMayFulfilAttempts(link)
        }
        // The channels of a link that the app ends, end with the link.
        if case .failed(.disconnected) = gate {} else { endUnverifiedChannels(of: link) }
        if !link.att.lanes.isEmpty { pumpLanes(of: link) }
        switch gate {
        case .open, .verifying: break
        case .unverified: if hasWaitingOperations(link) { verifyIdentity(of: link) }
        case .failed(let error): if hasWaitingOperations(link) { verificationFailed(error, on: link) }
        }
    }

    /// Whether procedures have left their lane, or channels are being opened.
    private func hasWaitingOperations(_ link: Link) -> Bool {
        !link.client.isIdle || link.channels.isOpening
    }

    /// Ends the channels of a link whose peer's identity is no longer verified, for example because encryption has ended.
    private func endUnverifiedChannels(of link: Link) {
        guard link.session.security.isIdentityUnverified, link.channels.count > 0 else { return }
        link.channels.peerIsUnverified()
        pumpChannels(of: link)
    }

    /// Returns the link for a new channel. If the peer's identity is not verified, this begins the verification, and
    /// the channel waits for it.
    ///
    /// - Throws: the reason why the peer's identity cannot be verified, if that is known already.
    func provableLink(_ identifier: LinkIdentifier) throws(HostError) -> Link {
        let link = try link(identifier)
        guard link.isUnverified else { return link }
        if link.security.state.waiting.isEmpty { verifyIdentity(of: link) }
        if case .failed(let error) = link.security.published.gate { throw error }
        return link
    }

    /// Returns whether values that a server sends may be passed to apps: only if the server's identity is verified, or
    /// need not be.
    func acceptsValues(on link: Link) -> Bool {
        guard link.isUnverified else { return true }
        metrics.unprovenValues.increment()
        return false
    }

    /// Resumes or ends the channels that have waited for encryption on `link`.
    func securitySettled(on link: Link) {
        guard links[link.identifier] != nil, !link.security.state.isBusy else { return }
        switch link.security.published.gate {
        case .open: break
        case .failed(let error): giveUpChannels(of: link, error)
        case .verifying, .unverified: giveUpChannels(of: link, .security(.timedOut))
        }
        pumpChannels(of: link)
    }

    /// Ends the channels that are being opened. Requests that still wait in the client lane are not sent.
    private func giveUpChannels(of link: Link, _ error: HostError) {
        for channel in link.channels.openings { endOpening(of: channel, on: link, error) }
    }

    // MARK: Clients

    /// Returns the security that a server's refusal requires; nil if the link has it, or if the refusal has another
    /// reason.
    private func requirement(of error: ATT.ErrorCode, on link: Link) -> RequiredSecurity? {
        let required: RequiredSecurity
        switch (error, link.security.strength) {
        case (.insufficientAuthentication, nil), (.insufficientEncryption, nil): required = .encryption
        // If an authenticated key is not enough, the server requires LE Secure Connections.
        case (.insufficientAuthentication, let strength):
            required = RequiredSecurity(
                isAuthenticated: true,
                isSecureConnections: strength?.isAuthenticated ?? false
            )
        case (.encryptionKeySizeTooShort, _): required = RequiredSecurity(keySize: 16)
        default: return nil
        }
        if let strength = link.security.strength, required.isMet(by: strength) { return nil }
        return required
    }

    /// Begins to make a link as secure as a server requires. The client then sends the request again.
    ///
    /// - Returns: false if the policy does not allow that, or the refusal has another reason.
    func elevateSecurity(of link: Link, after error: ATT.ErrorCode) -> Bool {
        let identifier = link.identifier
        guard links[identifier] != nil, link.security.policy.securesOnDemand,
            let required = requirement(of: error, on: link)
        else { return false }
        // The packets that could be sent after the refusal are sent first.
        loop.execute { [weak self] in
            self?.assumeIsolated { host in
                guard let link = host.links[identifier] else { return }
                host.require(SecurityRequirement(.elevation(error), required, for: .demand), of: link)
                host.endInput()
            }
        }
        return true
    }

    func securityElevated(
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
