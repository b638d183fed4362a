import BLEByteCoding
import BLECryptography
import BLEHCI
import BLESMP
import BluetoothTypes

// The connection between the host and the security engines of its links: inputs of the engines, and their effects.
extension BluetoothHost {
    func makeSecurity(
        for connection: NewConnection,
        _ link: LinkIdentifier,
        identity: DeviceAddress
    ) -> LinkSecurityEngine {
        LinkSecurityEngine(
            link: link,
            securityManager: SecurityChannel(
                role: connection.role == .central ? .central : .peripheral,
                ownAddress: connection.localPrivateAddress ?? ownAddress(of: connection),
                peerAddress: connection.peerPrivateAddress ?? connection.peerAddress,
                identity: localIdentity,
                functions: SwiftCryptography()
            ),
            policy: pairing.policy,
            securityContext(of: identity)
        )
    }

    // MARK: Inputs

    /// Passes an input to the security engine of a link, and performs the effects.
    func inform(
        _ link: Link,
        _ input: (inout LinkSecurityEngine, inout SecurityContext) -> [SecurityEffect]
    ) {
        var context = securityContext(of: link)
        let effects = input(&link.security, &context)
        endSecurityInput(effects, context, of: link)
    }

    private func endSecurityInput(_ effects: [SecurityEffect], _ context: SecurityContext, of link: Link) {
        random = context.random
        perform(effects, of: link)
        guard links[link.identifier] != nil else { return }
        armTimer(of: link)
        if !effects.isEmpty { securitySettled(on: link) }
    }

    func securityContext(of link: Link) -> SecurityContext { securityContext(of: link.identity) }

    private func securityContext(of identity: DeviceAddress) -> SecurityContext {
        SecurityContext(
            now: loop.now,
            peer: identity,
            bond: bonds[identity]?.bond,
            bondStrength: bonds.strength(of: identity),
            reachedBondLimit: bonds.isFull ? bonds.limit : nil,
            waitOfPeer: pairing.attempts.wait(for: identity, at: loop.now),
            waitOfAll: pairing.attempts.waitOfAll(at: loop.now),
            isPairingWindowOpen: pairing.isWindowOpen(at: loop.now),
            hasPairingHandler: pairing.handler != nil,
            localIdentity: localIdentity,
            random: random
        )
    }

    func receiveSecurityPDU(_ pdu: RawSpan, on link: Link) {
        guard !pdu.isEmpty else { return metrics.malformed.increment() }
        var context = securityContext(of: link)
        let effects = link.security.receive(pdu, &context)
        endSecurityInput(effects, context, of: link)
    }

    /// As the peripheral: handles the controller's request for the key that the central uses.
    func longTermKeyRequested(_ event: LELongTermKeyRequest) {
        guard let link = links[event.connectionHandle] else { return refuseKey(event.connectionHandle) }
        inform(link) { security, context in
            security.keyRequested(
                random: event.randomNumber,
                diversifier: event.encryptedDiversifier,
                &context
            )
        }
    }

    /// Handles the controller's report that a link is encrypted or not, that its key has changed, or that an encryption
    /// has failed.
    func encryptionChanged(_ handle: ConnectionHandle, _ status: HCIErrorCode, isOn: Bool) {
        guard let link = links[handle] else { return }
        inform(link) { security, context in security.encryptionChanged(status, isOn: isOn, &context) }
    }

    /// Updates the security of a link whose peer has other keys than before, or none.
    func keysChanged(of link: Link) {
        inform(link) { security, context in security.contextChanged(&context) }
    }

    /// Sends a keypress notification to the peer of a link (Vol 3, Part H, 3.5.8).
    ///
    /// - Returns: false if no passkey is asked for on the link, or either side does not use these notifications.
    package func reportKeypress(_ kind: KeypressNotification.Kind, on identifier: LinkIdentifier) -> Bool {
        guard let link = links[identifier] else { return false }
        var isSent = false
        inform(link) { security, context in
            let effects = security.pressed(kind, &context)
            isSent = effects.contains { if case .send = $0 { true } else { false } }
            return effects
        }
        endInput()
        return isSent
    }

    /// Ends the pairing, encryption and questions of a link that has ended.
    ///
    /// - Returns: the error of calls that waited for the link to be secure, or to be sent.
    func endSecurity(of link: Link, _ reason: DisconnectionReason) -> HostError {
        dropOutdatedCache(of: link)
        if link.att.usesBondedState { perform(bonds.flush()) }
        var context = securityContext(of: link)
        let (effects, error) = link.security.linkEnded(reason, &context)
        random = context.random
        if case .security(let failure) = error { logger.warning("encryption with \(link.identity) failed: \(failure)") }
        perform(effects, of: link)
        return error
    }

    // MARK: Effects

    private func perform(_ effects: [SecurityEffect], of link: Link) {
        let wasGateClosed = link.isGateClosed
        // The other effects use the published security.
        if case .publish(let snapshot)? = effects.last { link.att.securityPublished(snapshot) }
        // Encryption can end without a change of the published security: the policy may not have accepted the key.
        if !link.security.isVerificationValid { link.att.peerIsUnverified() }
        for effect in effects {
            if case .publish = effect {
                // If the peer's identity did not have to be verified before and does not have to be now, no operation
                // waits.
                if wasGateClosed || link.isGateClosed { gateChanged(of: link) }
            } else {
                perform(effect, of: link)
            }
        }
        linkSecurityChanged(of: link)
    }

    private func perform(_ effect: SecurityEffect, of link: Link) {
        switch effect {
        case .send(let pdu): send(pdu, on: link)
        case .enableEncryption(let key): enableEncryption(of: link, with: key)
        case .keyReply(let key?):
            sendAndForget(LELongTermKeyRequestReply(connectionHandle: link.handle, longTermKey: key.value))
        case .keyReply(nil): refuseKey(link.handle)
        case .setAuthenticatedPayloadTimeout: setAuthenticatedPayloadTimeout(of: link)
        case .unknownEncryption:
            logger.warning("the controller encrypts the link to \(link.peer) with an unknown key")
        case .unreportedEncryption:
            logger.warning("the controller has not reported whether the link to \(link.peer) is encrypted")
        case .discardPrivateAddress: discardPrivateAddress(of: link)
        case .ask(let inquiry, let number): ask(inquiry, number, on: link)
        case .withdraw(let number): withdraw(number, on: link)
        case .outOfBandDataUsed(let parameters): forgetOutOfBandData(of: parameters, on: link)
        case .identityVerified:
            perform(bonds.update(link.identity, .used))
            requestOwedMTU(on: link)
            if let record = record(for: link) { useBondedState(of: link, record) }
            linkMayFulfilAttempts(link)
        case .finish(let caller, let result): finish(caller, result, on: link)
        case .decideBond(let outcome, let isForApp, let isConfirmed):
            decideBond(outcome, on: link, isForApp: isForApp, isConfirmed: isConfirmed)
        case .attemptFailed(let peer, let countsForAll):
            pairing.attempts.failed(peer, countsForAll: countsForAll, at: loop.now)
        case .attemptSucceeded(let peer): pairing.attempts.succeeded(peer)
        case .publish: break
        case .report(let event):
            log(event)
            emit(event)
        case .disconnect(let reason):
            logger.info("the link to \(link.peer) is ended: \(reason)")
            giveUp(link, .controller(reason), telling: reason)
        }
    }

    private func log(_ event: SecurityEvent) {
        switch event {
        case .pairingFailed(_, let peer, let error): logger.info("pairing with \(peer) failed: \(error)")
        case .paired(_, let result):
            logger.info("paired with \(result.identity)\(result.isBonded ? "" : " without a bond")")
        case .keyMissing(_, let identity):
            logger.warning("\(identity) has lost the key of its bond, or is another device")
        default: break
        }
    }

    /// Sends a PDU of the Security Manager.
    private func send(_ pdu: [UInt8], on link: Link) {
        var buffer = sender.takeBuffer()
        buffer.append(pdu)
        send(consume buffer, .security, on: .securityManager, of: link)
    }

    private func enableEncryption(of link: Link, with key: LongTermKey) {
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
                guard let link = host.links[identifier] else { return }
                host.inform(link) { security, context in security.encryptionRefused(key, status, &context) }
            }
        }
    }

    private func refuseKey(_ handle: ConnectionHandle) {
        metrics.unknownKeyRequests.increment()
        logger.debug("no key for link \(handle)")
        sendAndForget(LELongTermKeyRequestNegativeReply(connectionHandle: handle))
    }

    /// Replaces the private addresses of this host, once for each link. Further failures on the link do not concern the
    /// new addresses, so a peer needs a new link for each replacement.
    private func discardPrivateAddress(of link: Link) {
        guard !link.hasDiscardedAddress else { return }
        link.hasDiscardedAddress = true
        perform(gap.discardAddresses(towards: link.identity, gapContext, &random))
    }

    // MARK: Bonds

    private func decideBond(_ outcome: PairingOutcome, on link: Link, isForApp: Bool, isConfirmed: Bool) {
        let identity = outcome.bond.identity
        var decision: BondDecision
        var forgetsPeer = false
        if isConnected(identity, apartFrom: link) {
            decision = .refused(.refused("the peer claims to be \(identity), which is connected already"))
        } else {
            let effects: [BondEffect]
            // Encryption may have ended since the peer was verified.
            let isVerified = link.att.usesBondedState && link.security.isVerificationValid
            (decision, effects) = bonds.admit(
                outcome,
                from: link.identity,
                keeping: isVerified ? link.session.persistentState : nil,
                isForApp: isForApp,
                isConfirmed: isConfirmed,
                inUse: connectedIdentities
            )
            // Another device may have paired. It does not get the state of the earlier peer.
            let isPaired = decision == .bonded || decision == .keptForLink
            forgetsPeer = isPaired && !isVerified && link.att.usesBondedState
            if forgetsPeer { link.att.forgetPeer() }
            if decision == .bonded { link.identity = identity }
            perform(effects)
        }
        inform(link) { security, context in security.bondDecided(decision, &context) }
        if forgetsPeer { performServerEffects(of: link) }
    }

    private func isConnected(_ address: DeviceAddress, apartFrom link: Link) -> Bool {
        links.values.contains { $0 !== link && !$0.control.isDisconnecting && $0.isWith(anyOf: [address]) }
    }

    // MARK: Questions

    /// Asks the app. Without a pairing handler, the engine decides in a later turn of the loop.
    private func ask(_ inquiry: PairingInquiry, _ number: UInt64, on link: Link) {
        if pairing.handler != nil { return deliver(.inquiry(inquiry, number: number)) }
        let identifier = link.identifier
        loop.execute { [weak self] in
            self?.assumeIsolated { $0.answerWithoutApp(number, on: identifier) }
        }
    }

    /// Asks the app, unless the question was withdrawn in the meantime.
    func ask(_ inquiry: PairingInquiry, _ number: UInt64) {
        let identifier = inquiry.link
        guard links[identifier]?.security.state.question?.number == number else { return }
        guard let handler = pairing.handler else { return answerWithoutApp(number, on: identifier) }
        let withdraw = handler(inquiry) { [weak self] answer in
            guard let self else { return }
            loop.execute { [weak self] in
                self?.assumeIsolated { $0.answer(number, on: identifier, answer) }
            }
        }
        // The handler itself may have caused the withdrawal, for example by ending the link.
        guard let link = links[identifier], link.security.state.question?.number == number else {
            return deliver(.withdrawal(withdraw))
        }
        link.observers.question = (number, withdraw)
    }

    private func answerWithoutApp(_ number: UInt64, on identifier: LinkIdentifier) {
        guard let link = links[identifier] else { return }
        inform(link) { security, context in security.unanswered(number, &context) }
        endInput()
    }

    private func answer(_ number: UInt64, on identifier: LinkIdentifier, _ answer: PairingAnswer) {
        guard let link = links[identifier], link.security.state.question?.number == number else { return }
        if link.observers.question?.number == number { link.observers.question = nil }
        var isPasskeyReused = false
        if case .passkey(let passkey) = answer { isPasskeyReused = pairing.attempts.use(passkey: passkey) }
        inform(link) { security, context in
            security.answered(number, answer, isPasskeyReused: isPasskeyReused, &context)
        }
        endInput()
    }

    private func withdraw(_ number: UInt64, on link: Link) {
        guard let question = link.observers.question, question.number == number else { return }
        link.observers.question = nil
        deliver(.withdrawal(question.withdraw))
    }

    // MARK: Callers

    private func finish(_ caller: SecurityCaller, _ result: Result<KeyStrength, HostError>, on link: Link) {
        switch (caller, result) {
        case (.call(let call), .success(let strength)): end(call, .secured(strength))
        case (.call(let call), .failure(let error)): end(call, CallOutcome.failure(error))
        case (.verification, .success): break
        case (.verification, .failure(let error)): verificationFailed(error, on: link)
        case (.clientLane, _): clientLaneVerified(result, on: link)
        case (.elevation(let error), _): securityElevated(result, error, on: link.identifier)
        case (.peer, .success): break
        case (.peer, .failure(let error)): logger.debug("a peripheral's request for security: \(error)")
        }
    }
}
