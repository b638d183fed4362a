/// The reason why received bytes cannot be decoded as the expected packet.
///
/// Every codec of the stack throws this type. Reporting a malformed packet therefore costs no allocation. A caller
/// handles a malformed ATT PDU and a malformed HCI event alike: count it, answer as the protocol requires, and
/// continue.
public enum PacketDecodingError: Error, Sendable, Equatable {
    /// A field needs `needed` bytes, but only `available` are left.
    case truncated(needed: Int, available: Int)
    /// The packet is complete, but `count` more bytes follow it.
    case trailingBytes(count: Int)
    /// A length field, or the length of the whole packet, has a value that the specification does not allow.
    case invalidLength(Int, field: StaticString)
    /// A field holds a value that the specification does not define, or forbids here.
    case invalidValue(UInt64, field: StaticString)

    public static func == (left: PacketDecodingError, right: PacketDecodingError) -> Bool {
        switch (left, right) {
        case (.truncated(let needed, let available), .truncated(let otherNeeded, let otherAvailable)):
            needed == otherNeeded && available == otherAvailable
        case (.trailingBytes(let count), .trailingBytes(let otherCount)):
            count == otherCount
        case (.invalidLength(let length, let field), .invalidLength(let otherLength, let otherField)):
            length == otherLength && haveSameName(field, otherField)
        case (.invalidValue(let value, let field), .invalidValue(let otherValue, let otherField)):
            value == otherValue && haveSameName(field, otherField)
        default:
            false
        }
    }
}

private func haveSameName(_ left: StaticString, _ right: StaticString) -> Bool {
    left.withUTF8Buffer { leftBytes in
        right.withUTF8Buffer { rightBytes in
            unsafe leftBytes.elementsEqual(rightBytes)
        }
    }
}

extension PacketDecodingError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .truncated(let needed, let available):
            "truncated: \(needed) bytes needed, \(available) left"
        case .trailingBytes(let count):
            "\(count) bytes after the end of the packet"
        case .invalidLength(let length, let field):
            "\(field) has the invalid length \(length)"
        case .invalidValue(let value, let field):
            "\(field) has the invalid value 0x\(String(value, radix: 16, uppercase: true))"
        }
    }
}
