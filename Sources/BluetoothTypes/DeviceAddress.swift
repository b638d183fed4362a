import BLEByteCoding

/// A Bluetooth device address with its type (Vol 6, Part B, 1.3).
public struct DeviceAddress: Hashable, Sendable {
    /// The kind of an address, determined by its type and its two most significant bits.
    public enum Kind: Sendable {
        /// Assigned by the IEEE.
        case `public`
        /// Random, unchanged at least until the next power cycle.
        case randomStatic
        /// Random. A device with the Identity Resolving Key can resolve it to an identity.
        case resolvablePrivate
        /// Random. It cannot be resolved.
        case nonResolvablePrivate
        /// Random with the reserved bit pattern 0b10.
        case reserved
    }

    /// The address as a 48-bit number. The first byte as written is the most significant.
    public let value: UInt64
    /// Whether the address is random; otherwise it is public.
    public let isRandom: Bool

    /// Creates an address of the lower 48 bits of `value`. Higher bits are ignored.
    @inlinable
    public init(_ value: UInt64, isRandom: Bool) {
        self.value = value & 0xFFFF_FFFF_FFFF
        self.isRandom = isRandom
    }

    /// The kind of the address, by its type and its two highest bits.
    @inlinable
    public var kind: Kind {
        guard isRandom else { return .public }
        return switch value >> 46 {
        case 0b00: .nonResolvablePrivate
        case 0b01: .resolvablePrivate
        case 0b11: .randomStatic
        default: .reserved
        }
    }

    /// Whether a device keeps the address: a public or a static random address (Vol 6, Part B, 1.3). Only such an
    /// address can be an identity address.
    package var isLasting: Bool { kind == .public || kind == .randomStatic }

    /// Creates a static random address from the lower 46 bits of a random number, with the two most significant bits
    /// set.
    ///
    /// These 46 bits may be neither all 0 nor all 1 (Vol 6, Part B, 1.3.2.1). Then 1 is used instead.
    @inlinable
    public static func randomStatic(from random: UInt64) -> DeviceAddress {
        let part = random & 0x3FFF_FFFF_FFFF
        return DeviceAddress((part == 0 || part == 0x3FFF_FFFF_FFFF ? 1 : part) | 0xC000_0000_0000, isRandom: true)
    }
}

extension DeviceAddress: CustomStringConvertible {
    /// Parses six pairs of hexadecimal digits joined by colons (`F0:12:34:56:78:9A`), in either case. Returns nil
    /// otherwise.
    public init?(_ text: String, isRandom: Bool) {
        guard text.utf8.count == 17 else { return nil }
        var value: UInt64 = 0
        for (index, character) in text.utf8.enumerated() {
            if index % 3 == 2 {
                guard character == UInt8(ascii: ":") else { return nil }
            } else {
                guard let digit = hexadecimalValue(of: character) else { return nil }
                value = value << 4 | UInt64(digit)
            }
        }
        self.init(value, isRandom: isRandom)
    }

    /// Parses six pairs of hexadecimal digits joined by colons, and `/P` if the address is public. Returns nil
    /// otherwise.
    ///
    /// An address alone does not determine its type. An address without the suffix is random: `F0:12:34:56:78:9A` is a
    /// random address, `00:1A:7D:DA:71:13/P` a public address.
    public init?(_ text: String) {
        if text.utf8.count == 19, text.hasSuffix("/P") {
            self.init(String(text.dropLast(2)), isRandom: false)
        } else {
            self.init(text, isRandom: true)
        }
    }

    /// Six pairs of upper-case digits joined by colons, most significant first, without the type.
    ///
    /// A public address and a random address with the same digits have the same description. To restore the address,
    /// keep ``isRandom`` as well, and pass it to ``init(_:isRandom:)-(String,_)``.
    public var description: String {
        var text = ""
        for (index, digit) in hexadecimalDigits(value, count: 12).enumerated() {
            if index > 0, index.isMultiple(of: 2) { text.append(":") }
            text.append(digit)
        }
        return text
    }
}

extension DeviceAddress: ExpressibleByStringLiteral {
    /// - Precondition: the literal is an address; see ``init(_:)-(String)``.
    public init(stringLiteral literal: String) {
        guard let address = DeviceAddress(literal) else { preconditionFailure("not a device address: \(literal)") }
        self = address
    }
}
