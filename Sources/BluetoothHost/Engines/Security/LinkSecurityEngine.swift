import BLECryptography
import BLEHCI
import BLESMP
import BluetoothTypes

/// The security of one link: encryption, pairing and the verification of a bonded peer's identity.
///
/// ## Overview
///
/// The engine decides about PDUs, the controller's keys, questions to the app and the outcome of calls. It performs
/// none of these itself: each input returns effects, which the caller performs in their order. The engine has no access
/// to handles, to other links or to the bond database. ``SecurityContext`` contains the facts that it needs.
///
/// ## Terms
///
/// - *Verified*: the link is encrypted with the key of the peer's bond (``isIdentityVerified``). So the peer is the
///   device whose address it uses.
/// - *Current encryption*: the key that encrypts the link now, whatever is in progress (``CurrentEncryption``).
/// - *Origin* of that key: the bond, a completed pairing without a bond (transient), or a pairing that has not
///   completed (``ActiveKey/Origin``). Only the first verifies the peer.
/// - *Gate*: whether this host's client, channels and isochronous streams may exchange PDUs with the peer (``Gate``).
///   It is *open* if the peer need not be verified (``needsVerification(_:)``). Behind a *closed* gate, operations wait
///   for the verification. A closed gate has *failed* if the verification has failed, or if this host ends the link.
///   Operations then end with the error.
/// - *Served*: the peer's client has access to apps' values, channels and streams
///   (``SecuritySnapshot/isIdentityUnverified``). A peer behind a closed gate is served in two cases only: the policy
///   serves unverified clients, or the key of a pairing that has not ended encrypts the link.
///
/// ## States
///
/// ``LinkSecurityState`` is the security of the link and the work in progress. Calls wait in a busy state only. Three
/// methods leave a busy state, and each handles the calls that wait:
///
/// - `settle` finishes the calls for which the link is secure enough, and begins the work for the first of the others.
/// - `fail` ends all of them with an error. The link stays.
/// - `endWork` ends all of them because the link ends.
///
/// Each busy state has a deadline, so no call waits forever. The exception is `awaitingBondDecision`: the bond database
/// decides at once.
///
/// ## End of the link
///
/// - ``disconnectionBegan(_:_:)`` is the input if the host ends the link. The state is `ending`.
/// - ``disconnect(_:_:)`` is called if the engine itself decides that the link must end. The state is `ending`, too,
///   and an effect makes the caller disconnect.
/// - ``linkEnded(_:_:)`` is the input if the link has ended, for whatever reason. The state is `ended`.
///
/// ## Publishing
///
/// After each input, the engine compares the security that attributes and channels may see with the published one. If
/// it differs, the last effect publishes it. The caller applies this effect before the others, so that calls which they
/// finish see the new security.
struct LinkSecurityEngine {
    /// The time within which a central with a bonded device's address has to encrypt the link.
    struct VerificationDeadline: Equatable {
        /// The time at which this host asks the central for encryption; nil if it has asked.
        var requestDue: Instant?
        /// The time at which the link is ended.
        var end: Instant
    }

    /// Maximum time for an encryption (Vol 6, Part B, 5.2). The event that reports its end may be lost.
    static let encryptionTimeout = Duration.seconds(40)
    /// Maximum time for the app to decide whether a bond is replaced.
    static let replacementConsentTimeout = Duration.seconds(30)

    let link: LinkIdentifier
    /// The identity of the peer when the link was made.
    let originalPeer: DeviceAddress
    // The methods in the extensions change these. The host only reads them.
    var state = LinkSecurityState.settled(.unencrypted)
    /// The state machine of the Security Manager Protocol.
    var securityManager: SecurityChannel<SwiftCryptography>
    var policy: SecurityPolicy
    /// The keys of a pairing without a bond: they last as long as the link.
    var transientKeys: Bond?
    /// As the peripheral: set while a central with a bonded device's address is not verified.
    var verificationDeadline: VerificationDeadline?
    /// The reason why the last attempt to verify the peer's identity has failed.
    var verificationFailure: SecurityError?
    /// Whether the last pairing on this link has completed with an unauthenticated key.
    var hasPairedWithoutAuthentication = false
    /// Whether the verification of the peer's identity begins once nothing else is in progress.
    var verifiesWhenSettled = false
    /// As the peripheral: the time at which a verification begins that had to wait, because a pairing has failed.
    var verificationRetry: Instant?
    /// The usable key of the bond when the engine last decided whether to verify the peer; nil if there was none.
    var lastConsideredKey: LongTermKey?
    /// As the peripheral: a Pairing Request that has come while the link was being encrypted. The controller may report
    /// the end of the encryption later than the data behind it.
    var heldPairingRequest: [UInt8]?
    /// The number of the last question to the app.
    var lastQuestionNumber: UInt64 = 0
    /// The effects of the current input so far.
    var effects: [SecurityEffect] = []
    /// The security that was published last. At first, it is that of the new link.
    private(set) var published = SecuritySnapshot()
    /// The earliest of the deadlines, if there is one. Stored, because packets of channels ask for it.
    private(set) var deadline: Instant?

    init(
        link: LinkIdentifier,
        securityManager: SecurityChannel<SwiftCryptography>,
        policy: SecurityPolicy,
        _ context: SecurityContext
    ) {
        self.link = link
        originalPeer = context.peer
        self.securityManager = securityManager
        self.policy = policy
        lastConsideredKey = usableBondKey(context)
        updateVerificationDeadline(context)
        deadline = earliestDeadline
        published = snapshot(context)
    }

    var role: SecurityChannel<SwiftCryptography>.Role { securityManager.role }

    /// The strength of the link's key; nil if the link is not encrypted.
    var strength: KeyStrength? { state.current.key?.strength }

    /// Whether the link is encrypted with the key of the peer's bond.
    var isIdentityVerified: Bool { state.current.key?.origin == .bond }

    private var earliestDeadline: Instant? {
        earliest(
            earliest(securityManager.deadline, state.deadline),
            earliest(verificationDeadline.map { $0.requestDue ?? $0.end }, verificationRetry)
        )
    }

    // MARK: Context

    /// Handles a change of the facts about the link: the peer's bond is new, changed or removed, or the controller has
    /// reported the address of this host.
    ///
    /// - Parameter ownAddress: the address that this host used when the link was made; nil if it has not changed.
    mutating func contextChanged(
        ownAddress: DeviceAddress? = nil,
        _ context: inout SecurityContext
    ) -> [SecurityEffect] {
        if let ownAddress { securityManager.ownAddress = ownAddress }
        // A key proves the identity of a bonded peer only as long as there is a bond.
        if context.bond == nil, isIdentityVerified { state.current.key?.origin = .transient }
        verifyIfKeyIsNew(context)
        return finishInput(&context)
    }

    /// Sets the policy for the link. A pairing in progress continues by the earlier one.
    mutating func setPolicy(_ policy: SecurityPolicy, _ context: inout SecurityContext) -> [SecurityEffect] {
        self.policy = policy
        lastConsideredKey = nil
        verifyIfKeyIsNew(context)
        return finishInput(&context)
    }

    /// Requests the verification of the peer if the gate has to close, or the bond has another usable key than at the
    /// last decision. A new policy counts as another key.
    private mutating func verifyIfKeyIsNew(_ context: SecurityContext) {
        guard needsVerification(context), published.gate == .open || usableBondKey(context) != lastConsideredKey else {
            return
        }
        verificationFailure = nil
        verifiesWhenSettled = true
    }

    /// Removes used out-of-band data from the link's policy. They may be used for one pairing only, whether it succeeds
    /// or fails (Vol 3, Part H, 2.3.5.6.4). Otherwise a peer could try again with what it has learned about them.
    ///
    /// The pairing that has used the data has a copy. Another pairing in progress that uses the same data is refused.
    ///
    /// - Parameter isOwn: whether this link's pairing has used them.
    mutating func outOfBandDataWasUsed(by used: PairingParameters, isOwn: Bool) {
        policy.forgetOutOfBandData(of: used)
        if case .pairing(var work) = state {
            if !isOwn, securityManager.parameters.sharesOutOfBandData(with: used) { work.isOutOfBandDataSpent = true }
            state = .pairing(work)
        } else {
            // A pairing that follows a Security Request uses the parameters of the time of the request.
            securityManager.parameters.forgetOutOfBandData(of: used)
        }
    }

    // MARK: Time

    /// Ends each operation whose deadline has passed.
    mutating func advance(_ context: inout SecurityContext) -> [SecurityEffect] {
        perform(securityManager.advance(to: context.now), &context)
        if let deadline = state.deadline, deadline <= context.now {
            switch state {
            case .encrypting, .pairing:
                effects.append(.unreportedEncryption)
                encryptionFailed(.timedOut, .unencrypted, &context)
            case .awaitingConsent(let work, let question, _):
                effects.append(.withdraw(question.number))
                rejectPairing(
                    work,
                    .refused("it would replace a bond, and the question was not answered within 30 s"),
                    context
                )
            case .settled, .requesting, .awaitingBondDecision, .ending, .ended: break
            }
        }
        advanceVerification(&context)
        retryVerification(context)
        return finishInput(&context)
    }

    // MARK: Ending

    /// Handles the end of the link: ends all work.
    ///
    /// - Returns: the effects, and the error of calls that waited for the link to be secure, or to be sent.
    mutating func linkEnded(
        _ reason: DisconnectionReason,
        _ context: inout SecurityContext
    ) -> ([SecurityEffect], HostError) {
        let error = errorOfEnd(reason, context)
        if hasEncryptionFailed(reason) { discardPrivateAddress() }
        if error == .security(.keyMissing) { effects.append(.report(.keyMissing(link, identity: context.peer))) }
        endWork(.ended(error), error, context)
        deadline = nil
        defer { effects = [] }
        return (effects, error)
    }

    /// Handles the host's decision to end the link: ends all work. The host itself disconnects.
    mutating func disconnectionBegan(_ error: HostError, _ context: inout SecurityContext) -> [SecurityEffect] {
        endWork(.ending(error), error, context)
        return finishInput(&context)
    }

    /// Ends the link, because the engine does not accept the peer. Calls fail with `error`.
    mutating func disconnect(_ error: HostError, _ context: SecurityContext) {
        endWork(.ending(error), error, context)
        effects.append(.disconnect(.authenticationFailure))
    }

    /// Ends the work in progress and the calls that wait for it.
    ///
    /// - Parameter end: `ending` or `ended`.
    private mutating func endWork(_ end: LinkSecurityState, _ error: HostError, _ context: SecurityContext) {
        if case .ended = state { return }
        let interrupted = state
        state = end
        verificationDeadline = nil
        verificationRetry = nil
        verifiesWhenSettled = false
        heldPairingRequest = nil
        for requirement in interrupted.waiting { finish(requirement, .failure(error)) }
        _ = securityManager.linkEnded()
        // A peer that disconnects has failed. One that this host disconnects has not.
        var countsAsAttempt = false
        if case .ended = end { countsAsAttempt = true }
        switch interrupted {
        case .pairing(let work):
            reportFailure(of: work, .pairing(.linkEnded), countsAsAttempt: countsAsAttempt, context)
        case .awaitingConsent(let work, let question, _):
            effects += [
                .withdraw(question.number), .report(.pairingFailed(link, peer: work.peer, .pairing(.linkEnded))),
            ]
            if countsAsAttempt { effects.append(.attemptFailed(work.peer, countsForAll: false)) }
        case .settled, .requesting, .encrypting, .awaitingBondDecision, .ending, .ended: break
        }
    }

    /// The error of calls that the end of the link fails.
    private func errorOfEnd(_ reason: DisconnectionReason, _ context: SecurityContext) -> HostError {
        guard case .encrypting(let work) = state else { return .disconnected(reason) }
        return switch reason {
        case .controller(.pinOrKeyMissing) where usesBondKey(work, context): .security(.keyMissing)
        // The first encrypted packet could not be decrypted (Vol 6, Part B, 5.1.3.1). That does not show that the peer
        // lost its bond: the keys may differ, or one of the controllers may have changed the order of its packets.
        case .controller(.connectionTerminatedDueToMICFailure):
            .security(.encryptionFailed(.connectionTerminatedDueToMICFailure))
        default: .disconnected(reason)
        }
    }

    // MARK: Publishing

    /// Finishes an input. Each input that returns effects calls this last, except ``linkEnded(_:_:)``:
    ///
    /// 1. Handles a Pairing Request that had to wait for the end of an encryption.
    /// 2. Begins the verification of the peer, if that was requested and nothing else is in progress. As the
    ///    peripheral, puts it off while the peer has to wait.
    /// 3. Forgets failures that no longer matter: those of a key that the bond no longer has, and of a verification
    ///    that is no longer needed.
    /// 4. Starts or stops the time within which a central has to verify its identity.
    /// 5. Stores the earliest deadline.
    /// 6. Publishes the security of the link, if it has changed.
    ///
    /// - Returns: the effects of the input.
    mutating func finishInput(_ context: inout SecurityContext) -> [SecurityEffect] {
        defer { effects = [] }
        if case .ended = state { return effects }
        processHeldPairingRequest(&context)
        verifyIfSettled(&context)
        if let failure = state.current.keyFailure, failure.key != bondKey(context) { state.current.keyFailure = nil }
        if !needsVerification(context) { verificationFailure = nil }
        updateVerificationDeadline(context)
        deadline = earliestDeadline
        let snapshot = snapshot(context)
        if snapshot != published {
            published = snapshot
            effects.append(.publish(snapshot))
        }
        return effects
    }

    /// The security that attributes and channels may see.
    private func snapshot(_ context: SecurityContext) -> SecuritySnapshot {
        if case .ending(let error) = state {
            return SecuritySnapshot(isIdentityUnverified: true, gate: .failed(error))
        }
        let isUnverified = needsVerification(context)
        let admitted = isAdmittedByAcceptList(context) ? strength : nil
        return SecuritySnapshot(
            strength: admitted.flatMap { policy.accepts($0) ? $0 : nil },
            hasKey: usableBondKey(context) != nil || transientKeys.flatMap { key(in: $0) } != nil,
            isIdentityUnverified: isUnverified && !policy.servesUnverifiedClients && !isServedWhilePairing,
            gate: isUnverified ? closedGate(context) : .open,
            isKeyTooShort: admitted.map { policy.refusesOnlySize(of: $0) } ?? false
        )
    }

    /// Whether the peer is served because the key of a pairing in progress encrypts the link. A client may send
    /// requests before the pairing has ended.
    private var isServedWhilePairing: Bool {
        switch state {
        case .pairing, .awaitingBondDecision, .awaitingConsent: state.current.key != nil
        case .settled, .requesting, .encrypting, .ending, .ended: false
        }
    }

    /// The gate to a peer that needs verification.
    private func closedGate(_ context: SecurityContext) -> Gate {
        if state.isBusy { return .verifying }
        let failure = keyFailure(in: state.current, context) ?? verificationFailure
        return failure.map { .failed(.security($0)) } ?? .unverified
    }

    // MARK: Consistency

    /// The error in the engine's state between two inputs, if there is one. The types exclude most errors.
    func contradiction(_ context: SecurityContext) -> String? {
        let isPairing = if case .pairing = state { true } else { false }
        if isPairing != securityManager.isPairing {
            return "the state and the Security Manager disagree about whether devices pair"
        }
        switch state {
        case .ended: return nil
        case .awaitingBondDecision: return "the bond database has not decided"
        case .settled, .ending:
            if securityManager.deadline != nil { return "the Security Manager waits, and nothing is in progress" }
        case .requesting, .pairing:
            if securityManager.deadline == nil { return "the Security Manager waits without a deadline" }
        case .encrypting, .awaitingConsent:
            if state.deadline == nil { return "the work in progress has no deadline" }
        }
        if deadline != earliestDeadline { return "the stored deadline is not the earliest" }
        return published == snapshot(context) ? nil : "the published security is outdated"
    }
}
