import BluetoothTypes
import Cryptography
import HCI
import SMP

/// The security of one link: encryption, pairing and the verification of a bonded peer's identity.
///
/// ## Overview
///
/// The engine decides about PDUs, the controller's keys, questions to the app and the outcome of calls. It performs
/// none of these itself: each input returns effects, which the caller performs in their order. The engine has no access
/// to handles, to other links or to the bond database. ``SecurityContext`` contains the facts that it needs.
///
/// ## States
///
/// ``LinkSecurityState`` is the security of the link and the work in progress. Calls wait in a busy state only. Three
/// methods leave a busy state, and each handles the calls that wait:
///
/// - `settle` finishes the calls for which the link is secure enough, and begins the work for the first of the others.
/// - `fail` ends all of them with an error. The link stays.
/// - `stop` ends all of them because the link ends.
///
/// Each busy state has a deadline, so no call waits forever. The exception is `storing`: the bond database decides at once.
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
    static let confirmationTimeout = Duration.seconds(30)

    let link: LinkIdentifier
    /// The identity of the peer when the link was made.
    let originalPeer: DeviceAddress
    // The extensions in other files change these. Nothing else does.
    var state = LinkSecurityState.settled(.unencrypted)
    var channel: SecurityChannel<SwiftCryptography>
    var policy: SecurityPolicy
    /// The keys of a pairing without a bond: they last as long as the link.
    var transientKeys: Bond?
    /// As the peripheral: set while a central with a bonded device's address is not verified.
    private(set) var verificationDeadline: VerificationDeadline?
    /// The reason why the last attempt to verify the peer's identity has failed.
    var verificationFailure: SecurityError?
    /// Whether the verification of the peer's identity begins once nothing else is in progress.
    var verifiesWhenSettled = false
    /// The bond's key, if there was a usable one, when the verification of the peer's identity was last considered.
    private var triedKey: LongTermKey?
    /// As the peripheral: a Pairing Request that has come while the link was being encrypted. The controller may report
    /// the end of the encryption later than the data behind it.
    var heldPairingRequest: [UInt8]?
    var lastQuestion: UInt64 = 0
    var effects: [SecurityEffect] = []
    /// The security that was published last. At first, it is that of the new link.
    private(set) var published = SecuritySnapshot()
    /// The earliest of the deadlines, if there is one. Stored, because packets of channels ask for it.
    private(set) var deadline: Instant?

    init(
        link: LinkIdentifier,
        channel: SecurityChannel<SwiftCryptography>,
        policy: SecurityPolicy,
        _ context: SecurityContext
    ) {
        self.link = link
        originalPeer = context.peer
        self.channel = channel
        self.policy = policy
        triedKey = usableBondKey(context)
        superviseVerification(context)
        deadline = earliestDeadline
        published = snapshot(context)
    }

    var role: SecurityChannel<SwiftCryptography>.Role { channel.role }

    /// The strength of the link's key; nil if the link is not encrypted.
    var strength: KeyStrength? { state.standing.key?.strength }

    /// Whether the link is encrypted with the key of the peer's bond.
    var isIdentityVerified: Bool { state.standing.key?.origin == .bond }

    private var earliestDeadline: Instant? {
        earliest(
            earliest(channel.deadline, state.deadline),
            verificationDeadline.map { $0.requestDue ?? $0.end }
        )
    }

    // MARK: Context

    /// Records that the peer has other keys than before, or none, or that its address is known now.
    ///
    /// - Parameter ownAddress: the address that this host used on the air when the link was made; nil if it is known.
    mutating func contextChanged(
        ownAddress: DeviceAddress? = nil,
        _ context: inout SecurityContext
    ) -> [SecurityEffect] {
        if let ownAddress { channel.ownAddress = ownAddress }
        // A key proves the identity of a bonded peer only as long as there is a bond.
        if context.bond == nil, isIdentityVerified { state.standing.key?.origin = .transient }
        verifyIfKeyIsNew(context)
        return takeEffects(&context)
    }

    /// Sets the policy for the link. A pairing in progress continues by the earlier one.
    mutating func setPolicy(_ policy: SecurityPolicy, _ context: inout SecurityContext) -> [SecurityEffect] {
        self.policy = policy
        triedKey = nil
        verifyIfKeyIsNew(context)
        return takeEffects(&context)
    }

    /// Has the peer verified if the bond's key is another one than that which was tried last, or the policy has changed.
    private mutating func verifyIfKeyIsNew(_ context: SecurityContext) {
        guard isUnverified(context), published.gate == .open || usableBondKey(context) != triedKey else { return }
        verificationFailure = nil
        verifiesWhenSettled = true
    }

    /// Removes out-of-band data that were used from the link's policy. They may be used for one pairing only, whether
    /// it succeeds or fails (Vol 3, Part H, 2.3.5.6.4). Otherwise a peer could try again with what it has learned about
    /// them.
    ///
    /// The pairing that has used the data has a copy. Another pairing in progress that uses the same data is refused.
    ///
    /// - Parameter isOwn: whether the link's own pairing has used them.
    mutating func outOfBandDataWasUsed(by used: PairingParameters, isOwn: Bool) {
        policy.forgetOutOfBandData(of: used)
        if case .pairing(var work) = state {
            if !isOwn, channel.parameters.sharesOutOfBandData(with: used) { work.isOutOfBandDataSpent = true }
            state = .pairing(work)
        } else {
            // A pairing that a central was asked for begins with the parameters of that time.
            channel.parameters.forgetOutOfBandData(of: used)
        }
    }

    // MARK: Keys

    func key(in bond: Bond) -> LongTermKey? { role == .central ? bond.centralKey : bond.peripheralKey }

    /// The key of the bond for this role.
    func bondKey(_ context: SecurityContext) -> LongTermKey? { context.bond.flatMap { key(in: $0) } }

    /// The key of the bond for this role, if the policy accepts it.
    func usableBondKey(_ context: SecurityContext) -> LongTermKey? {
        bondKey(context).flatMap { policy.accepts($0.strength) ? $0 : nil }
    }

    /// The failure of the bond's key on this link. The failure of a key that the bond no longer has does not count.
    func keyFailure(in standing: Standing, _ context: SecurityContext) -> SecurityError? {
        guard let failure = standing.keyFailure, failure.key == bondKey(context) else { return nil }
        return failure.error
    }

    /// Whether the peer has the address of a bonded device, and its identity is not verified (BLESA).
    ///
    /// The bond may have no key for this role, since LE legacy pairing gives each role a key of its own. The peer's identity is
    /// then verified by another pairing only.
    func isUnverified(_ context: SecurityContext) -> Bool {
        policy.encryptsBondedLinks && context.bond?.strength != nil && state.standing.key?.isTrusted != true
    }

    /// Whether an encryption uses the key that the bond has now.
    func isOfBond(_ work: EncryptionWork, _ context: SecurityContext) -> Bool {
        work.origin == .bond && work.key == bondKey(context)
    }

    // MARK: Time

    /// Ends each operation whose deadline has passed.
    mutating func advance(_ context: inout SecurityContext) -> [SecurityEffect] {
        run(channel.advance(to: context.now), &context)
        if let deadline = state.deadline, deadline <= context.now {
            switch state {
            case .encrypting, .pairing:
                effects.append(.unreportedEncryption)
                encryptionFailed(.timedOut, .unencrypted, &context)
            case .confirming(let work, let question, _):
                effects.append(.withdraw(question.number))
                reject(
                    work,
                    .refused("it would replace a bond, and the question was not answered within 30 s"),
                    context
                )
            case .settled, .requesting, .storing, .ending, .ended: break
            }
        }
        advanceVerification(&context)
        return takeEffects(&context)
    }

    private mutating func advanceVerification(_ context: inout SecurityContext) {
        guard let current = verificationDeadline else { return }
        if let due = current.requestDue, due <= context.now {
            verificationDeadline?.requestDue = nil
            if keyFailure(in: state.standing, context) == nil, state.waiting.isEmpty { add(.verification, &context) }
        }
        guard current.end <= context.now else { return }
        if state.mayVerifyIdentity {
            // Each of these states has a deadline of its own.
            verificationDeadline?.end = context.now + .seconds(5)
        } else {
            endLink(.disconnected(.controller(.authenticationFailure)), context)
        }
    }

    /// Starts or stops the time within which a central has to verify its identity.
    private mutating func superviseVerification(_ context: SecurityContext) {
        if case .ending = state { return }
        guard role == .peripheral, isUnverified(context), !policy.servesUnverifiedClients else {
            verificationDeadline = nil
            return
        }
        guard verificationDeadline == nil else { return }
        let timeout = max(policy.identityVerificationTimeout, .zero)
        verificationDeadline = VerificationDeadline(
            requestDue: context.now + min(.seconds(5), timeout / 2),
            end: context.now + timeout
        )
    }

    // MARK: Ending

    /// Ends all work, because the link has ended.
    ///
    /// - Returns: the effects, and the error of calls that waited for the link to be secure, or to be sent.
    mutating func linkEnded(
        _ reason: DisconnectionReason,
        _ context: inout SecurityContext
    ) -> ([SecurityEffect], HostError) {
        let error = errorOfEnd(reason, context)
        if error == .security(.keyMissing) { effects.append(.report(.keyMissing(link, identity: context.peer))) }
        stop(.ended(error), error, context)
        deadline = nil
        defer { effects = [] }
        return (effects, error)
    }

    /// Ends all work, because the caller ends the link for a reason of its own.
    mutating func linkWillEnd(_ error: HostError, _ context: inout SecurityContext) -> [SecurityEffect] {
        stop(.ending(error), error, context)
        return takeEffects(&context)
    }

    /// Ends the link to a peer that is not, or may not be, the device that it claims to be. Calls fail with `error`.
    mutating func endLink(_ error: HostError, _ context: SecurityContext) {
        stop(.ending(error), error, context)
        effects.append(.disconnect(.authenticationFailure))
    }

    private mutating func stop(_ end: LinkSecurityState, _ error: HostError, _ context: SecurityContext) {
        if case .ended = state { return }
        let before = state
        state = end
        verificationDeadline = nil
        verifiesWhenSettled = false
        heldPairingRequest = nil
        for requirement in before.waiting { finish(requirement, .failure(error)) }
        _ = channel.linkEnded()
        // A peer that disconnects has failed. One that this host disconnects has not.
        var countsAsAttempt = false
        if case .ended = end { countsAsAttempt = true }
        switch before {
        case .pairing(let work):
            reportFailure(of: work, .pairing(.linkEnded), countsAsAttempt: countsAsAttempt, context)
        case .confirming(let work, let question, _):
            effects.append(.withdraw(question.number))
            if countsAsAttempt { effects.append(.attemptFailed(work.peer, countsForAll: false)) }
        case .settled, .requesting, .encrypting, .storing, .ending, .ended: break
        }
    }

    private func errorOfEnd(_ reason: DisconnectionReason, _ context: SecurityContext) -> HostError {
        guard case .encrypting(let work) = state else { return .disconnected(reason) }
        return switch reason {
        case .controller(.pinOrKeyMissing) where isOfBond(work, context): .security(.keyMissing)
        // The first encrypted packet could not be decrypted (Vol 6, Part B, 5.1.3.1). That does not show that the peer lost
        // its bond: the keys may differ, or one of the controllers may have changed the order of its packets.
        case .controller(.connectionTerminatedDueToMICFailure):
            .security(.encryptionFailed(.connectionTerminatedDueToMICFailure))
        default: .disconnected(reason)
        }
    }

    // MARK: Publishing

    /// Returns the effects of an input. The last one publishes the security of the link, if that has changed.
    mutating func takeEffects(_ context: inout SecurityContext) -> [SecurityEffect] {
        defer { effects = [] }
        if case .ended = state { return effects }
        takeHeldPairingRequest(&context)
        verifyIfSettled(&context)
        if let failure = state.standing.keyFailure, failure.key != bondKey(context) { state.standing.keyFailure = nil }
        if !isUnverified(context) { verificationFailure = nil }
        superviseVerification(context)
        deadline = earliestDeadline
        let snapshot = snapshot(context)
        if snapshot != published {
            published = snapshot
            effects.append(.publish(snapshot))
        }
        return effects
    }

    /// Begins the verification that was left until nothing else is in progress.
    private mutating func verifyIfSettled(_ context: inout SecurityContext) {
        guard verifiesWhenSettled, case .settled(let standing) = state else { return }
        verifiesWhenSettled = false
        triedKey = usableBondKey(context)
        guard isUnverified(context), keyFailure(in: standing, context) == nil,
            role == .central || policy.requestsEncryption
        else { return }
        add(.verification, &context)
    }

    /// The security that attributes and channels may see.
    private func snapshot(_ context: SecurityContext) -> SecuritySnapshot {
        if case .ending(let error) = state {
            return SecuritySnapshot(isIdentityUnverified: true, gate: .failed(error))
        }
        let isUnverified = isUnverified(context)
        return SecuritySnapshot(
            strength: strength.flatMap { policy.accepts($0) && isAdmittedByAcceptList(context) ? $0 : nil },
            hasKey: usableBondKey(context) != nil || transientKeys.flatMap { key(in: $0) } != nil,
            isIdentityUnverified: isUnverified && !policy.servesUnverifiedClients && !isServedWhilePairing,
            gate: isUnverified ? closedGate(context) : .open
        )
    }

    /// Whether the peer is served because the key of a pairing in progress encrypts the link. A client may send requests
    /// before the pairing has ended.
    private var isServedWhilePairing: Bool {
        switch state {
        case .pairing, .storing, .confirming: state.standing.key != nil
        case .settled, .requesting, .encrypting, .ending, .ended: false
        }
    }

    private func closedGate(_ context: SecurityContext) -> Gate {
        if state.isBusy { return .verifying }
        let failure = keyFailure(in: state.standing, context) ?? verificationFailure
        return failure.map { .failed(.security($0)) } ?? .unverified
    }

    // MARK: Consistency

    /// The error in the engine's state between two inputs, if there is one. The types exclude most errors.
    func contradiction(_ context: SecurityContext) -> String? {
        let isPairing = if case .pairing = state { true } else { false }
        if isPairing != channel.isPairing { return "state and Security Manager do not agree whether devices pair" }
        switch state {
        case .ended: return nil
        case .storing: return "the bond database has not decided"
        case .settled, .ending: if channel.deadline != nil { return "the Security Manager waits for no call" }
        case .requesting, .pairing:
            if channel.deadline == nil { return "the Security Manager waits without a deadline" }
        case .encrypting, .confirming:
            if state.deadline == nil { return "the work in progress has no deadline" }
        }
        if deadline != earliestDeadline { return "the stored deadline is not the earliest" }
        return published == snapshot(context) ? nil : "the published security is outdated"
    }
}
