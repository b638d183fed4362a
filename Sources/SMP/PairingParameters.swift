import BluetoothTypes

/// What a device can show and take in (Vol 3, Part H, 2.3.2; the values are those of 3.5.1).
public enum IOCapability: UInt8, Hashable, Sendable, CaseIterable {
    case displayOnly = 0x00
    case displayYesNo = 0x01
    case keyboardOnly = 0x02
    case noInputNoOutput = 0x03
    case keyboardDisplay = 0x04
}

/// How a device pairs.
public struct PairingParameters: Hashable, Sendable {
    /// What a person can be shown here and can take in. Unless it is nothing, the peer is asked for a model that
    /// authenticates.
    public var ioCapability = IOCapability.noInputNoOutput
    /// Whether keys are kept after the link has ended.
    public var bonds = true
    /// Whether nobody may be able to stand between: just works is then not enough.
    public var requiresAuthentication = false
    /// Whether LE legacy pairing is refused.
    public var requiresSecureConnections = false
    /// Whether LE Secure Connections is offered, where it is not required: false makes a device of before Bluetooth 4.2.
    package var offersSecureConnections = true
    /// The shortest key that is accepted, in octets: 7 to 16.
    public var minimumKeySize: UInt8 = 16
    /// The longest key that is offered, in octets: 7 to 16.
    public var maximumKeySize: UInt8 = 16
    /// Whether a peer may use the public key whose private half everybody knows (2.3.5.6.1).
    public var allowsDebugKey = false
    /// Whether each device tells the other of the keys that are pressed while a passkey is typed, if the other wants that as
    /// well (Vol 3, Part H, 3.5.8). The keys themselves are not told.
    public var usesKeypressNotifications = false
    /// What the peer has handed over by another way than the link, if anything.
    public var peerOutOfBandData: OutOfBandData?
    /// What this device has handed over by another way than the link, with the secret that belongs to it.
    public var ownOutOfBandData: OwnOutOfBandData?

    public init() {}
}

/// What a device hands over by another way than the link (2.3.5.4 and 2.3.5.6.4).
public enum OutOfBandData: Hashable, Sendable {
    /// LE legacy pairing: the temporary key, which both sides use. Who has one offers legacy pairing alone, where it is not
    /// refused.
    case temporaryKey(UInt128)
    /// LE Secure Connections: the confirm value C and the random value r.
    case secureConnections(confirm: UInt128, random: UInt128)
}

/// Out of band data of this device: what the peer is to be given, and the key pair and random value that it commits to.
public enum OwnOutOfBandData: Hashable, Sendable {
    case temporaryKey(UInt128)
    case secureConnections(privateKey: P256PrivateKey, random: UInt128)
}

/// How the devices make sure of each other (2.3.5.1).
public enum AssociationModel: Hashable, Sendable, CaseIterable {
    case justWorks
    /// This device shows a passkey that is typed on the other.
    case passkeyShownHere
    /// The other device shows a passkey that is typed here.
    case passkeyTypedHere
    /// The same passkey is typed on both.
    case passkeyTypedOnBoth
    case numericComparison
    case outOfBand
}

/// What a device gives its peer at the end of pairing, beside the long term key (2.4.3).
public struct LocalIdentity: Hashable, Sendable {
    /// The public or static random address that stands for this device.
    public var address: DeviceAddress
    /// Makes this device's private addresses (IRK); nil where it uses none.
    public var resolvingKey: UInt128?

    public init(address: DeviceAddress, resolvingKey: UInt128?) {
        self.address = address
        self.resolvingKey = resolvingKey
    }
}
