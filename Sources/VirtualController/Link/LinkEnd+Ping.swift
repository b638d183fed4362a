import BluetoothTypes
import HCI

/// The timer for packets with a valid MIC on an encrypted link (Vol 6, Part B, 5.4). Such a packet proves that the peer has
/// the key.
///
/// The timer runs while the host wants to be told that it has expired. A link whose host does not costs nothing.
struct AuthenticatedPayloadTimer {
    /// In units of 10 ms; 30 s is what each link begins with (Vol 4, Part E, 7.3.93).
    var timeout: UInt16 = 3000
    /// When the last packet with a valid MIC came, or the timer began or expired.
    var lastProof = Instant(nanoseconds: 0)
    var isRunning = false
    /// Counts the times that the timer was set, so that earlier settings are ignored.
    var generation: UInt64 = 0

    var duration: Duration { .milliseconds(10 * Int(timeout)) }
    var deadline: Instant { lastProof + duration }
}

/// The LE Ping procedure, and what it is for (Vol 6, Part B, 5.1.8 and 5.4).
extension LinkEnd {
    /// Sets the timer, which begins again.
    ///
    /// - Parameter timeout: in units of 10 ms.
    /// - Returns: false where that is less than the time in which a peripheral has to listen once (Vol 4, Part E, 7.3.94).
    func setAuthenticatedPayloadTimeout(_ timeout: UInt16) -> Bool {
        guard timeout > 0, .milliseconds(10 * Int(timeout)) >= listeningTime else { return false }
        authenticatedPayload.timeout = timeout
        authenticatedPayload.lastProof = air.now
        authenticatedPayload.isRunning = false
        watchAuthenticatedPayload()
        return true
    }

    /// Lets the timer run, if the link is encrypted and the host wants to be told.
    func watchAuthenticatedPayload() {
        guard !isGone, !authenticatedPayload.isRunning, encryption.state == .on,
            controller.configuration.features.contains(.ping),
            controller.host.wants(code: AuthenticatedPayloadTimeoutExpired.code)
        else { return }
        authenticatedPayload.lastProof = max(authenticatedPayload.lastProof, air.now)
        authenticatedPayload.isRunning = true
        authenticatedPayload.generation += 1
        setPayloadTimer()
    }

    /// The peer wants to know that this side has the key.
    func answerPing() {
        guard !controller.faults.ignoresPings else { return }
        let isKnown = controller.configuration.features.contains(.ping)
        send(isKnown ? .pingResponse : .reject(.ping, .unsupportedRemoteFeature))
    }

    /// The longest time after which a peripheral listens.
    private var listeningTime: Duration { link.parameters.intervalDuration * (Int(link.parameters.latency) + 1) }

    /// When the peer is asked for a packet: with time for it to come, also where some are lost.
    private var pingDue: Instant {
        let duration = authenticatedPayload.duration
        return authenticatedPayload.lastProof + (duration - min(duration / 2, listeningTime * 6))
    }

    private func setPayloadTimer() {
        let due = air.now < pingDue ? pingDue : authenticatedPayload.deadline
        let generation = authenticatedPayload.generation
        air.schedule(at: due) { [weak self] in
            guard let self, !isGone, authenticatedPayload.generation == generation else { return }
            payloadTimerFired()
        }
    }

    private func payloadTimerFired() {
        // After a change of the key the timer begins again.
        guard encryption.state == .on else {
            authenticatedPayload.isRunning = false
            return
        }
        if air.now >= authenticatedPayload.deadline {
            authenticatedPayload.lastProof = air.now
            controller.tell(AuthenticatedPayloadTimeoutExpired(connectionHandle: handle))
        } else if air.now >= pingDue, !isPinging {
            begin(.ping)
        }
        setPayloadTimer()
    }

    private var isPinging: Bool {
        ([procedure].compactMap { $0 } + waiting).contains { if case .ping = $0 { true } else { false } }
    }
}
