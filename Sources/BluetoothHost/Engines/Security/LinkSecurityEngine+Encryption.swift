import BLEHCI
import BLESMP
import BluetoothTypes

// Encryption with the key of a bond or of a pairing.
extension LinkSecurityEngine {
    // MARK: Beginning

    /// As the central: has the controller encrypt the link, or change its key.
    mutating func encrypt(
        with key: LongTermKey,
        _ origin: ActiveKey.Origin,
        _ current: CurrentEncryption,
        _ waiting: [SecurityRequirement],
        _ context: SecurityContext
    ) {
        state = .encrypting(
            EncryptionWork(
                key: key,
                origin: origin,
                current: current,
                deadline: context.now + LinkSecurityEngine.encryptionTimeout,
                waiting: waiting
            )
        )
        effects.append(.enableEncryption(key))
    }

    /// As the peripheral: the central begins to encrypt with the key that EDIV and Rand identify.
    ///
    /// During a pairing, the controller gets only the key of that pairing. Otherwise it gets a key that both devices
    /// have from an earlier pairing.
    mutating func keyRequested(
        random: UInt64,
        diversifier: UInt16,
        _ context: inout SecurityContext
    ) -> [SecurityEffect] {
        let key = keyForRequest(context) { $0.encryptedDiversifier == diversifier && $0.randomNumber == random }
        if let key {
            let deadline = context.now + LinkSecurityEngine.encryptionTimeout
            if case .pairing(var work) = state {
                work.encryption = .inProgress(key, deadline: deadline)
                state = .pairing(work)
            } else {
                // This is the central's answer to a Security Request. So the request has no time limit any longer.
                perform(securityManager.encryptionChanged(to: nil, at: context.now, random: &context.random), &context)
                state = .encrypting(
                    EncryptionWork(
                        key: key,
                        origin: key == bondKey(context) ? .bond : .transient,
                        current: state.current,
                        deadline: deadline,
                        waiting: state.waiting
                    )
                )
            }
        }
        effects.append(.keyReply(key))
        if key == nil {
            switch state {
            case .settled, .requesting, .encrypting, .pairing: discardPrivateAddress()
            // This host gives no key now, whichever the central has. That shows no failure.
            case .awaitingBondDecision, .awaitingConsent, .ending, .ended: break
            }
        }
        return finishInput(&context)
    }

    /// - Parameter isNamed: whether the central's EDIV and Rand identify a key.
    private func keyForRequest(_ context: SecurityContext, where isNamed: (LongTermKey) -> Bool) -> LongTermKey? {
        guard role == .peripheral else { return nil }
        switch state {
        case .pairing(let work):
            guard case .expected(let key) = work.encryption, isNamed(key) else { return nil }
            return key
        case .settled, .requesting, .encrypting:
            let candidates = [transientKeys.flatMap { key(in: $0) }, usableBondKey(context)]
            return candidates.lazy.compactMap { $0 }.first(where: isNamed)
        case .awaitingBondDecision, .awaitingConsent, .ending, .ended: return nil
        }
    }

    // MARK: Ending

    /// Handles the report that the link is encrypted or not, that its key was changed, or that the attempt has failed.
    ///
    /// - Parameter isOn: whether the link is encrypted now, if `status` is a success.
    mutating func encryptionChanged(
        _ status: HCIErrorCode,
        isOn: Bool,
        _ context: inout SecurityContext
    ) -> [SecurityEffect] {
        if case .ending = state { return [] }
        switch (keyInController, status == .success && isOn) {
        case (let key?, true): encryptionStarted(with: key, &context)
        case (.some, false): encryptionFailed(LinkSecurityEngine.error(of: status), .unencrypted, &context)
        case (nil, true): if strength == nil { effects.append(.unknownEncryption) }
        case (nil, false): if status == .success, strength != nil { encryptionEnded(&context) }
        }
        return finishInput(&context)
    }

    /// As the central: the controller has refused the command that starts encryption with this key. The link is as it
    /// was.
    mutating func encryptionRefused(
        _ key: LongTermKey,
        _ status: HCIErrorCode,
        _ context: inout SecurityContext
    ) -> [SecurityEffect] {
        guard keyInController == key else { return [] }
        encryptionFailed(LinkSecurityEngine.error(of: status), state.current, &context)
        return finishInput(&context)
    }

    /// The key that the controller was given, if it has not reported yet whether the link is encrypted with it.
    private var keyInController: LongTermKey? {
        switch state {
        case .encrypting(let work): work.key
        case .pairing(let work): if case .inProgress(let key, _) = work.encryption { key } else { nil }
        case .settled, .requesting, .awaitingBondDecision, .awaitingConsent, .ending, .ended: nil
        }
    }

    /// The error of an encryption that failed with this status.
    ///
    /// PIN or Key Missing means that the peer does not have the key (Vol 6, Part B, 5.1.3.1). Some controllers report
    /// Authentication Failure instead.
    private static func error(of status: HCIErrorCode) -> SecurityError {
        status == .pinOrKeyMissing || status == .authenticationFailure ? .keyMissing : .encryptionFailed(status)
    }

    /// Handles the report that the link is encrypted with a key that this host gave.
    private mutating func encryptionStarted(with key: LongTermKey, _ context: inout SecurityContext) {
        effects += [.report(.encryptionChanged(link, key.strength)), .setAuthenticatedPayloadTimeout]
        let earlierKey = state.current.key
        var current = CurrentEncryption(key: ActiveKey(strength: key.strength, origin: .incompletePairing))
        current.key?.followsVerifiedKey = earlierKey?.origin == .bond || earlierKey?.followsVerifiedKey == true
        // A key of the bond that has failed is not tried again only because another key works.
        current.keyFailure = key == bondKey(context) ? nil : state.current.keyFailure
        switch state {
        case .pairing(var work):
            work.current = current
            // The central may refresh the encryption before the pairing has ended.
            work.encryption = role == .peripheral ? .expected(key) : .idle
            state = .pairing(work)
            informSecurityManager(of: key.strength, &context)
        case .encrypting(let work):
            // The bond may have been removed or replaced since the encryption began.
            if key == bondKey(context) {
                current.key?.origin = .bond
                effects.append(.identityVerified)
            } else if work.origin == .transient {
                current.key?.origin = .transient
            }
            state = .settled(current)
            informSecurityManager(of: key.strength, &context)
            if current.key?.origin == .incompletePairing, !isAdmittedByAcceptList(context) {
                let error = SecurityError.refused("the peer has not given its identity")
                return failAndDisconnect(current, work.waiting, error, context)
            }
            // The central may encrypt with a key that both devices have instead of the pairing that was requested.
            for requirement in work.waiting where requirement.lacksNewPairing {
                finish(requirement, .failure(.security(.insufficient(key.strength))))
            }
            settle(current, work.waiting.filter { !$0.lacksNewPairing }, &context)
        case .settled, .requesting, .awaitingBondDecision, .awaitingConsent, .ending, .ended: break
        }
    }

    /// Handles an encryption that has failed.
    ///
    /// - Parameter current: the encryption of the link after the failure.
    mutating func encryptionFailed(
        _ error: SecurityError,
        _ current: CurrentEncryption,
        _ context: inout SecurityContext
    ) {
        discardPrivateAddress()
        if state.current.key != nil, current.key == nil {
            effects.append(.report(.encryptionChanged(link, nil)))
            verifiesWhenSettled = true
        }
        var current = current
        current.keyFailure = state.current.keyFailure
        switch state {
        case .pairing(var work):
            work.encryption = .idle
            work.current = current
            state = .pairing(work)
            informSecurityManager(of: nil, &context)
        case .encrypting(let work):
            if work.origin == .bond { current.keyFailure = KeyFailure(key: work.key, error: error) }
            state = .settled(current)
            informSecurityManager(of: nil, &context)
            switch work.origin {
            // The bond was replaced during the encryption. Its new key may work.
            case .bond where !usesBondKey(work, context): settle(current, work.waiting, &context)
            case .bond: bondKeyFailed(error, current, work.waiting, &context)
            // The key was not a bond's, so the peer has lost no bond.
            case .transient:
                let failure = error == .keyMissing ? SecurityError.encryptionFailed(.pinOrKeyMissing) : error
                failUnanswered(failure, current, work.waiting, &context)
            // The calls began to wait after the pairing had failed. Nothing was begun for them.
            case .incompletePairing: settle(current, work.waiting, &context)
            }
        case .settled, .requesting, .awaitingBondDecision, .awaitingConsent, .ending, .ended: break
        }
    }

    /// Whether the end of the link for this reason shows that an encryption has failed.
    func hasEncryptionFailed(_ reason: DisconnectionReason) -> Bool {
        switch reason {
        case .controller(.connectionTerminatedDueToMICFailure), .controller(.pinOrKeyMissing): keyInController != nil
        default: false
        }
    }

    /// Has the private addresses of this host replaced, if it uses one on this link. An encryption has failed: the
    /// address may have led an attacker to this host (Vol 3, Part C, 10.6).
    mutating func discardPrivateAddress() {
        guard securityManager.ownAddress.kind == .resolvablePrivate else { return }
        effects.append(.discardPrivateAddress)
    }

    /// Ends the calls that waited for an encryption with the bond's key. If the key is missing, the policy may let the
    /// devices pair again.
    private mutating func bondKeyFailed(
        _ error: SecurityError,
        _ current: CurrentEncryption,
        _ waiting: [SecurityRequirement],
        _ context: inout SecurityContext
    ) {
        guard error == .keyMissing else { return failUnanswered(error, current, waiting, &context) }
        effects.append(.report(.keyMissing(link, identity: context.peer)))
        guard policy.keyLoss == .askToPairAgain, !waiting.isEmpty else {
            return failUnanswered(error, current, waiting, &context)
        }
        var waiting = waiting
        waiting[0].needsNewPairing = true
        settle(current, waiting, &context)
    }

    /// Ends all callers with an error. Answers a Security Request that has got no answer with Pairing Failed.
    private mutating func failUnanswered(
        _ error: SecurityError,
        _ current: CurrentEncryption,
        _ waiting: [SecurityRequirement],
        _ context: inout SecurityContext
    ) {
        guard let request = waiting.first(where: { $0.caller == .peer }), securityManager.isSecurityRequestPending
        else {
            return fail(current, waiting, error)
        }
        failAndAnswerPeer(request, error, current, waiting, &context)
    }

    /// Encryption has ended on a link that stays.
    private mutating func encryptionEnded(_ context: inout SecurityContext) {
        effects.append(.report(.encryptionChanged(link, nil)))
        state.current.key = nil
        verifiesWhenSettled = true
        switch state {
        case .requesting(let work):
            informSecurityManager(of: nil, &context)
            settle(work.current, work.waiting, &context)
        case .pairing: informSecurityManager(of: nil, &context)
        case .settled, .encrypting, .awaitingBondDecision, .awaitingConsent, .ending, .ended: break
        }
    }

    /// Passes the key that encrypts the link now to the Security Manager; nil if the link is not encrypted.
    private mutating func informSecurityManager(of strength: KeyStrength?, _ context: inout SecurityContext) {
        perform(securityManager.encryptionChanged(to: strength, at: context.now, random: &context.random), &context)
    }
}
