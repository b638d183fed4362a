/// The key with which a device encrypts parts of its advertising data: the value of the Encrypted Data Key Material
/// characteristic (Vol 3, Part C, 12.6). Its description does not reveal it.
public struct EncryptedDataKeyMaterial: Hashable, Sendable {
    /// The key of 16 bytes.
    public let sessionKey: [UInt8]
    /// The initialization vector of 8 bytes.
    public let initializationVector: [UInt8]

    /// Creates key material.
    ///
    /// - Returns: nil unless the key has 16 bytes and the vector 8.
    public init?(sessionKey: [UInt8], initializationVector: [UInt8]) {
        guard sessionKey.count == 16, initializationVector.count == 8 else { return nil }
        self.sessionKey = sessionKey
        self.initializationVector = initializationVector
    }

    /// Decodes the value of the characteristic: the key, then the initialization vector.
    ///
    /// - Returns: nil unless the value has 24 bytes.
    public init?(decoding value: [UInt8]) {
        guard value.count == 24 else { return nil }
        self.init(sessionKey: Array(value.prefix(16)), initializationVector: Array(value.suffix(8)))
    }

    /// Makes new key material.
    public init(using random: inout some RandomNumberGenerator) {
        sessionKey = (0..<16).map { _ in UInt8.random(in: 0...255, using: &random) }
        initializationVector = (0..<8).map { _ in UInt8.random(in: 0...255, using: &random) }
    }

    /// The value of the characteristic: 24 bytes.
    public var encoded: [UInt8] { sessionKey + initializationVector }
}

extension EncryptedDataKeyMaterial: CustomStringConvertible {
    public var description: String { "EncryptedDataKeyMaterial(redacted)" }
}

#if !hasFeature(Embedded)
    extension EncryptedDataKeyMaterial: CustomReflectable {
        public var customMirror: Mirror { Mirror(self, children: [:], displayStyle: .struct) }
    }
#endif
