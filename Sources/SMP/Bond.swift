import BluetoothTypes

/// What two devices know of each other since they have been paired (Vol 3, Part H, 2.4.1).
public struct Bond: Hashable, Sendable {
    /// The peer's identity address; the address that it was paired by where it has given none.
    public var identity: DeviceAddress
    /// The key with which the link is encrypted when this device is the central.
    public var centralKey: LongTermKey?
    /// The key with which the link is encrypted when this device is the peripheral; the same one after LE Secure
    /// Connections.
    public var peripheralKey: LongTermKey?
    /// Resolves the peer's private addresses (IRK).
    public var identityResolvingKey: UInt128?
    /// Verifies what the peer has signed (its CSRK).
    public var peerSigningKey: SigningKey?
    /// Signs for the peer (our CSRK).
    public var ownSigningKey: SigningKey?

    public init(identity: DeviceAddress) {
        self.identity = identity
    }

    /// What the keys of this bond are worth.
    public var strength: KeyStrength? {
        (centralKey ?? peripheralKey)?.strength
    }
}

extension Bond {
    /// Takes the sign counters of another record of the same bond where they are higher. A counter must never be used twice,
    /// and never be accepted twice (Vol 3, Part H, 2.4.5).
    package mutating func raiseCounters(to other: Bond) {
        peerSigningKey?.raiseCounter(to: other.peerSigningKey)
        ownSigningKey?.raiseCounter(to: other.ownSigningKey)
    }
}

extension SigningKey {
    fileprivate mutating func raiseCounter(to other: SigningKey?) {
        if let other, other.value == value { nextCounter = max(nextCounter, other.nextCounter) }
    }
}

/// A key that encrypts links, and what it is worth (Vol 3, Part H, 2.4.2).
public struct LongTermKey: Hashable, Sendable {
    /// Its octets beyond the key size are zero.
    public var value: UInt128
    /// EDIV and Rand, by which LE legacy pairing names keys; zero after LE Secure Connections.
    public var encryptedDiversifier: UInt16
    public var randomNumber: UInt64
    public var strength: KeyStrength

    public init(value: UInt128, encryptedDiversifier: UInt16 = 0, randomNumber: UInt64 = 0, strength: KeyStrength) {
        self.value = value
        self.encryptedDiversifier = encryptedDiversifier
        self.randomNumber = randomNumber
        self.strength = strength
    }
}

/// What an encrypted link is worth.
public struct KeyStrength: Hashable, Sendable {
    /// Whether nobody can have stood between the devices when they were paired.
    public var isAuthenticated: Bool
    /// Whether the key is of LE Secure Connections.
    public var isSecureConnections: Bool
    /// In octets: 7 to 16.
    public var keySize: UInt8

    public init(isAuthenticated: Bool, isSecureConnections: Bool, keySize: UInt8) {
        self.isAuthenticated = isAuthenticated
        self.isSecureConnections = isSecureConnections
        self.keySize = keySize
    }
}

/// A key that signs writes, and how often it was used (Vol 3, Part H, 2.4.5).
public struct SigningKey: Hashable, Sendable {
    /// The Connection Signature Resolving Key.
    public var value: UInt128
    public var isAuthenticated: Bool
    /// The lowest counter that has not been used yet.
    public var nextCounter: UInt32

    public init(value: UInt128, isAuthenticated: Bool, nextCounter: UInt32 = 0) {
        self.value = value
        self.isAuthenticated = isAuthenticated
        self.nextCounter = nextCounter
    }
}
