import BluetoothTypes
import SMP

// The deadlines of a link's security: the controller, the app and the peer may never answer.
extension BluetoothHost {
    /// Ends each operation of a link's security whose deadline has passed.
    func advanceSecurity(of link: Link, to now: Instant) {
        run(link.protection.channel.advance(to: now), on: link)
        if let due = link.protection.encryptionDeadline, due <= now { encryptionTimedOut(on: link) }
        if let due = link.protection.replacementDeadline, due <= now { replacementTimedOut(on: link) }
        advanceVerification(of: link, to: now)
    }

    // MARK: Centrals that claim to be bonded

    /// Starts or stops the time in which a central has to verify its identity. To be called when a link's keys, policy or
    /// encryption have changed.
    func superviseVerification(of link: Link) {
        guard link.role == .peripheral, link.protection.isRefusedByServer else {
            link.protection.verification = nil
            return
        }
        guard link.protection.verification == nil else { return }
        let timeout = max(link.protection.policy.identityVerificationTimeout, .zero)
        link.protection.verification = .init(
            requestDue: loop.now + min(.seconds(5), timeout / 2),
            deadline: loop.now + timeout
        )
        armTimer(of: link)
    }

    private func advanceVerification(of link: Link, to now: Instant) {
        guard let verification = link.protection.verification else { return }
        if let due = verification.requestDue, due <= now {
            link.protection.verification?.requestDue = nil
            if link.protection.loss == nil, link.protection.waiters.isEmpty { verifyIdentity(of: link) }
        }
        guard verification.deadline <= now else { return }
        if link.protection.isVerifying {
            // Each of these has a deadline of its own.
            link.protection.verification?.deadline = now + .seconds(5)
        } else {
            logger.info("\(link.peer) has not verified its identity in time")
            link.protection.verification = nil
            giveUp(link, .controller(.authenticationFailure), telling: .authenticationFailure)
        }
    }
}
