/// Why bytes from the air or from a controller could not be read as the packet they claim to be.
///
/// Every codec of the stack throws this one type, so that a malformed packet costs no allocation to report and a caller
/// can handle a bad ATT PDU and a bad HCI event alike: count it, answer as the protocol says, go on.
public enum PacketDecodingError: Error, Sendable, Equatable {
    /// A field needs `needed` octets where only `available` are left.
    case truncated(needed: Int, available: Int)
    /// The packet is complete, but `count` octets follow it that belong to nothing.
    case trailingBytes(count: Int)
    /// A length field, or the length of the whole packet, is not one that the specification allows.
    case invalidLength(Int, field: StaticString)
    /// A field holds a value that the specification does not define or forbids here.
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
            "truncated: \(needed) octets needed, \(available) left"
        case .trailingBytes(let count):
            "\(count) octets after the end of the packet"
        case .invalidLength(let length, let field):
            "\(field) has the invalid length \(length)"
        case .invalidValue(let value, let field):
            "\(field) has the invalid value 0x\(String(value, radix: 16, uppercase: true))"
        }
    }
}
