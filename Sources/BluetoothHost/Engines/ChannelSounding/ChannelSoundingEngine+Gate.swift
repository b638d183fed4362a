import BLEHCI
import BluetoothTypes

// The gate of a link to a bonded peer, whose identity must be verified. See ``LinkSecurityEngine`` for the terms.
extension ChannelSoundingEngine {
    /// The error of a session on a link that is not encrypted with a key that the policy accepts.
    static let encryptionNeeded = HostError.security(.refused("channel sounding needs encryption"))

    /// Handles that the gate of the link has opened, for which a session may wait.
    ///
    /// - Parameter isEncrypted: whether the link is encrypted. The gate also opens if the policy no longer requires
    ///   encryption. The session that waits then ends.
    mutating func gateOpened(isEncrypted: Bool, at now: Instant) -> [ChannelSoundingEffect] {
        isGateClosed = false
        guard isEncrypted else { return endNext(Self.encryptionNeeded) }
        guard phase == .idle else { return [] }
        return beginNext(at: now) ?? []
    }

    /// Handles that the gate of the link is closed. A session that has not begun waits for it.
    mutating func gateClosed() {
        isGateClosed = true
    }

    /// Ends the session that waits for the gate, because the peer's identity could not be verified.
    mutating func verificationFailed(_ error: HostError) -> [ChannelSoundingEffect] {
        awaitsGate ? endNext(error) : []
    }

    /// Ends the session that has begun, because the peer's identity is no longer verified, and tidies up.
    mutating func peerIsUnverified(at now: Instant) -> [ChannelSoundingEffect] {
        guard !isReported else { return [] }
        return end(.disconnected(.controller(.authenticationFailure))) + tidyUp(at: now)
    }

    private mutating func endNext(_ error: HostError) -> [ChannelSoundingEffect] {
        takeNext().map { [.ended(error, session: $0)] } ?? []
    }
}
