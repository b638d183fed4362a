import BluetoothTypes

/// The input and output capability of a device (Vol 3, Part H, 2.3.2; the values are those of 3.5.1).
public enum IOCapability: UInt8, Hashable, Sendable, CaseIterable {
    /// The device shows six digits.
    case displayOnly = 0x00
    /// The device shows six digits, and its user can answer yes or no.
    case displayYesNo = 0x01
    /// The user can type six digits.
    case keyboardOnly = 0x02
    /// The device neither shows nor reads digits.
    case noInputNoOutput = 0x03
    /// The device shows six digits, and its user can type six digits.
    case keyboardDisplay = 0x04
}

/// The parameters by which a device pairs.
public struct PairingParameters: Hashable, Sendable {
    /// The input and output that are available to the user. Unless it is ``IOCapability/noInputNoOutput``, the peer is
    /// asked for a model with authentication.
    public var ioCapability = IOCapability.noInputNoOutput
    /// Whether the keys are stored after the connection has ended.
    public var bonds = true
    /// Whether protection against a man in the middle is required: just works is then refused.
    public var requiresAuthentication = false
    /// Whether LE legacy pairing is refused.
    public var requiresSecureConnections = false
    /// Whether LE Secure Connections is offered if it is not required. If false, this device behaves as before
    /// Bluetooth 4.2.
    package var offersSecureConnections = true
    /// The shortest key that is accepted, in bytes: 7 to 16.
    public var minimumKeySize: UInt8 = 16
    /// The longest key that is offered, in bytes: 7 to 16.
    public var maximumKeySize: UInt8 = 16
    /// Whether a peer may use the debug public key, whose private key is public (2.3.5.6.1).
    public var allowsDebugKey = false
    /// Whether each device reports key presses during passkey entry to the other, if the other supports this as well
    /// (Vol 3, Part H, 3.5.8). The digits themselves are not sent.
    public var usesKeypressNotifications = false
    /// Whether consent to just works is requested at the end of authentication stage 1 (Vol 3, Part H, 2.3.5.6.2)
    /// instead of before the pairing. Applies to LE Secure Connections only. The owner decides before the pairing
    /// whether it may begin: ``PairingStep/checkPolicy(_:_:)``.
    public var delaysJustWorksConsent = false
    /// The peer's out-of-band data; nil if there is none.
    public var peerOutOfBandData: OutOfBandData?
    /// This device's out-of-band data, with its secret; nil if there is none.
    public var ownOutOfBandData: OwnOutOfBandData?

    /// Creates the default parameters: bonding, without input and output, with keys of 16 bytes.
    public init() {}
}

/// Out-of-band data of a device (2.3.5.4 and 2.3.5.6.4).
public enum OutOfBandData: Hashable, Sendable {
    /// LE legacy pairing: the temporary key, which both sides use. A device that has one offers only legacy pairing,
    /// unless it requires LE Secure Connections.
    case temporaryKey(UInt128)
    /// LE Secure Connections: the confirm value C and the random value r.
    case secureConnections(confirm: UInt128, random: UInt128)
}

/// Out-of-band data of this device: the data for the peer, and the key pair and random value behind it.
public enum OwnOutOfBandData: Hashable, Sendable {
    /// LE legacy pairing: the temporary key, which both sides use.
    case temporaryKey(UInt128)
    /// LE Secure Connections: the private key, and the random value r.
    case secureConnections(privateKey: P256PrivateKey, random: UInt128)
}

/// The methods of authentication in a pairing (2.3.5.1).
public enum AssociationModel: Hashable, Sendable, CaseIterable {
    /// No authentication: the pairing does not protect against an attacker between the devices.
    case justWorks
    /// This device shows a passkey, and the user enters it on the other device.
    case passkeyShownHere
    /// The other device shows a passkey, and the user enters it on this device.
    case passkeyTypedHere
    /// The user enters the same passkey on both devices.
    case passkeyTypedOnBoth
    /// Both devices show a number, and the user compares them.
    case numericComparison
    /// The devices have exchanged data in another way, for example by NFC.
    case outOfBand
}

/// The identity that a device distributes to its peer at the end of pairing, besides the long term key (2.4.3).
public struct LocalIdentity: Hashable, Sendable {
    /// The identity address of this device: public or static random.
    public var address: DeviceAddress
    /// Generates this device's private addresses (IRK); nil if it uses none.
    public var resolvingKey: UInt128?

    /// Creates an identity.
    public init(address: DeviceAddress, resolvingKey: UInt128?) {
        self.address = address
        self.resolvingKey = resolvingKey
    }
}
