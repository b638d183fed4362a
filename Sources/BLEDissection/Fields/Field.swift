import BluetoothTypes

/// The name of a field, in the specification's words and in JSON.
package final class FieldName: Sendable {
    /// The name as in the specification, with spaces: `Connection Handle`.
    package let text: String
    /// The name as a member of a JSON object: `connectionHandle`.
    package let key: String
    /// The words in lower case, for a line: `connection handle`.
    let words: String
    /// The member that holds the name of an enumerated value, a UUID or a set of flags: `statusName`.
    let nameKey: String

    /// - Parameter text: words with spaces or underscores between them.
    package init(_ text: String) {
        let words = text.split { $0 == " " || $0 == "_" }
        self.text = words.joined(separator: " ")
        self.words = words.map { FieldName.isAcronym($0) ? String($0) : $0.lowercased() }.joined(separator: " ")
        key =
            words.enumerated().map { index, word in
                index == 0
                    ? (FieldName.isAcronym(word) ? FieldName.loweredAcronym(word) : word.lowercased())
                    : word.prefix(1).uppercased() + word.dropFirst()
            }.joined()
        nameKey = key + "Name"
    }

    private static func isAcronym(_ word: Substring) -> Bool {
        word.dropFirst().contains { $0.isUppercase || $0.isNumber }
    }

    /// `RSSI` as `rssi`, `PHYs` as `phys`, `P-256` as `p256`.
    private static func loweredAcronym(_ word: Substring) -> String {
        word.lowercased().filter { $0 != "-" }
    }
}

/// One field of a packet.
package struct Field: Sendable {
    /// The name of the field.
    package let name: FieldName
    /// The value of the field.
    package let value: Value
    /// Whether the summary line of the packet includes the field.
    let isInLine: Bool

    /// - Parameter isInLine: whether the summary line of the packet includes the field.
    package init(_ name: FieldName, _ value: Value, isInLine: Bool = false) {
        self.name = name
        self.value = value
        self.isInLine = isInLine
    }
}

/// The value of a field, with the information to show it. Text is created only on request.
package enum Value: Sendable {
    case number(Int64)
    /// A number as sent, and its unit.
    case measure(Int64, Unit)
    /// A number written with this many hexadecimal digits.
    case hexadecimal(UInt64, digits: UInt8)
    /// A number of 128 bits, written with the most significant byte first.
    case wide(UInt128)
    /// A number whose meaning the specification lists. A number without a name is reserved.
    case named(UInt64, String?)
    /// A set of bits, and the names of its bits.
    case flags(UInt64, FlagNames, digits: UInt8 = 2)
    case truth(Bool)
    case octets([UInt8])
    /// Text as sent by a device. Code that shows it must replace unsafe characters.
    case text(String)
    case address(UInt64)
    case uuid(BluetoothUUID)
    case list([Value])
    case fields([Field])
}

/// The unit of a number.
package struct Unit: Hashable, Sendable {
    /// The unit in microseconds, or zero if it is not a unit of time.
    let microseconds: Int64
    /// The symbol after a number that is not a time.
    let symbol: StaticStringValue

    /// Creates a unit of time.
    static func time(microseconds: Int64) -> Unit { Unit(microseconds: microseconds, symbol: .none) }
    static let decibelMilliwatts = Unit(microseconds: 0, symbol: .decibelMilliwatts)
    static let octets = Unit(microseconds: 0, symbol: .octets)

    /// The available symbols.
    enum StaticStringValue: Hashable, Sendable {
        case none
        case decibelMilliwatts
        case octets

        var text: String {
            switch self {
            case .none: ""
            case .decibelMilliwatts: "dBm"
            case .octets: "bytes"
            }
        }
    }
}

/// The names of the bits of a set, from the lowest.
package final class FlagNames: Sendable {
    let names: [String?]

    init(_ names: [String?]) {
        self.names = names
    }

    /// Returns the names of the set bits. A bit without a name is written as `bit 7`.
    func names(in value: UInt64) -> [String] {
        (0..<64).compactMap { bit in
            guard value >> UInt64(bit) & 1 == 1 else { return nil }
            return (bit < names.count ? names[bit] : nil) ?? "bit \(bit)"
        }
    }
}

/// The part of a packet that belongs to one protocol.
package struct Layer: Sendable {
    /// The protocols, from the outermost to the innermost.
    package enum Kind: String, Sendable, CaseIterable {
        /// An HCI command.
        case command
        /// An HCI event.
        case event
        /// HCI synchronous data.
        case synchronous
        /// HCI ISO data.
        case iso
        /// HCI ACL data.
        case acl
        /// An L2CAP frame.
        case l2cap
        /// An Attribute Protocol PDU.
        case att
        /// A Security Manager Protocol PDU.
        case smp
        /// A note of the recorder.
        case note
    }

    /// The protocol.
    package let kind: Kind
    /// The packet's name in its protocol.
    package var title: String
    /// The numbers that identify the packet, such as an opcode or an event code.
    package var head: [Field]
    /// The fields of the packet, in wire order.
    package var fields: [Field] = []

    init(_ kind: Kind, _ title: String, head: [Field] = []) {
        self.kind = kind
        self.title = title
        self.head = head
    }
}
