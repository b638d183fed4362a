import ByteCoding

/// The ciphers that the Security Manager is built on (Vol 3, Part H, 2.2).
///
/// Numbers of 128 bits are as the specification writes them: their first octet in writing is the most significant.
public protocol SecurityFunctions: Sendable {
    /// The security function e: AES-128 of one block (2.2.1).
    func encrypt(_ plaintext: UInt128, key: UInt128) -> UInt128

    /// AES-CMAC (RFC 4493) of a message whose most significant octet comes first (2.2.5).
    func authenticationCode(of message: [UInt8], key: UInt128) -> UInt128

    /// The public key of a private key; nil where the number is no private key of P-256, which hardly ever happens to a
    /// random one.
    func publicKey(of privateKey: P256PrivateKey) -> P256PublicKey?

    /// The Diffie-Hellman key; nil where the peer's key is no point of the curve (2.3.5.6.1).
    func sharedKey(_ privateKey: P256PrivateKey, with peer: P256PublicKey) -> DiffieHellmanKey?
}

/// A number of 256 bits, as the Security Manager's PDUs carry it: the least significant octet first.
public struct UInt256Octets: Hashable, Sendable {
    /// 32 octets, the least significant first.
    public let octets: [UInt8]

    /// nil unless there are 32 octets.
    public init?(leastSignificantFirst octets: [UInt8]) {
        guard octets.count == 32 else { return nil }
        self.octets = octets
    }
}

/// The private half of a P-256 key pair.
public struct P256PrivateKey: Hashable, Sendable {
    public let value: UInt256Octets

    public init(_ value: UInt256Octets) {
        self.value = value
    }
}

/// The public half of a P-256 key pair: a point that may or may not be one of the curve.
public struct P256PublicKey: Hashable, Sendable {
    public let x: UInt256Octets
    public let y: UInt256Octets

    public init(x: UInt256Octets, y: UInt256Octets) {
        self.x = x
        self.y = y
    }
}

/// What both sides compute of their own private and the other's public key.
public struct DiffieHellmanKey: Hashable, Sendable {
    public let value: UInt256Octets

    public init(_ value: UInt256Octets) {
        self.value = value
    }
}
