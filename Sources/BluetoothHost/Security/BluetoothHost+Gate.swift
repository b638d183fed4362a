import BLEL2CAP
import BLESMP
import BluetoothTypes

// Operations of this host's client, channels, isochronous streams and Channel Sounding that wait at a closed gate,
// until encryption has verified the identity of a bonded peer (BLESA). See ``LinkSecurityEngine`` for the terms.
extension BluetoothHost {
    /// Encrypts a link with the key of its peer's bond. As the peripheral, sends a Security Request instead.
    func verifyIdentity(of link: Link) {
        require(.verification, of: link)
    }

    /// Ends the procedures, the openings of channels and streams, and the session of Channel Sounding that wait for the
    /// identity of a bonded peer. It could not be verified.
    func verificationFailed(_ error: HostError, on link: Link) {
        guard links[link.identifier] != nil, link.isGateClosed else { return }
        logger.debug("\(link.peer) is not verified: \(error)")
        link.att.refuseProcedures(error)
        performClientEffects(of: link)
        link.att.elevationFailureWasTaken()
        pumpClient(of: link)
        giveUpOpenings(of: link, error)
    }

    /// Resumes the operations of a link, leaves them waiting, or ends them, depending on the gate.
    func gateChanged(of link: Link) {
        guard links[link.identifier] != nil else { return }
        let gate = link.security.published.gate
        if gate == .open {
            requestOwedMTU(on: link)
            pumpClient(of: link)
            pumpEnhancedBearers(of: link)
            pumpLanes(of: link)
            pumpChannels(of: link)
            perform(isochronous.gateOpened(on: link.identifier))
            let isEncrypted = link.security.published.strength != nil
            perform(link.sounding.gateOpened(isEncrypted: isEncrypted, at: loop.now), of: link)
            return linkMayFulfilAttempts(link)
        }
        isochronous.gateClosed(on: link.identifier)
        link.sounding.gateClosed()
        // Procedures that have not started on these bearers continue on the fixed channel, where they wait.
        if case .failed(let error) = gate {
            endBearers(of: link, error)
        } else {
            endBearers(of: link, .channel(.ended(.byUs)))
        }
        // The channels, streams and sessions of a link that the app ends, end with the link.
        if case .failed(.disconnected) = gate {} else { endUnverifiedOperations(of: link) }
        if !link.att.lanes.isEmpty { pumpLanes(of: link) }
        switch gate {
        case .open, .verifying: break
        case .unverified: if hasWaitingOperations(link) { verifyIdentity(of: link) }
        case .failed(let error): if hasWaitingOperations(link) { verificationFailed(error, on: link) }
        }
    }

    /// Whether procedures have left their lane, channels or streams are being opened, or a session of Channel Sounding
    /// waits for the gate.
    private func hasWaitingOperations(_ link: Link) -> Bool {
        !link.client.isIdle || link.channels.isOpening || link.sounding.awaitsGate
            || isochronous.awaitsGate(of: link.identifier)
    }

    /// Ends the channels, isochronous streams and Channel Sounding of a link whose peer's identity is no longer
    /// verified, for example because encryption has ended.
    private func endUnverifiedOperations(of link: Link) {
        guard link.session.security.isIdentityUnverified else { return }
        perform(isochronous.peerIsUnverified(on: link.identifier))
        perform(link.sounding.peerIsUnverified(at: loop.now), of: link)
        guard link.channels.count > 0 else { return }
        link.channels.peerIsUnverified()
        pumpChannels(of: link)
    }

    /// Returns the link for a new channel, stream or session of Channel Sounding. If the gate is closed, this begins
    /// the verification, and the operation waits for it.
    ///
    /// - Throws: the reason why the peer's identity cannot be verified, if that is known already.
    func linkForOpening(_ identifier: LinkIdentifier) throws(HostError) -> Link {
        let link = try link(identifier)
        guard link.isGateClosed else { return link }
        if link.security.state.waiting.isEmpty { verifyIdentity(of: link) }
        if case .failed(let error) = link.security.published.gate { throw error }
        return link
    }

    /// Returns whether values that a server sends may be passed to apps: only if the server's identity is verified, or
    /// need not be.
    func acceptsValues(on link: Link) -> Bool {
        guard link.isGateClosed else { return true }
        metrics.unverifiedValues.increment()
        return false
    }

    /// Resumes or ends the channels that have waited for encryption on `link`. Ends the openings of streams and the
    /// session of Channel Sounding that still wait for it.
    func securitySettled(on link: Link) {
        guard links[link.identifier] != nil, !link.security.state.isBusy else { return }
        switch link.security.published.gate {
        case .open: break
        case .failed(let error): giveUpOpenings(of: link, error)
        case .verifying, .unverified: giveUpOpenings(of: link, .security(.timedOut))
        }
        pumpChannels(of: link)
    }

    /// Ends the channels that are being opened, and the openings of streams and the session of Channel Sounding that
    /// wait for the gate. Requests that still wait in the client lane are not sent.
    private func giveUpOpenings(of link: Link, _ error: HostError) {
        for channel in link.channels.openings { endOpening(of: channel, on: link, error) }
        perform(isochronous.verificationFailed(error, on: link.identifier))
        perform(link.sounding.verificationFailed(error), of: link)
    }
}
