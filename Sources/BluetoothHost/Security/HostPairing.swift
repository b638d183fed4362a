import BLESMP
import BluetoothTypes

/// The part of pairing that concerns all links of a host: the policy, the app's handler, failed attempts and the
/// pairing window.
///
/// A removed handler is returned, and the caller releases it when this value is no longer being accessed.
struct HostPairing {
    /// The policy of new links.
    var policy: SecurityPolicy
    /// The policies that are to be set again later, by identifier.
    private var savedPolicies: [UInt64: SecurityPolicy] = [:]
    /// The handler that decides about pairings; nil if there is none.
    private(set) var handler: PairingHandler?
    /// The identifier of the handler that was set last.
    private var handlerIdentifier: UInt64 = 0
    /// Whether the host was closed. Then no handler is kept.
    private var isClosed = false
    var attempts = PairingAttempts()
    /// The end of the pairing window and the timer for it; nil if no window is open.
    var window: (end: Instant, timer: TimerQueue.Token)?

    init(policy: SecurityPolicy, handler: PairingHandler?) {
        self.policy = policy
        self.handler = handler
    }

    /// Saves a policy with an identifier that no other saved policy has, until it is taken.
    mutating func save(_ policy: SecurityPolicy, _ identifier: UInt64) { savedPolicies[identifier] = policy }

    /// Removes a saved policy, and returns it.
    mutating func takePolicy(_ identifier: UInt64) -> SecurityPolicy? { savedPolicies.removeValue(forKey: identifier) }

    /// Removes the out-of-band data that a pairing with these parameters uses from all policies.
    mutating func forgetOutOfBandData(of used: PairingParameters) {
        policy.forgetOutOfBandData(of: used)
        savedPolicies = savedPolicies.mapValues { saved in
            var saved = saved
            saved.forgetOutOfBandData(of: used)
            return saved
        }
    }

    /// Sets the handler, with an identifier that no other handler has.
    ///
    /// - Returns: the previous handler.
    mutating func setHandler(_ handler: PairingHandler?, _ identifier: UInt64) -> PairingHandler? {
        guard !isClosed else { return nil }
        let previous = self.handler
        self.handler = handler
        handlerIdentifier = identifier
        return previous
    }

    /// Sets an earlier handler again, if the current handler is the one with this identifier.
    ///
    /// - Returns: the handler that is not needed any more.
    mutating func restoreHandler(_ handler: PairingHandler?, inPlaceOf identifier: UInt64) -> PairingHandler? {
        guard !isClosed, handlerIdentifier == identifier else { return handler }
        let replaced = self.handler
        self.handler = handler
        return replaced
    }

    /// Removes the handler of a host that was closed. Later handlers are not kept.
    ///
    /// - Returns: the handler that is not needed any more.
    mutating func close() -> PairingHandler? {
        isClosed = true
        return handler.take()
    }

    func isWindowOpen(at now: Instant) -> Bool { window.map { now < $0.end } ?? false }
}
