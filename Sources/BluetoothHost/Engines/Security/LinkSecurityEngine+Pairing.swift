import BLEByteCoding
import BLESMP
import BluetoothTypes

// The course of a pairing: PDUs, steps of the Security Manager and outcomes.
extension LinkSecurityEngine {
    // MARK: Input

    /// Handles a PDU of the Security Manager Protocol.
    mutating func receive(_ pdu: RawSpan, _ context: inout SecurityContext) -> [SecurityEffect] {
        if pdu[checked: 0] == CommandCode.pairingFailed.rawValue { heldPairingRequest = nil }
        if role == .peripheral, pdu[checked: 0] == CommandCode.pairingRequest.rawValue, !securityManager.isPairing,
            !securityManager.isClosed
        {
            receivePairingRequest(pdu, &context)
        } else {
            perform(securityManager.receive(pdu, at: context.now, random: &context.random), &context)
        }
        return finishInput(&context)
    }

    /// Sends a keypress notification to the peer (Vol 3, Part H, 3.5.8).
    ///
    /// - Returns: no effects if no passkey is asked for on the link, or either side does not use these notifications.
    mutating func pressed(
        _ kind: KeypressNotification.Kind,
        _ context: inout SecurityContext
    ) -> [SecurityEffect] {
        perform(securityManager.pressed(kind, at: context.now, random: &context.random), &context)
        return finishInput(&context)
    }

    /// Handles a Pairing Request while no pairing is in progress.
    private mutating func receivePairingRequest(_ pdu: RawSpan, _ context: inout SecurityContext) {
        let request: RequestWork?
        switch state {
        case .settled: request = nil
        case .requesting(let work): request = work
        case .encrypting:
            // The Security Manager answers a request of wrong length with Pairing Failed.
            guard pdu.byteCount == 7 else {
                return perform(securityManager.receive(pdu, at: context.now, random: &context.random), &context)
            }
            if heldPairingRequest == nil { heldPairingRequest = [UInt8](copying: pdu) }
            return
        case .awaitingBondDecision, .awaitingConsent: return sendPairingFailed(.busy)
        case .pairing, .ending, .ended: return
        }
        if refusesPairingRequest(after: request, &context) { return }
        // A pairing that follows a Security Request keeps the parameters of the request.
        if request == nil { prepareSecurityManager(context) }
        let steps = securityManager.receive(pdu, at: context.now, random: &context.random)
        if securityManager.isPairing {
            beginPairing(
                request?.initiative ?? .peer,
                replacesBond: request?.replacesBond ?? false,
                state.current,
                // This pairing serves the calls that need a new one.
                state.waiting.map { $0.needsNewPairing ? $0.afterPairingBegan : $0 },
                context
            )
            effects.append(.report(.pairingStarted(link, peer: context.peer)))
        } else if request != nil, steps.contains(where: { if case .failed(.ended) = $0 { true } else { false } }) {
            // The Security Manager has refused the request because of its parameters. The peer waits as it does after a
            // request that this host has not asked for.
            effects.append(.attemptFailed(context.peer, countsForAll: false))
        }
        perform(steps, &context)
    }

    /// Handles the Pairing Request that arrived while the link was being encrypted.
    mutating func processHeldPairingRequest(_ context: inout SecurityContext) {
        if case .encrypting = state { return }
        guard let pdu = heldPairingRequest else { return }
        heldPairingRequest = nil
        if !securityManager.isPairing, !securityManager.isClosed { receivePairingRequest(pdu.rawSpan, &context) }
    }

    /// Enters the state of a pairing, before or after the Security Manager has begun it.
    mutating func beginPairing(
        _ initiative: SecurityInitiative,
        replacesBond: Bool,
        _ current: CurrentEncryption,
        _ waiting: [SecurityRequirement],
        _ context: SecurityContext
    ) {
        var work = PairingWork(
            initiative: initiative,
            replacesBond: replacesBond,
            current: current,
            waiting: waiting
        )
        work.onlyIdentity = onlyIdentity(inPairingOf: initiative, context)
        state = .pairing(work)
    }

    /// The only identity address that the peer may give in a pairing; nil for any.
    ///
    /// A peer that may pair only because it is verified must not add a bond with another identity. A peer can cause a
    /// pairing on demand as well: it refuses a request.
    func onlyIdentity(inPairingOf initiative: SecurityInitiative, _ context: SecurityContext) -> DeviceAddress? {
        guard initiative != .app, isIdentityVerified else { return nil }
        return switch policy.pairable {
        case .always: nil
        case .duringWindow: context.isPairingWindowOpen ? nil : context.peer
        case .never: context.peer
        }
    }

    // MARK: Refusing a Pairing Request

    /// Answers a Pairing Request with Pairing Failed, if no pairing may begin.
    ///
    /// - Parameter request: the Security Request that this host sent before, if there is one.
    /// - Returns: whether the Pairing Request was answered. If not, the Security Manager handles it.
    private mutating func refusesPairingRequest(
        after request: RequestWork?,
        _ context: inout SecurityContext
    ) -> Bool {
        if (context.waitOfPeer ?? context.waitOfAll) != nil {
            sendPairingFailed(.repeatedAttempts)
            return true
        }
        // A Security Request on demand does not permit a pairing: the central can cause it by refusing a request.
        if request?.initiative != .app, let obstacle = obstacleToPeersPairing(context) {
            // If the bond has no key for this role, the central cannot encrypt the link either, and the calls end.
            refusePairingRequest(obstacle, after: bondKey(context) == nil ? request : nil, &context)
            return true
        }
        let isReplacementAskedFor = request?.replacesBond ?? false
        guard !isReplacementAskedFor, let obstacle = obstacleToReplacement(context) else { return false }
        refusePairingRequest(obstacle, after: request, &context)
        return true
    }

    /// Reports a refused Pairing Request, and answers it with Pairing Failed.
    ///
    /// - Parameter request: the Security Request whose calls end; nil if they wait on, because the central may still
    ///   encrypt the link.
    private mutating func refusePairingRequest(
        _ error: SecurityError,
        after request: RequestWork?,
        _ context: inout SecurityContext
    ) {
        effects.append(.report(.pairingFailed(link, peer: context.peer, error)))
        guard let request else { return sendPairingFailed(.pairingNotSupported) }
        fail(request.current, request.waiting, error)
        for case .send(let pdu) in securityManager.cancel(.pairingNotSupported) { effects.append(.send(pdu)) }
    }

    mutating func sendPairingFailed(_ reason: PairingFailedReason) {
        effects.append(.send(PacketBuffer.bytes { PairingFailed(reason: reason).encode(into: &$0) }))
    }

    // MARK: Steps

    /// Performs the steps of the Security Manager.
    mutating func perform(_ steps: [PairingStep], _ context: inout SecurityContext) {
        var steps = steps
        var index = 0
        while index < steps.count {
            let step = steps[index]
            index += 1
            switch step {
            case .send(let pdu): effects.append(.send(pdu))
            case .ask(let question): steps += ask(question, &context)
            case .checkPolicy(let model, let strength): steps += checkPolicy(model, strength, &context)
            case .keyPressed(let kind): effects.append(.report(.keyPressed(link, peer: context.peer, kind)))
            case .encrypt(let key):
                setEncryption(.inProgress(key, deadline: context.now + LinkSecurityEngine.encryptionTimeout))
                effects.append(.enableEncryption(key))
            case .expectEncryption(let key): setEncryption(.expected(key))
            case .securityRequested(let requirements): securityRequested(requirements, &context)
            case .completed(let outcome): pairingCompleted(outcome, context)
            case .failed(let failure): pairingFailed(failure, context)
            }
        }
    }

    /// Records how far the encryption with the pairing's key is.
    private mutating func setEncryption(_ encryption: PairingWork.EncryptionProgress) {
        guard case .pairing(var work) = state else { return }
        work.encryption = encryption
        state = .pairing(work)
    }

    /// As the central: the peripheral asks for security (Vol 3, Part H, 2.4.6).
    ///
    /// Its request for LE Secure Connections is ignored. Otherwise it would replace each bond of LE legacy pairing.
    ///
    /// Its request for authentication is ignored if no pairing could meet it. Otherwise a peripheral without input and
    /// output that requests authentication on each link would cause a pairing on each link.
    private mutating func securityRequested(_ requested: SecurityRequirements, _ context: inout SecurityContext) {
        // Only one request of the peer waits, even if the peer repeats it.
        guard !state.waiting.contains(where: { $0.caller == .peer }) else { return }
        let required = RequiredSecurity(isAuthenticated: requested.isAuthenticated && mayAuthenticate(context))
        add(SecurityRequirement(.peer, required, for: .peer), &context)
    }

    /// Whether a pairing with the peer may give an authenticated key, as far as this host knows.
    private func mayAuthenticate(_ context: SecurityContext) -> Bool {
        // A pairing on this link has shown that the peer cannot authenticate. The peer may repeat its request without
        // end.
        guard policy.canAuthenticate, !hasPairedWithoutAuthentication else { return false }
        guard policy.ownOutOfBandData == nil, policy.peerOutOfBandData == nil else { return true }
        guard let key = bondKey(context), let capability = context.bond?.peerIOCapability else { return true }
        return policy.ioCapability.canAuthenticate(
            with: capability,
            isSecureConnections: key.strength.isSecureConnections
        )
    }

    // MARK: Outcomes

    /// Handles a pairing that the Security Manager has completed.
    private mutating func pairingCompleted(_ outcome: PairingOutcome, _ context: SecurityContext) {
        guard case .pairing(let work) = state else { return }
        hasPairedWithoutAuthentication = !outcome.strength.isAuthenticated
        if let question = work.question { effects.append(.withdraw(question.number)) }
        let completed = CompletedPairing(
            outcome: outcome,
            initiative: work.initiative,
            peer: context.peer,
            current: work.current,
            waiting: work.waiting
        )
        // The peer gives its identity only now. It may claim to be another device, also one that is bonded.
        let identity = outcome.bond.identity
        if let only = work.onlyIdentity, identity != only {
            rejectPairing(completed, .refused("the peer is bonded as \(only) and claims to be \(identity)"), context)
        } else if let obstacle = obstacleOfAcceptList(toIdentity: identity) {
            rejectPairing(completed, obstacle, context)
        } else {
            requestBondDecision(about: completed, isConfirmed: false)
        }
    }

    /// Asks the bond database what happens to the keys of a pairing.
    ///
    /// - Parameter isConfirmed: whether the app has agreed that the pairing replaces the bond of another peer.
    mutating func requestBondDecision(about work: CompletedPairing, isConfirmed: Bool) {
        state = .awaitingBondDecision(work)
        effects.append(.decideBond(work.outcome, isForApp: work.initiative == .app, isConfirmed: isConfirmed))
    }

    /// Handles the decision about the keys of a completed pairing. If they are a bond now, `context` has it.
    mutating func bondDecided(_ decision: BondDecision, _ context: inout SecurityContext) -> [SecurityEffect] {
        guard case .awaitingBondDecision(let work) = state else { return [] }
        switch decision {
        case .bonded, .keptForLink: keysAccepted(work, isBonded: decision == .bonded, &context)
        case .replacesOther(let strength):
            let identity = work.outcome.bond.identity
            guard policy.bondReplacement == .whenConsented else {
                rejectPairing(work, .refused("it would replace the bond of \(identity)"), context)
                break
            }
            let question = makeQuestion(
                .consent(work.outcome.model, work.outcome.strength),
                about: identity,
                work.initiative,
                replaces: strength
            )
            let deadline = context.now + LinkSecurityEngine.replacementConsentTimeout
            state = .awaitingConsent(work, question, deadline: deadline)
            effects.append(.ask(question.inquiry, number: question.number))
        case .refused(let error): rejectPairing(work, error, context)
        }
        return finishInput(&context)
    }

    /// Ends a pairing whose keys are stored as a bond, or kept until the link ends.
    private mutating func keysAccepted(_ work: CompletedPairing, isBonded: Bool, _ context: inout SecurityContext) {
        var current = work.current
        current.key?.origin = isBonded ? .bond : .transient
        if isBonded {
            current.key?.followsVerifiedKey = false
            current.keyFailure = nil
        }
        transientKeys = isBonded ? nil : work.outcome.bond
        state = .settled(current)
        let result = PairingResult(
            peer: originalPeer,
            // Without a bond, no later link verifies the identity that the peer has claimed.
            identity: isBonded ? work.outcome.bond.identity : work.peer,
            model: work.outcome.model,
            strength: work.outcome.strength,
            isBonded: isBonded
        )
        effects += [.attemptSucceeded(work.peer), .report(.paired(link, result))]
        if isIdentityVerified { effects.append(.identityVerified) }
        settle(current, work.waiting.map(\.afterPairingCompleted), &context)
    }

    /// Fails a completed pairing whose keys may not be used, and ends the link.
    mutating func rejectPairing(_ work: CompletedPairing, _ error: SecurityError, _ context: SecurityContext) {
        effects += [
            .report(.pairingFailed(link, peer: work.peer, error)), .attemptFailed(work.peer, countsForAll: false),
        ]
        failAndDisconnect(work.current, work.waiting, error, context)
    }

    /// Handles the failure of a pairing, or of a Security Request.
    private mutating func pairingFailed(_ failure: PairingFailure, _ context: SecurityContext) {
        switch state {
        case .requesting(let work):
            // The central refused the Security Request, did not answer it, or sent unacceptable parameters. No pairing
            // has begun.
            fail(work.current, work.waiting, failure == .timedOut ? .timedOut : .pairing(failure))
        case .pairing(let work):
            let error = reportFailure(of: work, .pairing(failure), context)
            // If the pairing's key encrypts the link, that does not verify a bonded peer.
            verifiesWhenSettled = true
            if work.current.key != nil, !isAdmittedByAcceptList(context) {
                // The pairing has encrypted the link, and the peer has withheld its identity.
                return failAndDisconnect(work.current, work.waiting, error, context)
            }
            fail(work.current, work.waiting, error)
            if case .inProgress(let key, let deadline) = work.encryption {
                // The controllers continue to encrypt the link with the key.
                state = .encrypting(
                    EncryptionWork(
                        key: key,
                        origin: .incompletePairing,
                        current: work.current,
                        deadline: deadline,
                        waiting: []
                    )
                )
            }
        case .settled:
            // The Security Manager has refused a Pairing Request because of its parameters. No pairing has begun.
            let error = SecurityError.pairing(failure)
            effects += [
                .attemptFailed(context.peer, countsForAll: false),
                .report(.pairingFailed(link, peer: context.peer, error)),
            ]
        case .encrypting, .awaitingBondDecision, .awaitingConsent, .ending, .ended: break
        }
    }

    /// Reports a failed pairing, and withdraws its question.
    ///
    /// - Parameters:
    ///   - failure: the reason, unless this host has refused the pairing.
    ///   - countsAsAttempt: whether the peer may have to wait before the next pairing.
    /// - Returns: the reason that was reported.
    @discardableResult
    mutating func reportFailure(
        of work: PairingWork,
        _ failure: SecurityError,
        countsAsAttempt: Bool = true,
        _ context: SecurityContext
    ) -> SecurityError {
        if let question = work.question { effects.append(.withdraw(question.number)) }
        let error = work.refusal ?? failure
        let countsForAll = work.isSecretAtStake && !isChosenByApp(work.initiative)
        if countsAsAttempt { effects.append(.attemptFailed(context.peer, countsForAll: countsForAll)) }
        effects.append(.report(.pairingFailed(link, peer: context.peer, error)))
        return error
    }
}
