import BluetoothTypes
import HCI
import SMP

// Encryption with the key of a bond or of a pairing.
extension LinkSecurityEngine {
    // MARK: Beginning

    /// As the central: has the controller encrypt the link, or change its key.
    mutating func encrypt(
        with key: LongTermKey,
        _ origin: ActiveKey.Origin,
        _ before: Standing,
        _ waiting: [SecurityRequirement],
        _ context: SecurityContext
    ) {
        state = .encrypting(
            EncryptionWork(
                key: key,
                origin: origin,
                before: before,
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
                work.cipher = .starting(key, deadline: deadline)
                state = .pairing(work)
            } else {
                // The central responds to a Security Request by this, so the request has no time limit any more.
                run(channel.encryptionChanged(to: nil, at: context.now, random: &context.random), &context)
                state = .encrypting(
                    EncryptionWork(
                        key: key,
                        origin: key == bondKey(context) ? .bond : .transient,
                        before: state.standing,
                        deadline: deadline,
                        waiting: state.waiting
                    )
                )
            }
        }
        effects.append(.keyReply(key))
        return takeEffects(&context)
    }

    private func keyForRequest(_ context: SecurityContext, where isNamed: (LongTermKey) -> Bool) -> LongTermKey? {
        guard role == .peripheral else { return nil }
        switch state {
        case .pairing(let work):
            guard case .expecting(let key) = work.cipher, isNamed(key) else { return nil }
            return key
        case .settled, .requesting, .encrypting:
            let candidates = [transientKeys.flatMap { key(in: $0) }, usableBondKey(context)]
            return candidates.lazy.compactMap { $0 }.first(where: isNamed)
        case .storing, .confirming, .ending, .ended: return nil
        }
    }

    // MARK: Ending

    /// Handles the report that the link is encrypted or not, that its key was changed, or that the attempt has failed.
    ///
    /// - Parameter isOn: whether the link is encrypted now, if `status` is a success.
    mutating func encryptionChanged(
        _ status: HCI.ErrorCode,
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
        return takeEffects(&context)
    }

    /// As the central: the controller has refused the command that starts encryption with this key. The link is as it was.
    mutating func encryptionRefused(
        _ key: LongTermKey,
        _ status: HCI.ErrorCode,
        _ context: inout SecurityContext
    ) -> [SecurityEffect] {
        guard keyInController == key else { return [] }
        encryptionFailed(LinkSecurityEngine.error(of: status), state.standing, &context)
        return takeEffects(&context)
    }

    /// The key that the controllers were given and have not reported about.
    private var keyInController: LongTermKey? {
        switch state {
        case .encrypting(let work): work.key
        case .pairing(let work): if case .starting(let key, _) = work.cipher { key } else { nil }
        case .settled, .requesting, .storing, .confirming, .ending, .ended: nil
        }
    }

    /// A peer without the key reports the former (Vol 6, Part B, 5.1.3.1); some controllers report the latter.
    private static func error(of status: HCI.ErrorCode) -> SecurityError {
        status == .pinOrKeyMissing || status == .authenticationFailure ? .keyMissing : .encryptionFailed(status)
    }

    private mutating func encryptionStarted(with key: LongTermKey, _ context: inout SecurityContext) {
        effects += [.report(.encryptionChanged(link, key.strength)), .watchAuthenticatedPayload]
        let before = state.standing.key
        var standing = Standing(key: ActiveKey(strength: key.strength, origin: .unsaved))
        standing.key?.followsVerifiedKey = before?.origin == .bond || before?.followsVerifiedKey == true
        // The bond's key is not tried again because another one works.
        standing.keyFailure = key == bondKey(context) ? nil : state.standing.keyFailure
        switch state {
        case .pairing(var work):
            work.before = standing
            work.cipher = .idle
            state = .pairing(work)
            tellChannel(key.strength, &context)
        case .encrypting(let work):
            // The bond may have been removed or replaced since the encryption began.
            if key == bondKey(context) {
                standing.key?.origin = .bond
                effects.append(.trusted)
            } else if work.origin == .transient {
                standing.key?.origin = .transient
            }
            state = .settled(standing)
            tellChannel(key.strength, &context)
            if standing.key?.origin == .unsaved, !isAdmittedByAcceptList(context) {
                fail(standing, work.waiting, .refused("the peer has not given its identity"))
                return endLink(.security(.refused("the peer has not given its identity")), context)
            }
            settle(standing, work.waiting, &context)
        case .settled, .requesting, .storing, .confirming, .ending, .ended: break
        }
    }

    /// - Parameter standing: the security that the link has now.
    mutating func encryptionFailed(
        _ error: SecurityError,
        _ standing: Standing,
        _ context: inout SecurityContext
    ) {
        if state.standing.key != nil, standing.key == nil {
            effects.append(.report(.encryptionChanged(link, nil)))
            verifiesWhenSettled = true
        }
        var standing = standing
        standing.keyFailure = state.standing.keyFailure
        switch state {
        case .pairing(var work):
            work.cipher = .idle
            work.before = standing
            state = .pairing(work)
            tellChannel(nil, &context)
        case .encrypting(let work):
            if work.origin == .bond { standing.keyFailure = KeyFailure(key: work.key, error: error) }
            state = .settled(standing)
            tellChannel(nil, &context)
            switch work.origin {
            // The bond was replaced meanwhile: its new key may work.
            case .bond where !isOfBond(work, context): settle(standing, work.waiting, &context)
            case .bond: bondKeyFailed(error, standing, work.waiting, &context)
            // The failure does not show that the peer has lost a bond: the key was not a bond's.
            case .transient:
                fail(standing, work.waiting, error == .keyMissing ? .encryptionFailed(.pinOrKeyMissing) : error)
            // The calls have waited for the end of a failed pairing's encryption. Nothing was begun for them.
            case .unsaved: settle(standing, work.waiting, &context)
            }
        case .settled, .requesting, .storing, .confirming, .ending, .ended: break
        }
    }

    private mutating func bondKeyFailed(
        _ error: SecurityError,
        _ standing: Standing,
        _ waiting: [SecurityRequirement],
        _ context: inout SecurityContext
    ) {
        guard error == .keyMissing else { return fail(standing, waiting, error) }
        effects.append(.report(.keyMissing(link, identity: context.peer)))
        guard policy.keyLoss == .askToPairAgain, !waiting.isEmpty else { return fail(standing, waiting, error) }
        var waiting = waiting
        waiting[0].pairsAgain = true
        settle(standing, waiting, &context)
    }

    /// Encryption has ended on a link that stays.
    private mutating func encryptionEnded(_ context: inout SecurityContext) {
        effects.append(.report(.encryptionChanged(link, nil)))
        state.standing.key = nil
        verifiesWhenSettled = true
        switch state {
        case .requesting(let work):
            tellChannel(nil, &context)
            settle(work.before, work.waiting, &context)
        case .pairing: tellChannel(nil, &context)
        case .settled, .encrypting, .storing, .confirming, .ending, .ended: break
        }
    }

    private mutating func tellChannel(_ strength: KeyStrength?, _ context: inout SecurityContext) {
        run(channel.encryptionChanged(to: strength, at: context.now, random: &context.random), &context)
    }
}
