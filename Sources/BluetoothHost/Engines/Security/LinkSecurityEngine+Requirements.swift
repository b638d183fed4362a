import BluetoothTypes
import SMP

// The security that callers require of a link. The key of a bond or a pairing provides it.
extension LinkSecurityEngine {
    // MARK: Calls

    /// Adds a requirement, and begins to make the link secure enough. The caller is finished once it is.
    mutating func require(_ requirement: SecurityRequirement, _ context: inout SecurityContext) -> [SecurityEffect] {
        add(requirement, &context)
        return takeEffects(&context)
    }

    /// Encrypts a new link to a bonded peer, if the policy requires it.
    mutating func linkBegan(_ context: inout SecurityContext) -> [SecurityEffect] {
        verifiesWhenSettled = true
        return takeEffects(&context)
    }

    /// Ends a caller that no longer waits. Cancels the work that was begun for this caller only.
    mutating func cancel(_ caller: SecurityCaller, _ context: inout SecurityContext) -> [SecurityEffect] {
        guard let index = state.waiting.firstIndex(where: { $0.caller == caller }) else { return [] }
        let requirement = state.waiting.remove(at: index)
        finish(requirement, .failure(.cancelled))
        if state.waiting.isEmpty { cancelWork(&context) } else { withdrawConsent(context) }
        return takeEffects(&context)
    }

    /// Ends the consent that a cancelled call gave to a pairing, unless another call that waits gives it as well.
    private mutating func withdrawConsent(_ context: SecurityContext) {
        let waiting = state.waiting
        let isReplacementWanted = waiting.contains { replacesBond($0, context) }
        let initiative: SecurityInitiative = waiting.contains { $0.initiative == .app } ? .app : .demand
        switch state {
        case .requesting(var work) where work.initiative == .app:
            work.initiative = initiative
            work.replacesBond = work.replacesBond && isReplacementWanted
            state = .requesting(work)
        case .pairing(var work) where work.initiative == .app:
            work.initiative = initiative
            work.replacesBond = work.replacesBond && isReplacementWanted
            state = .pairing(work)
        case .settled, .requesting, .encrypting, .pairing, .storing, .confirming, .ending, .ended: break
        }
    }

    /// Whether the app wants a pairing that replaces the bond, if there is one.
    private func replacesBond(_ requirement: SecurityRequirement, _ context: SecurityContext) -> Bool {
        guard requirement.initiative == .app else { return false }
        let isBondEnough = bondKey(context).map { requirement.required.isMet(by: $0.strength) } ?? false
        return requirement.replacesBond || !isBondEnough
    }

    private mutating func cancelWork(_ context: inout SecurityContext) {
        switch state {
        case .requesting(let work) where work.initiative != .peer:
            run(channel.cancel(.unspecifiedReason), &context)
        case .pairing(let work) where work.initiative != .peer:
            run(channel.cancel(.unspecifiedReason), &context)
        case .requesting, .pairing, .settled, .encrypting, .storing, .confirming, .ending, .ended: break
        }
    }

    /// Adds a requirement, and begins what it needs unless something is in progress.
    mutating func add(_ requirement: SecurityRequirement, _ context: inout SecurityContext) {
        // A pairing in progress serves a caller that wants another one as well.
        let requirement =
            requirement.pairsAgain && channel.isPairing ? requirement.afterPairingBegan : requirement
        switch state {
        case .settled(let standing): settle(standing, [requirement], &context)
        case .requesting, .encrypting, .pairing, .storing, .confirming: state.waiting.append(requirement)
        case .ending(let error), .ended(let error): finish(requirement, .failure(error))
        }
    }

    // MARK: Leaving a busy state

    /// Finishes the callers that the link is secure enough for, and begins what the first of the others needs.
    mutating func settle(
        _ standing: Standing,
        _ waiting: [SecurityRequirement],
        _ context: inout SecurityContext
    ) {
        state = .settled(standing)
        var waiting = waiting
        // The key of a pairing that has failed does not serve calls to a bonded peer.
        if let strength = standing.key?.strength, !isUnverified(context) {
            for requirement in waiting where requirement.isServed(by: strength) {
                finish(requirement, .success(strength))
            }
            waiting.removeAll { $0.isServed(by: strength) }
            while let first = waiting.first, first.hasPaired {
                waiting.removeFirst()
                finish(first, .failure(.security(.insufficient(strength))))
            }
        }
        if let first = waiting.first { begin(first, standing, waiting, &context) }
    }

    /// Ends all callers: nothing can be done for them.
    mutating func fail(_ standing: Standing, _ waiting: [SecurityRequirement], _ error: SecurityError) {
        state = .settled(standing)
        for requirement in waiting { finish(requirement, .failure(.security(error))) }
    }

    mutating func finish(_ requirement: SecurityRequirement, _ result: Result<KeyStrength, HostError>) {
        if requirement.caller == .verification, case .failure(.security(let error)) = result {
            verificationFailure = error
        }
        effects.append(.finish(requirement.caller, result))
    }

    // MARK: Beginning

    private mutating func begin(
        _ first: SecurityRequirement,
        _ standing: Standing,
        _ waiting: [SecurityRequirement],
        _ context: inout SecurityContext
    ) {
        let keyFailure = keyFailure(in: standing, context)
        if let key = usableBondKey(context), !first.pairsAgain, keyFailure == nil,
            first.required.isMet(by: key.strength)
        {
            switch role {
            case .central: encrypt(with: key, .bond, standing, waiting, context)
            case .peripheral: start(first, replacesBond: false, standing, waiting, &context)
            }
        } else if let keyFailure, !first.pairsAgain {
            refuse(first, keyFailure, standing, waiting, &context)
        } else if lacksKey(for: first, context) {
            refuse(first, .keyMissing, standing, waiting, &context)
        } else {
            pair(first, standing, waiting, &context)
        }
    }

    /// Whether, as the central, the bond has no key that could verify the peer, and the policy fails for a key that is missing.
    /// The app can still pair. A peripheral sends a Security Request instead, because the central may begin a pairing.
    private func lacksKey(for requirement: SecurityRequirement, _ context: SecurityContext) -> Bool {
        role == .central && isUnverified(context) && bondKey(context) == nil && policy.keyLoss == .fail
            && requirement.initiative == .demand && !requirement.pairsAgain
    }

    private mutating func pair(
        _ first: SecurityRequirement,
        _ standing: Standing,
        _ waiting: [SecurityRequirement],
        _ context: inout SecurityContext
    ) {
        let replacesBond = self.replacesBond(first, context)
        let obstacle = obstacle(to: first, context) ?? (replacesBond ? nil : obstacleToReplacement(context))
        if let obstacle { return refuse(first, obstacle, standing, waiting, &context) }
        start(first, replacesBond: replacesBond, standing, waiting.map(\.afterPairingBegan), &context)
    }

    /// Ends all callers; a peripheral that has asked for security is answered.
    private mutating func refuse(
        _ first: SecurityRequirement,
        _ error: SecurityError,
        _ standing: Standing,
        _ waiting: [SecurityRequirement],
        _ context: inout SecurityContext
    ) {
        if first.initiative == .peer {
            let isTooSoon = if case .repeatedAttempts = error { true } else { false }
            let reason: PairingFailedReason = isTooSoon ? .repeatedAttempts : .pairingNotSupported
            let steps = channel.cancel(reason)
            // The Security Manager forgets the request if the link is encrypted in the meantime.
            if steps.isEmpty, !channel.isClosed { sendPairingFailed(reason) }
            run(steps, &context)
        }
        fail(standing, waiting, error)
    }

    /// Sends a Pairing Request as the central, a Security Request as the peripheral.
    private mutating func start(
        _ first: SecurityRequirement,
        replacesBond: Bool,
        _ standing: Standing,
        _ waiting: [SecurityRequirement],
        _ context: inout SecurityContext
    ) {
        prepareChannel(for: first.required, context)
        switch role {
        case .central:
            beginPairing(first.initiative, replacesBond: replacesBond, standing, waiting, context)
        case .peripheral:
            state = .requesting(
                RequestWork(
                    before: standing,
                    initiative: first.initiative,
                    replacesBond: replacesBond,
                    waiting: waiting
                )
            )
        }
        let steps = channel.start(at: context.now, random: &context.random)
        if channel.isPairing { effects.append(.report(.pairingStarted(link, peer: context.peer))) }
        run(steps, &context)
    }

    /// Sets the parameters of the link's next pairing.
    mutating func prepareChannel(for required: RequiredSecurity = .encryption, _ context: SecurityContext) {
        var parameters = policy.pairingParameters
        if required.isAuthenticated { parameters.requiresAuthentication = true }
        if required.isSecureConnections { parameters.requiresSecureConnections = true }
        parameters.minimumKeySize = max(parameters.minimumKeySize, min(required.keySize, 16))
        channel.parameters = parameters
        channel.identity = context.localIdentity
    }

    // MARK: Obstacles

    /// Whether an app has chosen the peer that it wants to pair with. As the peripheral, it has not: any central can
    /// connect, also an attacker that connects again and again.
    func isChosenByApp(_ initiative: SecurityInitiative) -> Bool { initiative == .app && role == .central }

    /// The reason why no pairing may begin now, if there is one.
    private func obstacle(to requirement: SecurityRequirement, _ context: SecurityContext) -> SecurityError? {
        if channel.isClosed { return .timedOut }
        let initiative = requirement.initiative
        if requirement.required.isAuthenticated || policy.requiresAuthentication, !policy.canAuthenticate {
            return .refused("it needs authentication, and this device has no input or output")
        }
        if let wait = context.ownWait { return .repeatedAttempts(wait) }
        let isChosen = isChosenByApp(initiative) || initiative == .demand && role == .central
        if !isChosen, let wait = context.waitOfAll { return .repeatedAttempts(wait) }
        if let obstacle = obstacleOfAcceptList(to: context.peer) { return obstacle }
        switch initiative {
        case .app: break
        case .demand: if !policy.securesOnDemand { return .refused("the policy does not pair on demand") }
        case .peer:
            if !policy.pairsOnRequest { return .refused("the policy does not pair when a peripheral requests it") }
            if let obstacle = obstacleToPeersPairing(context) ?? obstacleToEveryModel(context) { return obstacle }
        }
        if policy.bonds, let limit = context.fullAt, context.bond == nil { return .tooManyBonds(limit) }
        return nil
    }

    /// The reason why each pairing that a peer asks for would be refused, whatever its association model; nil if one may
    /// succeed.
    private func obstacleToEveryModel(_ context: SecurityContext) -> SecurityError? {
        guard policy.ownOutOfBandData == nil, policy.peerOutOfBandData == nil else { return nil }
        if !context.hasPairingHandler, policy.justWorks != .always {
            return .refused("a peer requests it, and there is no pairing delegate to consent")
        }
        if policy.justWorks == .never, !policy.canAuthenticate {
            return .refused("the policy refuses just works, and this device has no input or output")
        }
        return nil
    }

    /// The reason why the peer must not begin a pairing now; nil if it may.
    ///
    /// A peer whose bond is proven on the link may always pair again, for a stronger key.
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

    /// The reason why a pairing that the app has not asked for must not replace the bond of the peer; nil if it may, or the
    /// peer is not bonded.
    func obstacleToReplacement(_ context: SecurityContext) -> SecurityError? {
        guard context.bondStrength != nil else { return nil }
        switch policy.bondReplacement {
        case .whenConsented: break
        case .whenProven where isIdentityVerified: break
        case .whenProven: return .refused("it would replace the bond of a peer that has not proven its identity")
        case .never: return .refused("it would replace a bond, and the policy lets no pairing do that")
        }
        return context.hasPairingHandler
            ? nil : .refused("it would replace a bond, and there is no pairing delegate to consent")
    }

    /// The reason why the peer at an address must not pair; nil if it may, or has yet to give its identity.
    func obstacleOfAcceptList(to peer: DeviceAddress) -> SecurityError? {
        guard peer.kind == .public || peer.kind == .randomStatic else { return nil }
        return obstacleOfAcceptList(toIdentity: peer)
    }

    /// The reason why a peer must not pair, by the identity that it has given at the end of the pairing.
    func obstacleOfAcceptList(toIdentity identity: DeviceAddress) -> SecurityError? {
        guard let list = policy.pairingAcceptList, !list.contains(identity) else { return nil }
        return .refused("\(identity) is not on the pairing accept list")
    }

    /// Whether the peer has been admitted: it is on the accept list, or has paired, or there is no list. A peer that is pairing
    /// under a private address is admitted when it has given its identity.
    func isAdmittedByAcceptList(_ context: SecurityContext) -> Bool {
        guard let list = policy.pairingAcceptList else { return true }
        return list.contains(context.peer) || context.bond?.strength != nil || transientKeys != nil
    }
}
