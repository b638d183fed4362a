import BLESMP
import BluetoothTypes

// When the verification of a bonded peer's identity begins, and how long a central may take.
extension LinkSecurityEngine {
    // MARK: The beginning

    /// Begins the verification that was requested, if nothing else is in progress. As the peripheral, puts it off while
    /// no Security Request may be sent.
    mutating func verifyIfSettled(_ context: inout SecurityContext) {
        guard verifiesWhenSettled, case .settled(let current) = state else { return }
        verifiesWhenSettled = false
        verificationRetry = nil
        lastConsideredKey = usableBondKey(context)
        guard encryptsWhenSettled(context), keyFailure(in: current, context) == nil else { return }
        if let wait = waitBeforeRequest(context) {
            verificationRetry = context.now + wait
        } else {
            add(.verification, &context)
        }
    }

    /// Requests the verification that was put off, if its time has come. It also follows a Security Request that an app
    /// cancels. If something else is in progress, its end decides.
    mutating func retryVerification(_ context: SecurityContext) {
        guard let retry = verificationRetry, retry <= context.now else { return }
        verificationRetry = nil
        switch state {
        case .settled, .requesting: verifiesWhenSettled = true
        case .encrypting, .pairing, .awaitingBondDecision, .awaitingConsent, .ending, .ended: break
        }
    }

    /// As the peripheral: the time before a Security Request may be sent after a failed pairing with the peer (Vol 3,
    /// Part H, 2.3.6). It is nil if one may be sent now. It is also nil if the Security Manager is closed: then each
    /// request fails at once.
    ///
    /// The context does not include a failure of the current input. After that, the wait is at least the shortest one.
    func waitBeforeRequest(_ context: SecurityContext) -> Duration? {
        guard role == .peripheral, !securityManager.isClosed else { return nil }
        if let wait = context.waitOfPeer { return wait }
        let hasFailedNow = effects.contains { if case .attemptFailed = $0 { true } else { false } }
        return hasFailedNow ? PairingAttempts.shortest : nil
    }

    // MARK: The time limit

    /// Asks the central for encryption, and later ends the link, if it does not verify its identity.
    mutating func advanceVerification(_ context: inout SecurityContext) {
        guard let pending = verificationDeadline else { return }
        if let due = pending.requestDue, due <= context.now {
            let retry = waitBeforeRequest(context).map { context.now + $0 }
            verificationDeadline?.requestDue = retry.flatMap { $0 < pending.end ? $0 : nil }
            if retry == nil, keyFailure(in: state.current, context) == nil, state.waiting.isEmpty {
                add(.verification, &context)
            }
        }
        guard pending.end <= context.now else { return }
        if state.mayVerifyIdentity {
            // The work in progress has its own deadline. Its end decides.
            verificationDeadline?.end = context.now + .seconds(5)
        } else {
            disconnect(.disconnected(.controller(.authenticationFailure)), context)
        }
    }

    /// Starts the time within which a central has to verify its identity, or stops it if the central need not do that.
    mutating func updateVerificationDeadline(_ context: SecurityContext) {
        if case .ending = state { return }
        guard role == .peripheral, needsVerification(context), !policy.servesUnverifiedClients else {
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
}
