import BluetoothTypes
import SMP

/// What a host asks of its peers' security, and what it lets them do.
///
/// The defaults are the safe ones: LE Secure Connections where the peer has it, keys of 16 octets, no debug keys, nothing
/// that somebody would have to confirm where there is nobody to ask, and no bond that is replaced unasked.
public struct SecurityPolicy: Hashable, Sendable {
    /// Whether just works, which keeps nobody from standing between the devices, is good enough.
    public enum JustWorks: Hashable, Sendable {
        /// Just works is refused, whoever would consent to it.
        case never
        /// The pairing delegate is asked. Without one, what this device has begun is consented to and what a peer has begun
        /// is refused.
        case whenStartedHere
        /// The pairing delegate is asked. Without one, just works is consented to.
        case always
    }

    /// The reaction to a bonded peer that reports that it does not have the bond's key, and to a bond without a key for this
    /// device's role as the central.
    public enum KeyLoss: Hashable, Sendable {
        /// The link is not encrypted and ``SecurityError/keyMissing`` is thrown: the app may remove the bond and pair anew.
        ///
        /// Anybody can claim to be a peer that has lost its key.
        case fail
        /// The devices pair again, if the pairing delegate consents. The bond is kept until they have.
        case askToPairAgain
    }

    /// When a peer may begin a pairing. Pairings that this device begins are always allowed.
    public enum Pairable: Hashable, Sendable {
        /// At any time.
        case always
        /// While a pairing window is open (``Adapter/openPairingWindow(for:)``). So only a person at the device can add a
        /// peer.
        case duringWindow
        /// Never.
        case never
    }

    /// Which bonds a pairing may replace if the app has not asked for that pairing by ``RemotePeripheral/pair(_:again:policy:)``
    /// or ``Peripheral/requestSecurity(of:_:)``.
    ///
    /// A pairing that may not replace the bond of its peer does not begin. As the peripheral, this device answers the Pairing
    /// Request with Pairing Not Supported (0x05). As the central, it answers a Security Request with the same, unless the key
    /// of the bond is worth enough: then it encrypts (Vol 3, Part H, 2.4.6).
    public enum BondReplacement: Hashable, Sendable {
        /// The bonds that the pairing delegate lets it replace. Without a delegate, none.
        case whenConsented
        /// The same, but only for a peer that has encrypted the link with the key of its bond. So no other device can take
        /// its place.
        case whenProven
        /// None.
        case never
    }

    /// What can be shown and typed here, by the pairing delegate.
    public var ioCapability = IOCapability.noInputNoOutput
    /// Whether keys are kept beyond the link.
    public var bonds = true
    /// When a peer may begin a pairing. A bonded peer that has proven its identity may always pair again.
    public var pairable = Pairable.always
    /// The identity addresses of the peers that may pair; nil for all. It applies to each pairing, also one that this device
    /// begins. A peer with a private address is checked by the identity that it gives at the end.
    public var pairingAcceptList: Set<DeviceAddress>?
    /// Whether every pairing must make sure that nobody stands between the devices; a bond without that is not used either.
    public var requiresAuthentication = false
    /// Whether LE Secure Connections is offered; otherwise there is LE legacy pairing alone.
    public var offersSecureConnections = true
    /// Whether LE legacy pairing is refused, and a bond that was made by it not used. LE Secure Connections is used wherever
    /// the peer has it.
    public var requiresSecureConnections = false
    /// The shortest key that is accepted, in octets: 7 to 16.
    public var minimumKeySize: UInt8 = 16
    /// Whether a peer may use the key pair that everybody knows (Vol 3, Part H, 2.3.5.6.1), so that a sniffer can follow.
    public var allowsDebugKeys = false
    public var justWorks = JustWorks.whenStartedHere
    /// Whether each device sends keypress notifications while a passkey is typed on it, if the peer supports them as well
    /// (Vol 3, Part H, 3.5.8). The peer's are reported as ``SecurityEvent/keyPressed(_:peer:_:)``; the app reports its own.
    public var usesKeypressNotifications = false

    /// Secure Connections Only mode (Vol 3, Part C, 10.2.4): each key is an authenticated one of LE Secure Connections, of 16
    /// bytes. Other pairings are refused, other bonds are not used, and signed writes are ignored. Values and channels that
    /// need no security stay open to unencrypted links.
    ///
    /// This is one switch for ``requiresSecureConnections``, ``requiresAuthentication``, ``minimumKeySize`` and
    /// ``allowsDebugKeys``. Turning it off asks for neither LE Secure Connections nor authentication any more.
    public var isSecureConnectionsOnly: Bool {
        get { requiresSecureConnections && requiresAuthentication && minimumKeySize >= 16 && !allowsDebugKeys }
        set {
            requiresSecureConnections = newValue
            requiresAuthentication = newValue
            guard newValue else { return }
            offersSecureConnections = true
            minimumKeySize = 16
            allowsDebugKeys = false
        }
    }

    /// Whether nothing is exchanged with a bonded peer before the link is encrypted with the bond's key.
    ///
    /// As the central, the link is then encrypted at once. What this device asks of the peer waits until it is, and values
    /// that the peer sends before are dropped: they could be anybody's.
    public var encryptsBondedLinks = true
    /// Whether a central that has the address of a bonded device is served before it has encrypted the link.
    ///
    /// Anybody can use that address. So such a client is refused apps' values and channels until it has encrypted the link
    /// with the bond's key or has paired again. The error is Insufficient Encryption, or Insufficient Authentication if the
    /// bond has no usable key (Vol 3, Part C, 10.3.1). It may exchange the MTU, discover services, read what the GAP and GATT
    /// services hold, and write signed. Where this is true, the client is served whatever needs no security, and apps hear
    /// of it under the bonded device's address.
    public var servesUnverifiedClients = false
    /// How long a central that has the address of a bonded device may stay connected without encrypting the link or
    /// pairing. It is asked to encrypt after 5 s, or half of this time if that is less, and disconnected with the reason
    /// Authentication Failure at the end. Nothing of this happens where ``servesUnverifiedClients`` is true or
    /// ``encryptsBondedLinks`` is false.
    public var identityVerificationTimeout = Duration.seconds(30)
    /// Whether, as the peripheral, a bonded central is asked to encrypt the link as soon as it is there; otherwise when
    /// something needs it.
    public var requestsEncryption = false
    /// Whether devices pair, or encrypt, when a peer answers that its attribute needs it.
    public var securesOnDemand = true
    /// Whether, as the central, this device pairs when an unbonded peripheral requests security (Vol 3, Part H, 2.4.6).
    public var pairsOnRequest = true
    public var keyLoss = KeyLoss.fail
    /// Which bonds a pairing may replace that the app has not asked for.
    public var bondReplacement = BondReplacement.whenConsented
    /// How long an encrypted link may be without a packet that proves the peer has the key, 10 ms to 655 s (Vol 6, Part B,
    /// 5.4). A link on which that takes longer is ended with the reason Authentication Failure, after
    /// ``SecurityEvent/authenticatedPayloadTimedOut(_:peer:)``. The controllers send such packets by themselves. Nil for no
    /// limit; it has no effect with a controller that lacks the command, and must be longer than the connection interval
    /// times one more than the peripheral latency.
    public var authenticatedPayloadTimeout: Duration?

    /// What this device has given its next peer by another way than the link. A pairing that uses it removes it,
    /// also one that fails.
    public var ownOutOfBandData: OwnOutOfBandData?
    /// What the next peer has given this device by another way than the link. A pairing that uses it removes it,
    /// also one that fails.
    public var peerOutOfBandData: OutOfBandData?

    public init() {}

    /// Whether there is a way to make sure that nobody stands between the devices.
    var canAuthenticate: Bool {
        ioCapability != .noInputNoOutput || ownOutOfBandData != nil || peerOutOfBandData != nil
    }

    /// Whether a key of this strength may be used; that of a bond from an earlier policy may not be worth enough any more.
    func accepts(_ strength: KeyStrength) -> Bool {
        RequiredSecurity(
            isAuthenticated: requiresAuthentication,
            isSecureConnections: requiresSecureConnections,
            keySize: min(minimumKeySize, 16)
        ).isMet(by: strength)
    }

    var pairingParameters: PairingParameters {
        var parameters = PairingParameters()
        parameters.ioCapability = ioCapability
        parameters.bonds = bonds
        parameters.requiresAuthentication = requiresAuthentication
        parameters.requiresSecureConnections = requiresSecureConnections
        parameters.offersSecureConnections = offersSecureConnections
        parameters.minimumKeySize = min(max(minimumKeySize, 7), 16)
        parameters.allowsDebugKey = allowsDebugKeys
        parameters.usesKeypressNotifications = usesKeypressNotifications
        parameters.ownOutOfBandData = ownOutOfBandData
        parameters.peerOutOfBandData = peerOutOfBandData
        return parameters
    }
}

/// What a link's key must be worth for something.
public struct RequiredSecurity: Hashable, Sendable {
    public var isAuthenticated: Bool
    public var isSecureConnections: Bool
    /// In octets: 7 to 16.
    public var keySize: UInt8

    public init(isAuthenticated: Bool = false, isSecureConnections: Bool = false, keySize: UInt8 = 7) {
        self.isAuthenticated = isAuthenticated
        self.isSecureConnections = isSecureConnections
        self.keySize = keySize
    }

    /// Any encryption that the policy accepts.
    public static let encryption = RequiredSecurity()

    func isMet(by strength: KeyStrength) -> Bool {
        (strength.isAuthenticated || !isAuthenticated) && (strength.isSecureConnections || !isSecureConnections)
            && strength.keySize >= keySize
    }
}

extension KeyStrength {
    /// Whether a key is worth less than another in any respect.
    func isWeaker(than other: KeyStrength) -> Bool {
        !RequiredSecurity(
            isAuthenticated: other.isAuthenticated,
            isSecureConnections: other.isSecureConnections,
            keySize: other.keySize
        ).isMet(by: self)
    }
}
