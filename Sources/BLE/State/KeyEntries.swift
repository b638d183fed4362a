import BLESMP
import BluetoothTypes

/// The saved form of a key that encrypts links.
struct LongTermKeyEntry: Codable {
    let key: LongTermKey

    private enum Key: String, CodingKey {
        case value
        case encryptedDiversifier
        case randomNumber
        case authenticated
        case secureConnections
        case keySize
    }

    init(_ key: LongTermKey) {
        self.key = key
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        let size = try container.decode(UInt8.self, forKey: .keySize)
        guard (7...16).contains(size) else { throw container.problem(.keySize, "a key has 7 to 16 bytes") }
        let value = try container.decodeSecret(.value)
        guard size == 16 || value >> (8 * UInt128(size)) == 0 else {
            throw container.problem(.value, "the key has more bytes than its size")
        }
        key = LongTermKey(
            value: value,
            encryptedDiversifier: try container.decodeNumber(.encryptedDiversifier) ?? 0,
            randomNumber: try container.decodeNumber(.randomNumber) ?? 0,
            strength: KeyStrength(
                isAuthenticated: try container.decode(Bool.self, forKey: .authenticated),
                isSecureConnections: try container.decode(Bool.self, forKey: .secureConnections),
                keySize: size
            )
        )
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(key.value.digits, forKey: .value)
        if key.encryptedDiversifier != 0 || key.randomNumber != 0 {
            try container.encode(key.encryptedDiversifier.digits, forKey: .encryptedDiversifier)
            try container.encode(key.randomNumber.digits, forKey: .randomNumber)
        }
        try container.encode(key.strength.isAuthenticated, forKey: .authenticated)
        try container.encode(key.strength.isSecureConnections, forKey: .secureConnections)
        try container.encode(key.strength.keySize, forKey: .keySize)
    }
}

/// The saved form of a key that signs writes.
struct SigningKeyEntry: Codable {
    let key: SigningKey

    private enum Key: String, CodingKey {
        case value
        case authenticated
        case nextCounter
    }

    init(_ key: SigningKey) {
        self.key = key
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        key = SigningKey(
            value: try container.decodeSecret(.value),
            isAuthenticated: try container.decode(Bool.self, forKey: .authenticated),
            nextCounter: try container.decode(UInt32.self, forKey: .nextCounter)
        )
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(key.value.digits, forKey: .value)
        try container.encode(key.isAuthenticated, forKey: .authenticated)
        try container.encode(key.nextCounter, forKey: .nextCounter)
    }
}

// MARK: Numbers and addresses

extension FixedWidthInteger where Self: UnsignedInteger {
    /// All bytes in hexadecimal digits, the most significant first.
    var digits: String { hexadecimalDigits(self, count: Self.bitWidth / 4, uppercase: false) }
}

extension KeyedDecodingContainer {
    func problem(_ key: Key, _ text: String) -> DecodingError {
        .dataCorruptedError(forKey: key, in: self, debugDescription: text)
    }

    /// Decodes a number written with all its hexadecimal digits; nil if it is absent.
    func decodeNumber<Number: FixedWidthInteger & UnsignedInteger>(_ key: Key) throws -> Number? {
        guard let text = try decodeIfPresent(String.self, forKey: key) else { return nil }
        guard text.utf8.count == Number.bitWidth / 4, let octets = [UInt8](hexadecimal: text) else {
            throw problem(key, "this is not \(Number.bitWidth / 4) hexadecimal digits")
        }
        return octets.reduce(0) { $0 << 8 | Number($1) }
    }

    /// Decodes a key of 128 bits; a key of zeros is invalid.
    func decodeSecret(_ key: Key) throws -> UInt128 {
        guard let value: UInt128 = try decodeNumber(key) else {
            throw DecodingError.keyNotFound(key, DecodingError.Context(codingPath: codingPath, debugDescription: ""))
        }
        guard value != 0 else { throw problem(key, "a key of zeros is none") }
        return value
    }

    func decodeAddress(_ key: Key, type: Key) throws -> DeviceAddress {
        let isRandom: Bool
        switch try decode(String.self, forKey: type) {
        case "public": isRandom = false
        case "random": isRandom = true
        default: throw problem(type, "an address is public or random")
        }
        guard let address = DeviceAddress(try decode(String.self, forKey: key), isRandom: isRandom) else {
            throw problem(key, "an address has six pairs of hexadecimal digits, as in F0:12:34:56:78:9A")
        }
        return address
    }
}

extension KeyedEncodingContainer {
    mutating func encodeAddress(_ address: DeviceAddress, _ key: Key, type: Key) throws {
        try encode("\(address)", forKey: key)
        try encode(address.isRandom ? "random" : "public", forKey: type)
    }
}
