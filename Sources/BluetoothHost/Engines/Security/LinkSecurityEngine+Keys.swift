import BLESMP
import BluetoothTypes

// The keys that a link may be encrypted with, and whether they verify the peer.
extension LinkSecurityEngine {
    /// The key of a bond for this role. The keys of the two roles differ only after LE legacy pairing.
    func key(in bond: Bond) -> LongTermKey? { role == .central ? bond.centralKey : bond.peripheralKey }

    /// The key of the bond for this role.
    func bondKey(_ context: SecurityContext) -> LongTermKey? { context.bond.flatMap { key(in: $0) } }

    /// The key of the bond for this role, if the policy accepts it.
    func usableBondKey(_ context: SecurityContext) -> LongTermKey? {
        bondKey(context).flatMap { policy.accepts($0.strength) ? $0 : nil }
    }

    /// As the central: the key with which this host can refresh the encryption of the link, and its origin. The
    /// peripheral prefers the key of a pairing without a bond, too.
    func keyForRefresh(
        meeting request: SecurityRequirement,
        _ current: CurrentEncryption,
        _ context: SecurityContext
    ) -> (LongTermKey, ActiveKey.Origin)? {
        if current.key?.origin != .bond, let transientKeys, let transientKey = key(in: transientKeys),
            request.isMet(by: transientKey.strength)
        {
            return (transientKey, .transient)
        }
        guard let usableKey = usableBondKey(context), keyFailure(in: current, context) == nil,
            request.isMet(by: usableKey.strength)
        else { return nil }
        return (usableKey, .bond)
    }

    /// The failure of the bond's key on this link. The failure of a key that the bond no longer has does not count.
    func keyFailure(in current: CurrentEncryption, _ context: SecurityContext) -> SecurityError? {
        guard let failure = current.keyFailure, failure.key == bondKey(context) else { return nil }
        return failure.error
    }

    /// Whether the gate has to be closed until the peer's identity is verified (BLESA). The peer has the address of a
    /// bonded device, and the link is not encrypted with a key that opens the gate.
    ///
    /// The bond may have no key for this role. Only another pairing then verifies the peer.
    func needsVerification(_ context: SecurityContext) -> Bool {
        policy.encryptsBondedLinks && context.bond?.strength != nil && state.current.key?.opensGate != true
    }

    /// As the peripheral: whether the policy requests encryption on each new link to a bonded peer.
    var requestsEncryption: Bool { role == .peripheral && policy.requestsEncryption }

    /// Whether the link to a bonded peer is encrypted with the key of the bond as soon as nothing else is in progress.
    /// A peripheral may request that also if the peer need not be verified.
    func encryptsWhenSettled(_ context: SecurityContext) -> Bool {
        if needsVerification(context) { return role == .central || requestsEncryption }
        return requestsEncryption && state.current.key == nil && usableBondKey(context) != nil
    }

    /// Whether the peer is certainly the bonded device: it has verified its identity, and the link has been encrypted
    /// since then. Only such a peer may change the state that is stored with its bond.
    var isVerificationValid: Bool { isIdentityVerified || state.current.key?.followsVerifiedKey == true }

    /// Whether an encryption uses the key that the bond has now.
    func usesBondKey(_ work: EncryptionWork, _ context: SecurityContext) -> Bool {
        work.origin == .bond && work.key == bondKey(context)
    }
}
