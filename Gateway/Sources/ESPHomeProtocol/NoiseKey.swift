import Foundation

/// The pre-shared key of an encrypted session: 32 bytes.
public struct NoiseKey: Hashable, Sendable {
    /// The number of bytes in a key.
    public static let length = 32

    /// The key.
    public let bytes: [UInt8]

    /// Creates a key of 32 bytes; nil if the length differs.
    public init?(bytes: [UInt8]) {
        guard bytes.count == Self.length else { return nil }
        self.bytes = bytes
    }

    /// Creates a key from its base64 form, as Home Assistant shows it; nil if the text is not base64 of 32 bytes.
    public init?(base64: String) {
        guard let data = Data(base64Encoded: base64) else { return nil }
        self.init(bytes: Array(data))
    }

    /// Creates a random key.
    public static func random() -> NoiseKey {
        var generator = SystemRandomNumberGenerator()
        return NoiseKey(bytes: (0..<length).map { _ in UInt8.random(in: .min ... .max, using: &generator) })!
    }

    /// The key in base64. Everyone with it can connect: do not log it.
    public var base64: String { Data(bytes).base64EncodedString() }
}

extension NoiseKey: CustomStringConvertible {
    /// Does not reveal the key.
    public var description: String { "NoiseKey(…)" }
}
