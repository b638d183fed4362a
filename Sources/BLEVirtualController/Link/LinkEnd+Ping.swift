import BLEHCI
import BluetoothTypes

/// The timer for packets with a valid MIC on an encrypted link (Vol 6, Part B, 5.4). Such a packet proves that the peer
/// has the key.
///
/// The timer starts only if the event of its expiry is not masked out. Until then it costs nothing.
struct AuthenticatedPayloadTimer {
    /// In units of 10 ms. The default is 30 s (Vol 4, Part E, 7.3.93).
    var timeout: UInt16 = 3000
    /// The time of the last packet with a valid MIC, or of the last start or expiry of the timer.
    var lastProof = Instant(nanoseconds: 0)
    var isRunning = false
    /// Fires when the peer is to be pinged, and at the deadline.
    let timer = Air.Timer()

    var duration: Duration { .milliseconds(10 * Int(timeout)) }
    var deadline: Instant { lastProof + duration }
}

/// The LE Ping procedure, and its use (Vol 6, Part B, 5.1.8 and 5.4).
extension LinkEnd {
    /// Sets the timeout, and restarts the timer.
    ///
    /// - Parameter timeout: the timeout in units of 10 ms.
    /// - Returns: false if `timeout` is zero, or less than the longest time between two events in which a peripheral
    ///   listens (Vol 4, Part E, 7.3.94).
    func setAuthenticatedPayloadTimeout(_ timeout: UInt16) -> Bool {
        guard timeout > 0, .milliseconds(10 * Int(timeout)) >= listeningTime else { return false }
        authenticatedPayload.timeout = timeout
        authenticatedPayload.lastProof = air.now
        authenticatedPayload.isRunning = false
        watchAuthenticatedPayload()
        return true
    }

    /// Starts the timer, if the link is encrypted and the event is not masked out.
    func watchAuthenticatedPayload() {
        guard !isGone, !authenticatedPayload.isRunning, encryption.state == .on,
            controller.configuration.features.contains(.ping),
            controller.host.wants(code: AuthenticatedPayloadTimeoutExpired.code)
        else { return }
        authenticatedPayload.lastProof = max(authenticatedPayload.lastProof, air.now)
        authenticatedPayload.isRunning = true
        setPayloadTimer()
    }

    /// Answers a ping of the peer, which verifies that this side has the key.
    func answerPing() {
        guard !controller.faults.ignoresPings else { return }
        let isKnown = controller.configuration.features.contains(.ping)
        send(isKnown ? .pingResponse : .reject(.ping, .unsupportedRemoteFeature))
    }

    /// The longest time between two events in which a peripheral listens.
    private var listeningTime: Duration { link.parameters.intervalDuration * (Int(link.parameters.latency) + 1) }

    /// The time at which the peer is pinged. It leaves enough time for an answer, even if some packets are lost.
    private var pingDue: Instant {
        let duration = authenticatedPayload.duration
        return authenticatedPayload.lastProof + (duration - min(duration / 2, listeningTime * 6))
    }

    private func setPayloadTimer() {
        let due = air.now < pingDue ? pingDue : authenticatedPayload.deadline
        air.set(authenticatedPayload.timer, at: due) { [weak self] in
            guard let self, !isGone else { return }
            payloadTimerFired()
        }
    }

    private func payloadTimerFired() {
        // After a change of the key, the timer starts again.
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
