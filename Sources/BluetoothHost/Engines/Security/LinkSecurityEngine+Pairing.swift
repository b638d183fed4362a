import BluetoothTypes
import ByteCoding
import SMP

// The course of a pairing: PDUs, steps of the Security Manager and outcomes.
extension LinkSecurityEngine {
    // MARK: Input

    /// Handles a PDU of the Security Manager's channel.
    mutating func receive(_ pdu: RawSpan, _ context: inout SecurityContext) -> [SecurityEffect] {
        if pdu[checked: 0] == CommandCode.pairingFailed.rawValue { heldPairingRequest = nil }
        if role == .peripheral, pdu[checked: 0] == CommandCode.pairingRequest.rawValue, !channel.isPairing,
            !channel.isClosed
        {
            receivePairingRequest(pdu, &context)
        } else {
            run(channel.receive(pdu, at: context.now, random: &context.random), &context)
        }
        return takeEffects(&context)
    }

    /// Sends a keypress notification to the peer (Vol 3, Part H, 3.5.8).
    ///
    /// - Returns: no effects if no passkey is asked for on the link, or either side does not use these notifications.
    mutating func pressed(
        _ kind: KeypressNotification.Kind,
        _ context: inout SecurityContext
    ) -> [SecurityEffect] {
        run(channel.pressed(kind, at: context.now, random: &context.random), &context)
        return takeEffects(&context)
    }

    private mutating func receivePairingRequest(_ pdu: RawSpan, _ context: inout SecurityContext) {
        let request: RequestWork?
        switch state {
        case .settled: request = nil
        case .requesting(let work): request = work
        case .encrypting:
            // The Security Manager refuses a request of wrong length.
            guard pdu.byteCount == 7 else {
                return run(channel.receive(pdu, at: context.now, random: &context.random), &context)
            }
            if heldPairingRequest == nil { heldPairingRequest = [UInt8](copying: pdu) }
            return
        case .storing, .confirming: return sendPairingFailed(.busy)
        case .pairing, .ending, .ended: return
        }
        if refusesPairingRequest(after: request, &context) { return }
        // A pairing that follows a Security Request keeps the parameters of the request.
        if request == nil { prepareChannel(context) }
        let steps = channel.receive(pdu, at: context.now, random: &context.random)
        if channel.isPairing {
            beginPairing(
                request?.initiative ?? .peer,
                replacesBond: request?.replacesBond ?? false,
                state.standing,
                // A call that wants a pairing gets this one.
                state.waiting.map { $0.pairsAgain ? $0.afterPairingBegan : $0 },
                context
            )
            effects.append(.report(.pairingStarted(link, peer: context.peer)))
        }
        run(steps, &context)
    }

    /// Handles the Pairing Request that arrived while the link was being encrypted.
    mutating func takeHeldPairingRequest(_ context: inout SecurityContext) {
        if case .encrypting = state { return }
        guard let pdu = heldPairingRequest else { return }
        heldPairingRequest = nil
        if !channel.isPairing, !channel.isClosed { receivePairingRequest(pdu.rawSpan, &context) }
    }

    mutating func beginPairing(
        _ initiative: SecurityInitiative,
        replacesBond: Bool,
        _ standing: Standing,
        _ waiting: [SecurityRequirement],
        _ context: SecurityContext
    ) {
        var work = PairingWork(
            initiative: initiative,
            replacesBond: replacesBond,
            before: standing,
            waiting: waiting
        )
        if initiative == .peer, isIdentityVerified {
            // A peer that may pair only because its bond is proven must not add a bond with another identity.
            switch policy.pairable {
            case .always: break
            case .duringWindow: if !context.isPairingWindowOpen { work.onlyIdentity = context.peer }
            case .never: work.onlyIdentity = context.peer
            }
        }
        state = .pairing(work)
    }

    // MARK: Refusing a Pairing Request

    /// Answers a Pairing Request with Pairing Failed, if no pairing may begin.
    ///
    /// - Parameter request: the Security Request that the central was sent before, if there is one.
    /// - Returns: whether it was answered so. Otherwise the request is for the Security Manager.
    private mutating func refusesPairingRequest(
        after request: RequestWork?,
        _ context: inout SecurityContext
    ) -> Bool {
        if (context.ownWait ?? context.waitOfAll) != nil {
            sendPairingFailed(.repeatedAttempts)
            return true
        }
        // The app has asked for the pairing, or the peer does not claim a bonded identity: it needs no window.
        let isAskedFor = request.map { $0.initiative == .app || context.bond?.strength == nil } ?? false
        if !isAskedFor, let obstacle = obstacleToPeersPairing(context) {
            // Without a key for this role, the central can do nothing else that it was asked for.
            refusePairingRequest(obstacle, after: bondKey(context) == nil ? request : nil, &context)
            return true
        }
        let isReplacementAskedFor = request?.replacesBond ?? false
        guard !isReplacementAskedFor, let obstacle = obstacleToReplacement(context) else { return false }
        refusePairingRequest(obstacle, after: request, &context)
        return true
    }

    /// - Parameter request: the Security Request whose calls end, since the central does not encrypt the link; nil if they
    ///   continue to wait.
    private mutating func refusePairingRequest(
        _ error: SecurityError,
        after request: RequestWork?,
        _ context: inout SecurityContext
    ) {
        effects.append(.report(.pairingFailed(link, peer: context.peer, error)))
        guard let request else { return sendPairingFailed(.pairingNotSupported) }
        fail(request.before, request.waiting, error)
        for case .send(let pdu) in channel.cancel(.pairingNotSupported) { effects.append(.send(pdu)) }
    }

    mutating func sendPairingFailed(_ reason: PairingFailedReason) {
        effects.append(.send(PacketBuffer.bytes { PairingFailed(reason: reason).encode(into: &$0) }))
    }

    // MARK: Steps

    /// Performs the steps of the Security Manager.
    mutating func run(_ steps: [PairingStep], _ context: inout SecurityContext) {
        var steps = steps
        var index = 0
        while index < steps.count {
            let step = steps[index]
            index += 1
            switch step {
            case .send(let pdu): effects.append(.send(pdu))
            case .ask(let question): steps += ask(question, &context)
            case .keyPressed(let kind): effects.append(.report(.keyPressed(link, peer: context.peer, kind)))
            case .encrypt(let key):
                setCipher(.starting(key, deadline: context.now + LinkSecurityEngine.encryptionTimeout))
                effects.append(.enableEncryption(key))
            case .expectEncryption(let key): setCipher(.expecting(key))
            case .securityRequested(let requirements): securityRequested(requirements, &context)
            case .completed(let outcome): completed(outcome, context)
            case .failed(let failure): failed(failure, context)
            }
        }
    }

    private mutating func setCipher(_ cipher: PairingWork.Cipher) {
        guard case .pairing(var work) = state else { return }
        work.cipher = cipher
        state = .pairing(work)
    }

    /// As the central: the peripheral asks for security (Vol 3, Part H, 2.4.6).
    ///
    /// A peripheral that supports LE Secure Connections does not cause the replacement of a bond of LE legacy pairing.
    private mutating func securityRequested(_ requested: SecurityRequirements, _ context: inout SecurityContext) {
        // Only one request of the peer waits, even if the peer repeats it.
        guard !state.waiting.contains(where: { $0.caller == .peer }) else { return }
        let canAuthenticate = policy.ioCapability != .noInputNoOutput || policy.peerOutOfBandData != nil
        let required = RequiredSecurity(isAuthenticated: requested.isAuthenticated && canAuthenticate)
        add(SecurityRequirement(.peer, required, for: .peer), &context)
    }

    // MARK: Outcomes

    private mutating func completed(_ outcome: PairingOutcome, _ context: SecurityContext) {
        guard case .pairing(let work) = state else { return }
        if let question = work.question { effects.append(.withdraw(question.number)) }
        let storing = StoringWork(
            outcome: outcome,
            initiative: work.initiative,
            peer: context.peer,
            before: work.before,
            waiting: work.waiting
        )
        // The peer gives its identity only now: it may be, or claim to be, a device that is connected or bonded.
        let identity = outcome.bond.identity
        if let only = work.onlyIdentity, identity != only {
            reject(storing, .refused("the peer is bonded as \(only) and claims to be \(identity)"), context)
        } else if let obstacle = obstacleOfAcceptList(toIdentity: identity) {
            reject(storing, obstacle, context)
        } else {
            admit(storing, isConfirmed: false)
        }
    }

    mutating func admit(_ work: StoringWork, isConfirmed: Bool) {
        state = .storing(work)
        effects.append(.admit(work.outcome, isForApp: work.initiative == .app, isConfirmed: isConfirmed))
    }

    /// Handles the decision about the keys of a pairing that has succeeded. If there is a bond, `context` has it.
    mutating func bondDecided(_ decision: BondDecision, _ context: inout SecurityContext) -> [SecurityEffect] {
        guard case .storing(let work) = state else { return [] }
        switch decision {
        case .bonded, .keptForLink: stored(work, isBonded: decision == .bonded, &context)
        case .replacesOther(let strength):
            let identity = work.outcome.bond.identity
            guard policy.bondReplacement == .whenConsented else {
                reject(work, .refused("it would replace the bond of \(identity)"), context)
                break
            }
            let question = makeQuestion(
                .consent(work.outcome.model, work.outcome.strength),
                about: identity,
                work.initiative,
                replaces: strength
            )
            let deadline = context.now + LinkSecurityEngine.confirmationTimeout
            state = .confirming(work, question, deadline: deadline)
            effects.append(.ask(question.inquiry, number: question.number))
        case .refused(let error): reject(work, error, context)
        }
        return takeEffects(&context)
    }

    private mutating func stored(_ work: StoringWork, isBonded: Bool, _ context: inout SecurityContext) {
        var standing = work.before
        standing.key?.origin = isBonded ? .bond : .transient
        standing.key?.followsVerifiedKey = false
        if isBonded { standing.keyFailure = nil }
        transientKeys = isBonded ? nil : work.outcome.bond
        state = .settled(standing)
        let result = PairingResult(
            peer: originalPeer,
            identity: work.outcome.bond.identity,
            model: work.outcome.model,
            strength: work.outcome.strength,
            isBonded: isBonded
        )
        effects += [.attemptSucceeded(work.peer), .report(.paired(link, result))]
        if isIdentityVerified { effects.append(.trusted) }
        settle(standing, work.waiting, &context)
    }

    /// Ends a link whose pairing has succeeded and may not be kept.
    mutating func reject(_ work: StoringWork, _ error: SecurityError, _ context: SecurityContext) {
        effects += [
            .report(.pairingFailed(link, peer: work.peer, error)), .attemptFailed(work.peer, countsForAll: false),
        ]
        fail(work.before, work.waiting, error)
        endLink(.security(error), context)
    }

    private mutating func failed(_ failure: PairingFailure, _ context: SecurityContext) {
        switch state {
        case .requesting(let work):
            // The central has not followed a Security Request: nothing has begun.
            fail(work.before, work.waiting, failure == .timedOut ? .timedOut : .pairing(failure))
        case .pairing(let work):
            let error = reportFailure(of: work, .pairing(failure), context)
            // If the pairing's key encrypts the link, that does not verify a bonded peer.
            verifiesWhenSettled = true
            fail(work.before, work.waiting, error)
            if work.before.key != nil, !isAdmittedByAcceptList(context) {
                // The pairing has encrypted the link, and the peer has withheld its identity.
                endLink(.security(error), context)
            } else if case .starting(let key, let deadline) = work.cipher {
                // The controllers continue with the key.
                state = .encrypting(
                    EncryptionWork(key: key, origin: .unsaved, before: work.before, deadline: deadline, waiting: [])
                )
            }
        case .settled:
            // A Pairing Request with unacceptable parameters has begun nothing.
            let error = SecurityError.pairing(failure)
            effects += [
                .attemptFailed(context.peer, countsForAll: false),
                .report(.pairingFailed(link, peer: context.peer, error)),
            ]
        case .encrypting, .storing, .confirming, .ending, .ended: break
        }
    }

    /// - Returns: the reason why the pairing has failed.
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
