import BLESMP
import BluetoothTypes

// The callers that wait until a link is secure enough, and the choice of what makes it secure: the bond's key or a
// pairing.
extension LinkSecurityEngine {
    // MARK: Calls

    /// Adds a requirement, and begins to make the link secure enough. An effect finishes the caller.
    mutating func require(_ requirement: SecurityRequirement, _ context: inout SecurityContext) -> [SecurityEffect] {
        add(requirement, &context)
        return finishInput(&context)
    }

    /// Begins the verification of the peer of a new link, if the policy requires it, or requests encryption.
    mutating func linkBegan(_ context: inout SecurityContext) -> [SecurityEffect] {
        verifiesWhenSettled = true
        return finishInput(&context)
    }

    /// Cancels a caller. If no other caller waits, also cancels the work in progress, unless the peer began it.
    mutating func cancel(_ caller: SecurityCaller, _ context: inout SecurityContext) -> [SecurityEffect] {
        guard let index = state.waiting.firstIndex(where: { $0.caller == caller }) else { return [] }
        let requirement = state.waiting.remove(at: index)
        finish(requirement, .failure(.cancelled))
        if state.waiting.isEmpty { cancelWork(&context) } else { withdrawConsent(&context) }
        return finishInput(&context)
    }

    /// Ends the consent that a cancelled call gave to a pairing, unless another call that waits gives it as well.
    ///
    /// As the peripheral, a pairing that the app no longer asks for counts as the central's. It ends if the central
    /// could not begin it now.
    private mutating func withdrawConsent(_ context: inout SecurityContext) {
        let waiting = state.waiting
        let isReplacementWanted = waiting.contains { consentsToReplacement($0, context) }
        let initiative: SecurityInitiative = waiting.contains { $0.initiative == .app } ? .app : .demand
        switch state {
        case .requesting(var work) where work.initiative == .app:
            work.initiative = initiative
            work.replacesBond = work.replacesBond && isReplacementWanted
            state = .requesting(work)
        case .pairing(var work) where work.initiative == .app:
            work.initiative = initiative
            work.replacesBond = work.replacesBond && isReplacementWanted
            work.onlyIdentity = onlyIdentity(inPairingOf: initiative, context)
            let obstacle = isStartedHere(initiative) ? nil : obstacleToUnrequestedPairing(context)
            if let obstacle { work.refusal = obstacle }
            state = .pairing(work)
            if obstacle != nil { perform(securityManager.cancel(.unspecifiedReason), &context) }
        case .settled, .requesting, .encrypting, .pairing, .awaitingBondDecision, .awaitingConsent, .ending, .ended:
            break
        }
    }

    /// Whether a requirement is the app's consent to a pairing that replaces the bond: the app asks for a new pairing,
    /// or for more than the bond's key gives.
    private func consentsToReplacement(_ requirement: SecurityRequirement, _ context: SecurityContext) -> Bool {
        guard requirement.initiative == .app else { return false }
        let isBondEnough = usableBondKey(context).map { requirement.required.isMet(by: $0.strength) } ?? false
        return requirement.asksForNewPairing || !isBondEnough
    }

    /// Cancels a Security Request or a pairing that no caller waits for. An encryption cannot be cancelled.
    private mutating func cancelWork(_ context: inout SecurityContext) {
        switch state {
        case .requesting(let work) where work.initiative != .peer:
            perform(securityManager.cancel(.unspecifiedReason), &context)
        case .pairing(let work) where work.initiative != .peer:
            perform(securityManager.cancel(.unspecifiedReason), &context)
        case .awaitingConsent(let work, let question, _) where work.initiative != .peer:
            // The peer has stored keys that this host drops.
            effects.append(.withdraw(question.number))
            rejectPairing(work, .refused("the call for it was cancelled"), context)
        case .requesting, .pairing, .settled, .encrypting, .awaitingBondDecision, .awaitingConsent, .ending, .ended:
            break
        }
    }

    /// Adds a requirement, and begins what it needs unless something is in progress.
    mutating func add(_ requirement: SecurityRequirement, _ context: inout SecurityContext) {
        // A pairing in progress also serves a caller that needs a new pairing.
        let requirement =
            requirement.needsNewPairing && securityManager.isPairing ? requirement.afterPairingBegan : requirement
        switch state {
        case .settled(let current): settle(current, [requirement], &context)
        case .requesting, .encrypting, .pairing, .awaitingBondDecision, .awaitingConsent:
            state.waiting.append(requirement)
        case .ending(let error), .ended(let error): finish(requirement, .failure(error))
        }
    }

    // MARK: Leaving a busy state

    /// Finishes the callers that the link is secure enough for, and begins what the first of the others needs.
    mutating func settle(
        _ current: CurrentEncryption,
        _ waiting: [SecurityRequirement],
        _ context: inout SecurityContext
    ) {
        state = .settled(current)
        var waiting = waiting
        var unanswered: SecurityRequirement?
        // The key of a pairing that has failed does not serve calls to a bonded peer, and a key that the policy does
        // not accept serves none.
        if let strength = current.key?.strength, !needsVerification(context) {
            if policy.accepts(strength) {
                for requirement in waiting where requirement.isMet(by: strength) {
                    if requirement.caller == .peer, securityManager.isSecurityRequestPending {
                        unanswered = requirement
                    } else {
                        finish(requirement, .success(strength))
                    }
                }
                waiting.removeAll { $0.isMet(by: strength) }
            }
            while let first = waiting.first, first.hasPairingBegun {
                waiting.removeFirst()
                finish(first, .failure(.security(.insufficient(strength))))
            }
        }
        if let unanswered { waiting.append(unanswered) }
        guard let first = waiting.first else { return }
        if first == unanswered {
            answerSecurityRequest(first, current, &context)
        } else {
            begin(first, current, waiting, &context)
        }
    }

    /// Ends all callers with an error. The link stays.
    mutating func fail(_ current: CurrentEncryption, _ waiting: [SecurityRequirement], _ error: SecurityError) {
        state = .settled(current)
        for requirement in waiting { finish(requirement, .failure(.security(error))) }
    }

    /// Ends all callers with an error, and the link with them.
    mutating func failAndDisconnect(
        _ current: CurrentEncryption,
        _ waiting: [SecurityRequirement],
        _ error: SecurityError,
        _ context: SecurityContext
    ) {
        fail(current, waiting, error)
        disconnect(.security(error), context)
    }

    mutating func finish(_ requirement: SecurityRequirement, _ result: Result<KeyStrength, HostError>) {
        if requirement.caller == .verification, case .failure(.security(let error)) = result {
            verificationFailure = error
        }
        effects.append(.finish(requirement.caller, result))
    }

    // MARK: Beginning

    /// Begins what the first caller needs: an encryption with the bond's key or a pairing. Fails all callers if neither
    /// is possible.
    private mutating func begin(
        _ first: SecurityRequirement,
        _ current: CurrentEncryption,
        _ waiting: [SecurityRequirement],
        _ context: inout SecurityContext
    ) {
        let keyFailure = keyFailure(in: current, context)
        if let key = usableBondKey(context), !first.needsNewPairing, keyFailure == nil,
            first.required.isMet(by: key.strength)
        {
            switch role {
            case .central: encrypt(with: key, .bond, current, waiting, context)
            case .peripheral:
                if let wait = waitBeforeRequest(context) { return fail(current, waiting, .repeatedAttempts(wait)) }
                start(first, replacesBond: false, expecting: key.strength, current, waiting, &context)
            }
        } else if let keyFailure, current.key?.origin != .bond, !first.needsNewPairing {
            failAndAnswerPeer(first, keyFailure, current, waiting, &context)
        } else if lacksKey(for: first, context) {
            failAndAnswerPeer(first, .keyMissing, current, waiting, &context)
        } else {
            pair(first, current, waiting, &context)
        }
    }

    /// As the central: answers the Security Request of a peripheral whose link is secure enough (Vol 3, Part H, 2.4.6).
    /// Refreshes the encryption. Without a key for that, sends Pairing Failed.
    ///
    /// Further requests of the peripheral wait for the refresh that is in progress, so there is only one at a time.
    private mutating func answerSecurityRequest(
        _ request: SecurityRequirement,
        _ current: CurrentEncryption,
        _ context: inout SecurityContext
    ) {
        if let (key, origin) = keyForRefresh(meeting: request, current, context) {
            encrypt(with: key, origin, current, [request], context)
        } else {
            let error = SecurityError.refused("the link is encrypted, and there is no key to refresh that")
            failAndAnswerPeer(request, error, current, [request], &context)
        }
    }

    /// Whether a requirement fails because the bond has no key for the central, and the policy does not pair again if a
    /// key is missing. The app can still pair.
    ///
    /// As the peripheral, this host sends a Security Request instead, because the central may begin a pairing.
    private func lacksKey(for requirement: SecurityRequirement, _ context: SecurityContext) -> Bool {
        role == .central && needsVerification(context) && bondKey(context) == nil && policy.keyLoss == .fail
            && requirement.initiative == .demand && !requirement.needsNewPairing
    }

    /// Begins a pairing or requests it, or fails all callers if it is not allowed.
    private mutating func pair(
        _ first: SecurityRequirement,
        _ current: CurrentEncryption,
        _ waiting: [SecurityRequirement],
        _ context: inout SecurityContext
    ) {
        let replacesBond = consentsToReplacement(first, context)
        let obstacle = obstacle(to: first, context) ?? (replacesBond ? nil : obstacleToReplacement(context))
        if let obstacle { return failAndAnswerPeer(first, obstacle, current, waiting, &context) }
        start(first, replacesBond: replacesBond, current, waiting.map(\.afterPairingBegan), &context)
    }

    /// Ends all callers with an error. Answers a peripheral's Security Request with Pairing Failed, if it is the first
    /// caller or has got no answer yet.
    mutating func failAndAnswerPeer(
        _ first: SecurityRequirement,
        _ error: SecurityError,
        _ current: CurrentEncryption,
        _ waiting: [SecurityRequirement],
        _ context: inout SecurityContext
    ) {
        if first.initiative == .peer || securityManager.isSecurityRequestPending {
            let isTooSoon = if case .repeatedAttempts = error { true } else { false }
            let reason: PairingFailedReason = isTooSoon ? .repeatedAttempts : .pairingNotSupported
            let steps = securityManager.cancel(reason)
            // The Security Manager forgets the request if the link is encrypted in the meantime.
            if steps.isEmpty, !securityManager.isClosed { sendPairingFailed(reason) }
            perform(steps, &context)
        }
        fail(current, waiting, error)
    }

    /// Sends a Pairing Request as the central, a Security Request as the peripheral.
    ///
    /// - Parameter strength: the strength of the bond's key if the central is to encrypt the link with it.
    private mutating func start(
        _ first: SecurityRequirement,
        replacesBond: Bool,
        expecting strength: KeyStrength? = nil,
        _ current: CurrentEncryption,
        _ waiting: [SecurityRequirement],
        _ context: inout SecurityContext
    ) {
        // For a Security Request, this host requires only encryption. The peripheral enforces the MITM protection that
        // it requests. Some peripherals without input and output request it, and then accept just works.
        prepareSecurityManager(for: first.initiative == .peer ? .encryption : first.required, context)
        switch role {
        case .central:
            beginPairing(first.initiative, replacesBond: replacesBond, current, waiting, context)
        case .peripheral:
            state = .requesting(
                RequestWork(
                    current: current,
                    initiative: first.initiative,
                    replacesBond: replacesBond,
                    waiting: waiting
                )
            )
        }
        let steps = securityManager.start(expecting: strength, at: context.now, random: &context.random)
        if securityManager.isPairing { effects.append(.report(.pairingStarted(link, peer: context.peer))) }
        perform(steps, &context)
    }

    /// Sets the parameters of the link's next pairing.
    mutating func prepareSecurityManager(for required: RequiredSecurity = .encryption, _ context: SecurityContext) {
        var parameters = policy.pairingParameters
        if required.isAuthenticated { parameters.requiresAuthentication = true }
        if required.isSecureConnections { parameters.requiresSecureConnections = true }
        parameters.minimumKeySize = max(parameters.minimumKeySize, min(required.keySizeInBytes, 16))
        securityManager.parameters = parameters
        securityManager.identity = context.localIdentity
        securityManager.peerIdentity = context.peer
    }

    // MARK: Obstacles

    /// Whether the app has chosen the peer that it wants to pair with. As the peripheral, the app has not: any central
    /// can connect, also an attacker that connects again and again.
    func isChosenByApp(_ initiative: SecurityInitiative) -> Bool { initiative == .app && role == .central }

    /// Whether this host begins the pairing. As the peripheral, only the app does: a central can cause a pairing on
    /// demand, because it can refuse a request.
    func isStartedHere(_ initiative: SecurityInitiative) -> Bool {
        switch initiative {
        case .app: true
        case .demand: role == .central
        case .peer: false
        }
    }

    /// The reason why no pairing may begin now, if there is one.
    private func obstacle(to requirement: SecurityRequirement, _ context: SecurityContext) -> SecurityError? {
        if securityManager.isClosed { return .timedOut }
        let initiative = requirement.initiative
        if requirement.required.isAuthenticated || policy.requiresAuthentication, !policy.canAuthenticate {
            return .refused("it needs authentication, and this device has no input or output")
        }
        if let wait = context.waitOfPeer { return .repeatedAttempts(wait) }
        let isChosen = isChosenByApp(initiative) || initiative == .demand && role == .central
        if !isChosen, let wait = context.waitOfAll { return .repeatedAttempts(wait) }
        if let obstacle = obstacleOfAcceptList(to: context.peer) { return obstacle }
        switch initiative {
        case .app: break
        case .demand:
            if !policy.securesOnDemand { return .refused("the policy does not pair on demand") }
            // The central would begin the pairing. So no Security Request is sent if it may not, or if it would fail.
            if role == .peripheral, let obstacle = obstacleToUnrequestedPairing(context) { return obstacle }
        case .peer:
            if !policy.pairsOnRequest { return .refused("the policy does not pair when a peripheral requests it") }
            if let obstacle = obstacleToUnrequestedPairing(context) { return obstacle }
        }
        if policy.bonds, let limit = context.reachedBondLimit, context.bond == nil { return .tooManyBonds(limit) }
        return nil
    }

    /// The reason why a pairing must not begin now that the app has not asked for; nil if it may.
    private func obstacleToUnrequestedPairing(_ context: SecurityContext) -> SecurityError? {
        obstacleToPeersPairing(context) ?? obstacleToEveryModel(context)
    }

    /// The reason why each pairing that the app has not asked for would be refused, whatever its association model; nil
    /// if one may succeed.
    private func obstacleToEveryModel(_ context: SecurityContext) -> SecurityError? {
        guard policy.ownOutOfBandData == nil, policy.peerOutOfBandData == nil else { return nil }
        if !context.hasPairingHandler, policy.justWorks != .always {
            return .refused("the app has not asked for it, and there is no pairing delegate to consent")
        }
        if policy.justWorks == .never, !policy.canAuthenticate {
            return .refused("the policy refuses just works, and this device has no input or output")
        }
        return nil
    }

    /// The reason why the peer must not begin a pairing now; nil if it may.
    ///
    /// A verified peer may always pair again, for a stronger key.
    func obstacleToPeersPairing(_ context: SecurityContext) -> SecurityError? {
        switch policy.pairable {
        case .always: break
        case _ where isIdentityVerified: break
        case .duringWindow where context.isPairingWindowOpen: break
        case .duringWindow: return .refused("the pairing window is closed")
        case .never: return .refused("the policy does not let peers begin a pairing")
        }
        return obstacleOfAcceptList(to: context.peer)
    }

    /// The reason why a pairing that the app has not asked for must not replace the bond of the peer; nil if it may, or
    /// the peer is not bonded.
    func obstacleToReplacement(_ context: SecurityContext) -> SecurityError? {
        guard context.bondStrength != nil else { return nil }
        switch policy.bondReplacement {
        case .whenConsented: break
        case .whenIdentityVerified where isIdentityVerified: break
        case .whenIdentityVerified:
            return .refused("it would replace the bond of a peer whose identity is not verified")
        case .never: return .refused("it would replace a bond, and the policy lets no pairing do that")
        }
        return context.hasPairingHandler
            ? nil : .refused("it would replace a bond, and there is no pairing delegate to consent")
    }

    /// The reason why the peer with this address must not pair; nil if it may. The identity of a peer with a private
    /// address is not known yet, so such a peer may begin.
    func obstacleOfAcceptList(to peer: DeviceAddress) -> SecurityError? {
        guard peer.isLasting else { return nil }
        return obstacleOfAcceptList(toIdentity: peer)
    }

    /// The reason why a peer with this identity address must not pair; nil if it may.
    func obstacleOfAcceptList(toIdentity identity: DeviceAddress) -> SecurityError? {
        guard let list = policy.pairingAcceptList, !list.contains(identity) else { return nil }
        return .refused("\(identity) is not on the pairing accept list")
    }

    /// Whether the peer has been admitted: it is on the accept list, or has paired, or there is no list. A peer that is
    /// pairing under a private address is admitted when it has given its identity.
    func isAdmittedByAcceptList(_ context: SecurityContext) -> Bool {
        guard let list = policy.pairingAcceptList else { return true }
        return list.contains(context.peer) || context.bond?.strength != nil || transientKeys != nil
    }
}
