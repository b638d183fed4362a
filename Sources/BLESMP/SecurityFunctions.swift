import BLEByteCoding

/// The ciphers of the Security Manager (Vol 3, Part H, 2.2).
///
/// Numbers of 128 bits are in the notation of the specification: the first byte in writing is the most significant.
public protocol SecurityFunctions: Sendable {
    /// The security function e: AES-128 of one block (2.2.1).
    func encrypt(_ plaintext: UInt128, key: UInt128) -> UInt128

    /// AES-CMAC (RFC 4493) of a message whose most significant byte comes first (2.2.5).
    func authenticationCode(of message: [UInt8], key: UInt128) -> UInt128

    /// The public key of a private key; nil if the number is not a valid private key of P-256. This is very unlikely
    /// for a random number.
    func publicKey(of privateKey: P256PrivateKey) -> P256PublicKey?

    /// The Diffie-Hellman key; nil if the peer's key is not a point of the curve (2.3.5.6.1).
    func sharedKey(_ privateKey: P256PrivateKey, with peer: P256PublicKey) -> DiffieHellmanKey?
}

/// A number of 256 bits, as the Security Manager's PDUs carry it: the least significant byte first.
public struct UInt256Bytes: Hashable, Sendable {
    /// 32 bytes, the least significant first.
    public let bytes: [UInt8]

    /// Creates a number from 32 bytes; nil for any other length.
    public init?(leastSignificantFirst bytes: [UInt8]) {
        guard bytes.count == 32 else { return nil }
        self.bytes = bytes
    }
}

/// The private key of a P-256 key pair.
public struct P256PrivateKey: Hashable, Sendable {
    /// The private key, as a number.
    public let value: UInt256Bytes

    /// Creates a key without checking its range: ``SecurityFunctions/publicKey(of:)`` does.
    public init(_ value: UInt256Bytes) {
        self.value = value
    }
}

/// The public key of a P-256 key pair: a point that may or may not be on the curve.
public struct P256PublicKey: Hashable, Sendable {
    /// The X coordinate.
    public let x: UInt256Bytes
    /// The Y coordinate.
    public let y: UInt256Bytes

    /// Creates a key without checking that the point is on the curve: ``SecurityFunctions/sharedKey(_:with:)`` does.
    public init(x: UInt256Bytes, y: UInt256Bytes) {
        self.x = x
        self.y = y
    }
}

/// The key that both sides compute from their own private key and the other's public key.
public struct DiffieHellmanKey: Hashable, Sendable {
    /// The X coordinate of the shared point: DHKey.
    public let value: UInt256Bytes

    /// Creates a key from the X coordinate of the shared point.
    public init(_ value: UInt256Bytes) {
        self.value = value
    }
}
