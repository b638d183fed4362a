import BluetoothTypes

/// The shared keys and identities of two paired devices (Vol 3, Part H, 2.4.1).
public struct Bond: Hashable, Sendable {
    /// The peer's identity address. If the peer has not distributed one, the address that it was paired by.
    public var identity: DeviceAddress
    /// The key that encrypts the link when this device is the central.
    public var centralKey: LongTermKey?
    /// The key that encrypts the link when this device is the peripheral; the same key after LE Secure Connections.
    public var peripheralKey: LongTermKey?
    /// The peer's input and output in the pairing that made this bond; nil if it is unknown.
    public var peerIOCapability: IOCapability?
    /// Resolves the peer's private addresses (IRK).
    public var identityResolvingKey: UInt128?
    /// Verifies the peer's signatures (its CSRK).
    public var peerSigningKey: SigningKey?
    /// Signs for the peer (our CSRK).
    public var ownSigningKey: SigningKey?

    /// Creates a bond without keys.
    public init(identity: DeviceAddress) {
        self.identity = identity
    }

    /// The strength that the keys of both roles have at least; nil if the bond has no key.
    ///
    /// The keys of one pairing are equally strong. The keys of an imported bond may differ. In that case, each property
    /// is that of the weaker key.
    public var strength: KeyStrength? {
        guard let central = centralKey?.strength, let peripheral = peripheralKey?.strength else {
            return (centralKey ?? peripheralKey)?.strength
        }
        return KeyStrength(
            isAuthenticated: central.isAuthenticated && peripheral.isAuthenticated,
            isSecureConnections: central.isSecureConnections && peripheral.isSecureConnections,
            keySize: min(central.keySize, peripheral.keySize)
        )
    }

    /// The strength that a pairing must have to be as strong as the keys of both roles; nil if the bond has no key.
    ///
    /// Like ``strength``, but with the properties of the stronger key. A pairing that replaces the bond replaces both
    /// keys.
    package var replacementStrength: KeyStrength? {
        guard let central = centralKey?.strength, let peripheral = peripheralKey?.strength else {
            return (centralKey ?? peripheralKey)?.strength
        }
        return KeyStrength(
            isAuthenticated: central.isAuthenticated || peripheral.isAuthenticated,
            isSecureConnections: central.isSecureConnections || peripheral.isSecureConnections,
            keySize: max(central.keySize, peripheral.keySize)
        )
    }
}

extension Bond {
    /// Raises the sign counters to those of another record of the same bond if they are higher. A counter must never be
    /// used twice, and never be accepted twice (Vol 3, Part H, 2.4.5).
    package mutating func raiseCounters(to other: Bond) {
        peerSigningKey?.raiseCounter(to: other.peerSigningKey)
        ownSigningKey?.raiseCounter(to: other.ownSigningKey)
    }

    /// Raises the counter of the peer's signing key to that of another record of the same key, if it is higher. The
    /// other record may belong to another bond.
    package mutating func raisePeerCounter(to key: SigningKey?) {
        peerSigningKey?.raiseCounter(to: key)
    }
}

extension SigningKey {
    fileprivate mutating func raiseCounter(to other: SigningKey?) {
        if let other, other.value == value { nextCounter = max(nextCounter, other.nextCounter) }
    }
}

/// A key that encrypts links, and its strength (Vol 3, Part H, 2.4.2).
public struct LongTermKey: Hashable, Sendable {
    /// The key. Its bytes beyond the key size are zero.
    public var value: UInt128
    /// EDIV and Rand, which identify keys in LE legacy pairing; zero after LE Secure Connections.
    public var encryptedDiversifier: UInt16
    /// Rand, the second part of that identification; zero after LE Secure Connections.
    public var randomNumber: UInt64
    /// How the key was agreed, and its size.
    public var strength: KeyStrength

    /// Creates a key. The defaults of EDIV and Rand are those of a key of LE Secure Connections.
    public init(value: UInt128, encryptedDiversifier: UInt16 = 0, randomNumber: UInt64 = 0, strength: KeyStrength) {
        self.value = value
        self.encryptedDiversifier = encryptedDiversifier
        self.randomNumber = randomNumber
        self.strength = strength
    }
}

/// The strength of the key of an encrypted link.
public struct KeyStrength: Hashable, Sendable {
    /// Whether the pairing was protected against a man in the middle.
    public var isAuthenticated: Bool
    /// Whether the key is of LE Secure Connections.
    public var isSecureConnections: Bool
    /// The key size in bytes: 7 to 16.
    public var keySize: UInt8

    /// Creates a strength.
    public init(isAuthenticated: Bool, isSecureConnections: Bool, keySize: UInt8) {
        self.isAuthenticated = isAuthenticated
        self.isSecureConnections = isSecureConnections
        self.keySize = keySize
    }
}

/// A key that signs writes, and its counter (Vol 3, Part H, 2.4.5).
public struct SigningKey: Hashable, Sendable {
    /// The Connection Signature Resolving Key.
    public var value: UInt128
    /// Whether the pairing that distributed the key was protected against a man in the middle.
    public var isAuthenticated: Bool
    /// The lowest counter that has not been used.
    public var nextCounter: UInt32

    /// Creates a key. By default, no counter has been used.
    public init(value: UInt128, isAuthenticated: Bool, nextCounter: UInt32 = 0) {
        self.value = value
        self.isAuthenticated = isAuthenticated
        self.nextCounter = nextCounter
    }
}
