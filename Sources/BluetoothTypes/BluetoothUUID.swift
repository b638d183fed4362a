import BLEByteCoding

/// A UUID in one of the three widths of Bluetooth (Vol 3, Part B, 2.5.1).
///
/// 16-bit and 32-bit UUIDs are short forms of 128-bit UUIDs, based on the Bluetooth Base UUID. Two UUIDs are equal if
/// their 128-bit forms are equal, whatever their width. The width is kept because it determines the number of bytes
/// sent.
public struct BluetoothUUID: Sendable {
    /// The number of bits stored and sent.
    public enum Width: UInt8, Sendable {
        /// 2 bytes: the short form of most assigned UUIDs.
        case bits16 = 2
        /// 4 bytes: a short form that the Attribute Protocol does not carry; see ``BluetoothUUID/attributeForm``.
        case bits32 = 4
        /// 16 bytes: the full form, which anyone may generate.
        case bits128 = 16

        /// The number of bytes of a UUID of this width in a packet.
        @inlinable
        public var byteCount: Int { Int(rawValue) }
    }

    /// The 128-bit form as a number. The first byte of the written UUID is the most significant.
    public let value: UInt128
    /// The width in which ``encode(into:)`` sends the UUID. It does not affect equality.
    public let width: Width

    /// 00000000-0000-1000-8000-00805F9B34FB.
    @inlinable
    static var base: UInt128 { 0x0000_0000_0000_1000_8000_0080_5F9B_34FB }

    /// Creates the UUID with a 16-bit short form.
    @inlinable
    public init(_ value: UInt16) {
        self.value = UInt128(value) << 96 | BluetoothUUID.base
        width = .bits16
    }

    /// Creates the UUID with a 32-bit short form. The width stays 32 bits even if the value fits 16 bits.
    @inlinable
    public init(_ value: UInt32) {
        self.value = UInt128(value) << 96 | BluetoothUUID.base
        width = .bits32
    }

    /// Creates a UUID from its 128-bit form. The width stays 128 bits even if the UUID has a short form.
    @inlinable
    public init(_ value: UInt128) {
        self.value = value
        width = .bits128
    }

    /// The 16-bit form, if the UUID has one, whatever its width.
    @inlinable
    public var shortValue: UInt16? {
        value & (1 << 96 - 1) == BluetoothUUID.base ? UInt16(exactly: value >> 96) : nil
    }

    /// The UUID in the shortest width that the Attribute Protocol can carry: 16 or 128 bits (Vol 3, Part F, 3.2.1).
    @inlinable
    public var attributeForm: BluetoothUUID {
        shortValue.map { BluetoothUUID($0) } ?? BluetoothUUID(value)
    }
}

extension BluetoothUUID: Hashable {
    @inlinable
    public static func == (left: BluetoothUUID, right: BluetoothUUID) -> Bool {
        left.value == right.value
    }

    @inlinable
    public func hash(into hasher: inout Hasher) {
        hasher.combine(UInt64(truncatingIfNeeded: value >> 64))
        hasher.combine(UInt64(truncatingIfNeeded: value))
    }
}

extension BluetoothUUID {
    /// Decodes a UUID from all of `bytes`: 2, 4 or 16 bytes, least significant first.
    ///
    /// - Throws: `PacketDecodingError.invalidLength` for another length.
    @inlinable
    @inline(__always)
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        if bytes.byteCount == 2 {
            var reader = ByteReader(bytes)
            self.init(try reader.readUInt16())
        } else {
            self = try BluetoothUUID.long(bytes)
        }
    }

    /// Decodes the rarer widths. A separate function keeps this code out of inlined reads of 16-bit UUIDs.
    @usableFromInline
    static func long(_ bytes: RawSpan) throws(PacketDecodingError) -> BluetoothUUID {
        var reader = ByteReader(bytes)
        return switch bytes.byteCount {
        case 4: BluetoothUUID(try reader.readUInt32())
        case 16: BluetoothUUID(try reader.readUInt128())
        default: throw .invalidLength(bytes.byteCount, field: "UUID")
        }
    }

    /// Appends the UUID in its own width, least significant byte first.
    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        switch width {
        case .bits16: buffer.append(UInt16(truncatingIfNeeded: value >> 96))
        case .bits32: buffer.append(UInt32(truncatingIfNeeded: value >> 96))
        case .bits128: buffer.append(value)
        }
    }
}

extension BluetoothUUID: LosslessStringConvertible, ExpressibleByStringLiteral {
    /// Parses 4 or 8 hexadecimal digits, or the hyphenated form of 36 characters, in either case. Returns nil
    /// otherwise.
    public init?(_ description: String) {
        var value: UInt128 = 0
        var digits = 0
        let count = description.utf8.count
        for (index, character) in description.utf8.enumerated() {
            if count == 36 && (index == 8 || index == 13 || index == 18 || index == 23) {
                guard character == UInt8(ascii: "-") else { return nil }
                continue
            }
            guard digits < 32, let digit = hexadecimalValue(of: character) else { return nil }
            value = value << 4 | UInt128(digit)
            digits += 1
        }
        switch (count, digits) {
        case (4, 4): self.init(UInt16(truncatingIfNeeded: value))
        case (8, 8): self.init(UInt32(truncatingIfNeeded: value))
        case (36, 32): self.init(value)
        default: return nil
        }
    }

    /// - Precondition: the literal is a UUID; see ``init(_:)-(String)``.
    public init(stringLiteral literal: String) {
        guard let uuid = BluetoothUUID(literal) else { preconditionFailure("not a Bluetooth UUID: \(literal)") }
        self = uuid
    }

    /// Upper-case digits: 4, 8 or 36 characters, depending on the width.
    public var description: String {
        var characters: [UInt8] = []
        characters.reserveCapacity(36)
        forEachCharacter { characters.append($0) }
        return String(decoding: characters, as: UTF8.self)
    }

    /// Calls `body` with each character of ``description``, in order. All are ASCII.
    package func forEachCharacter(_ body: (UInt8) -> Void) {
        let octets =
            switch width {
            case .bits16: 2..<4
            case .bits32: 0..<4
            case .bits128: 0..<16
            }
        let halves = (UInt64(truncatingIfNeeded: value >> 64), UInt64(truncatingIfNeeded: value))
        for index in octets {
            if index == 4 || index == 6 || index == 8 || index == 10 { body(UInt8(ascii: "-")) }
            let half = index < 8 ? halves.0 : halves.1
            let octet = UInt8(truncatingIfNeeded: half &>> UInt64(56 - index % 8 * 8))
            body(hexadecimalDigit(octet >> 4))
            body(hexadecimalDigit(octet & 0x0F))
        }
    }
}

private func hexadecimalDigit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
}
