import BLESMP
import BluetoothTypes

/// The security that a host requires of its peers, and the operations that it allows them.
///
/// The defaults are strict: LE Secure Connections if the peer supports it, keys of 16 bytes and no debug keys. Without
/// a pairing delegate, just works is accepted only for pairings that this device begins, and no bond is replaced unless
/// the app asks for it.
public struct SecurityPolicy: Hashable, Sendable {
    /// The pairings with just works that are accepted. Just works does not protect against an attacker between the
    /// devices.
    public enum JustWorks: Hashable, Sendable {
        /// None. The pairing delegate is not asked.
        case never
        /// Those that the pairing delegate accepts. Without a delegate, those that this device began.
        case whenStartedHere
        /// Those that the pairing delegate accepts. Without a delegate, all.
        case always
    }

    /// The reaction to a bonded peer that reports that it does not have the bond's key, and to a bond without a key for
    /// this device's role as the central.
    public enum KeyLoss: Hashable, Sendable {
        /// The link is not encrypted, and ``SecurityError/keyMissing`` is thrown. The app may remove the bond and pair
        /// again.
        ///
        /// Any device can claim to be a peer that has lost its key.
        case fail
        /// The devices pair again, if the pairing delegate accepts. The bond stays until they have paired.
        case askToPairAgain
    }

    /// When a peer may begin a pairing. Pairings that this device begins are always allowed. As the peripheral, this
    /// device begins only those that the app asks for. A central could otherwise cause a pairing, because it can refuse
    /// this device's requests.
    public enum Pairable: Hashable, Sendable {
        /// At any time.
        case always
        /// While a pairing window is open (`Adapter.openPairingWindow(for:)`). An app opens the window when a person
        /// at the device asks for it.
        case duringWindow
        /// Never.
        case never
    }

    /// The bonds that a pairing may replace if the app has not asked for that pairing by
    /// `RemotePeripheral.pair(_:again:policy:)` or `Peripheral.requestSecurity(of:_:)`. They also apply to a
    /// pairing that the app has asked for, if the peer is at a private address that no bond resolves.
    ///
    /// A pairing that may not replace the bond of its peer does not begin. As the peripheral, this device answers the
    /// Pairing Request with Pairing Not Supported (0x05). As the central, it answers a Security Request with the same
    /// reason, unless the key of the bond is strong enough. In that case it encrypts the link (Vol 3, Part H, 2.4.6).
    public enum BondReplacement: Hashable, Sendable {
        /// Those that the pairing delegate accepts to replace. Without a delegate, none.
        case whenConsented
        /// The same, but only if the peer has encrypted the link with the key of its bond. So no other device can
        /// replace the peer's bond.
        case whenIdentityVerified
        /// None.
        case never
    }

    /// The input and output of this device, which the pairing delegate provides.
    public var ioCapability = IOCapability.noInputNoOutput
    /// Whether keys are stored as a bond. If false, they are discarded when the link ends.
    public var bonds = true
    /// When a peer may begin a pairing. A bonded peer whose identity is verified may always pair again.
    public var pairable = Pairable.always
    /// The identity addresses of the peers that may pair; nil for all. The list applies to each pairing, also to one
    /// that this device begins. The identity of a peer with a private address is checked at the end of the pairing.
    public var pairingAcceptList: Set<DeviceAddress>?
    /// Whether each pairing must protect against an attacker between the devices. Bonds without this protection are not
    /// used.
    public var requiresAuthentication = false
    /// Whether LE Secure Connections is offered. If false, only LE legacy pairing is possible.
    public var offersSecureConnections = true
    /// Whether LE legacy pairing is refused, and bonds that were made by it are not used. If false, LE Secure
    /// Connections is still used if both devices support it.
    public var requiresSecureConnections = false
    /// The minimum key size: 7 to 16 bytes.
    public var minimumKeySizeInBytes: UInt8 = 16
    /// Whether a peer may use the debug key pair of the specification (Vol 3, Part H, 2.3.5.6.1). A sniffer can decrypt
    /// such a link.
    public var allowsDebugKeys = false
    /// The pairings by just works that are accepted.
    public var justWorks = JustWorks.whenStartedHere
    /// Whether consent to just works is requested at the end of authentication stage 1 (Vol 3, Part H, 2.3.5.6.2)
    /// instead of before the pairing. Applies to LE Secure Connections only.
    ///
    /// Some peers ask their own user at that point. Both users are then asked at the same time. Otherwise, the peer's
    /// user is asked after this device's delegate has accepted.
    public var delaysJustWorksConsent = false
    /// Whether keypress notifications are exchanged while a passkey is typed, if the peer supports them as well (Vol 3,
    /// Part H, 3.5.8). Those of the peer are reported as ``SecurityEvent/keyPressed(_:peer:_:)``. The app sends its own
    /// by `Adapter.reportKeypress(_:for:)`. A pairing ends 30 s after the last PDU that this device has sent for it.
    /// Each notification of the peer puts that off, but to no later than 5 min after the pairing began.
    public var usesKeypressNotifications = false

    /// Secure Connections Only mode (Vol 3, Part C, 10.2.4). Each key must be an authenticated key of LE Secure
    /// Connections with 16 bytes. Other pairings are refused, other bonds are not used, and signed writes are ignored.
    /// Values and channels that need no security can still be used on unencrypted links.
    ///
    /// Setting it changes ``requiresSecureConnections``, ``requiresAuthentication``, ``offersSecureConnections``,
    /// ``minimumKeySizeInBytes`` and ``allowsDebugKeys``. Setting it to false changes only the first two, to false.
    public var isSecureConnectionsOnly: Bool {
        get { requiresSecureConnections && requiresAuthentication && minimumKeySizeInBytes >= 16 && !allowsDebugKeys }
        set {
            requiresSecureConnections = newValue
            requiresAuthentication = newValue
            guard newValue else { return }
            offersSecureConnections = true
            minimumKeySizeInBytes = 16
            allowsDebugKeys = false
        }
    }

    /// Whether the identity of a bonded peer is verified by encryption before values, channels and isochronous streams
    /// are used.
    ///
    /// As the central, this device encrypts the link at once. Its requests wait for the encryption, and values that the
    /// peer sends before are dropped, because any device may have sent them. As the peripheral, see
    /// ``servesUnverifiedClients``. If this is false, values, channels and streams that need no security are used
    /// without encryption.
    public var encryptsBondedLinks = true
    /// Whether a central with the address of a bonded device is served before it has encrypted the link.
    ///
    /// Any device can use that address. If this is false, the client has no access to values, channels and isochronous
    /// streams of apps at first. It has access once it has encrypted the link with the bond's key or has paired again.
    /// Until then, the error is Insufficient Encryption, or Insufficient Authentication if the bond has no usable key
    /// (Vol 3, Part C, 10.3.1) or a Write Request is for a value that needs a signature. The client may exchange the
    /// MTU, discover services, read the values of the GAP and GATT services, and send signed writes.
    ///
    /// If this is true, the client may use everything that needs no security, and apps know it by the bonded device's
    /// address.
    public var servesUnverifiedClients = false
    /// How long a central with the address of a bonded device may stay connected without encrypting the link or
    /// pairing.
    ///
    /// It is asked to encrypt after 5 s, or after half of this time if that is shorter, unless it has to wait after a
    /// failed pairing. At the end it is disconnected with the reason Authentication Failure. There is no limit if
    /// ``servesUnverifiedClients`` is true or ``encryptsBondedLinks`` is false.
    public var identityVerificationTimeout = Duration.seconds(30)
    /// Whether, as the peripheral, this device asks a bonded central to encrypt the link as soon as it is connected,
    /// also if ``encryptsBondedLinks`` is false. If this is false, it asks when an operation needs encryption, and as
    /// described for ``identityVerificationTimeout``.
    public var requestsEncryption = false
    /// Whether the link is encrypted, or the devices pair, if the peer refuses a request because the link is not secure
    /// enough. The request is then sent again.
    public var securesOnDemand = true
    /// Whether, as the central, this device may pair when a peripheral requests security (Vol 3, Part H, 2.4.6). If the
    /// key of the bond is strong enough, the link is encrypted without a pairing.
    public var pairsOnRequest = true
    /// The reaction to a bonded peer that does not have the bond's key.
    public var keyLoss = KeyLoss.fail
    /// The bonds that a pairing may replace if the app has not asked for it.
    public var bondReplacement = BondReplacement.whenConsented
    /// The maximum time that an encrypted link may be without a packet which proves that the peer has the key: 10 ms to
    /// 655 s (Vol 6, Part B, 5.4). Nil for no limit.
    ///
    /// The controllers send such packets by themselves. If none arrives in time,
    /// ``SecurityEvent/authenticatedPayloadTimedOut(_:peer:)`` is reported and the link ended with the reason
    /// Authentication Failure. The time must be longer than the connection interval times one more than the peripheral
    /// latency. It has no effect if the controller does not support it.
    public var authenticatedPayloadTimeout: Duration?

    /// The secret of out-of-band data that this device has given to its next peer. A pairing that uses it removes it,
    /// also if the pairing fails.
    public var ownOutOfBandData: OwnOutOfBandData?
    /// The out-of-band data that this device has received from its next peer. A pairing that uses it removes it, also
    /// if the pairing fails.
    public var peerOutOfBandData: OutOfBandData?

    /// Creates a policy with the default values.
    public init() {}

    /// Whether a pairing can protect against an attacker between the devices.
    var canAuthenticate: Bool {
        ioCapability != .noInputNoOutput || ownOutOfBandData != nil || peerOutOfBandData != nil
    }

    /// Whether a key of this strength may be used. The key of a bond that was made under an earlier policy may be too
    /// weak.
    func accepts(_ strength: KeyStrength) -> Bool {
        RequiredSecurity(
            isAuthenticated: requiresAuthentication,
            isSecureConnections: requiresSecureConnections,
            keySizeInBytes: min(minimumKeySizeInBytes, 16)
        ).isMet(by: strength)
    }

    /// Whether a key may not be used only because it is too short.
    func refusesOnlySize(of strength: KeyStrength) -> Bool {
        var longer = strength
        longer.keySize = 16
        return !accepts(strength) && accepts(longer)
    }

    var pairingParameters: PairingParameters {
        var parameters = PairingParameters()
        parameters.ioCapability = ioCapability
        parameters.bonds = bonds
        parameters.requiresAuthentication = requiresAuthentication
        parameters.requiresSecureConnections = requiresSecureConnections
        parameters.offersSecureConnections = offersSecureConnections
        parameters.minimumKeySize = min(max(minimumKeySizeInBytes, 7), 16)
        parameters.allowsDebugKey = allowsDebugKeys
        parameters.delaysJustWorksConsent = delaysJustWorksConsent
        parameters.usesKeypressNotifications = usesKeypressNotifications
        parameters.ownOutOfBandData = ownOutOfBandData
        parameters.peerOutOfBandData = peerOutOfBandData
        return parameters
    }
}

/// The minimum strength of a link's key for an operation.
public struct RequiredSecurity: Hashable, Sendable {
    /// Whether the key must be authenticated: by a passkey, a comparison of numbers, or out-of-band data.
    public var isAuthenticated: Bool
    /// Whether the key must be of LE Secure Connections.
    public var isSecureConnections: Bool
    /// The minimum size of the key: 7 to 16 bytes.
    public var keySizeInBytes: UInt8

    /// Creates a requirement. By default, it is any encryption.
    public init(isAuthenticated: Bool = false, isSecureConnections: Bool = false, keySizeInBytes: UInt8 = 7) {
        self.isAuthenticated = isAuthenticated
        self.isSecureConnections = isSecureConnections
        self.keySizeInBytes = keySizeInBytes
    }

    /// Any encryption that the policy accepts.
    public static let encryption = RequiredSecurity()

    func isMet(by strength: KeyStrength) -> Bool {
        (strength.isAuthenticated || !isAuthenticated) && (strength.isSecureConnections || !isSecureConnections)
            && strength.keySize >= keySizeInBytes
    }
}

extension KeyStrength {
    /// Whether a key is weaker than another one in any respect.
    func isWeaker(than other: KeyStrength) -> Bool {
        !RequiredSecurity(
            isAuthenticated: other.isAuthenticated,
            isSecureConnections: other.isSecureConnections,
            keySizeInBytes: other.keySize
        ).isMet(by: self)
    }
}
