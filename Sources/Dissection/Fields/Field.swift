import BluetoothTypes

/// What a field is called, in the specification's words and in JSON.
public final class FieldName: Sendable {
    /// As the specification writes it, with spaces: `Connection Handle`.
    public let text: String
    /// As a member of a JSON object: `connectionHandle`.
    public let key: String
    /// The words in lower case, for a line: `connection handle`.
    let words: String
    /// The member that holds the name of an enumerated value, a UUID or a set of flags: `statusName`.
    let nameKey: String

    /// - Parameter text: words with spaces or underscores between them.
    public init(_ text: String) {
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

/// One thing that a packet says.
public struct Field: Sendable {
    /// What it is called.
    public let name: FieldName
    /// What it holds.
    public let value: Value
    /// Whether the line about the packet has it.
    let isInLine: Bool

    /// - Parameter isInLine: whether the line about the packet has it.
    public init(_ name: FieldName, _ value: Value, isInLine: Bool = false) {
        self.name = name
        self.value = value
        self.isInLine = isInLine
    }
}

/// What a field holds, with what is needed to show it and no more: text is made when it is asked for.
public enum Value: Sendable {
    case number(Int64)
    /// A number as it is sent, and what one of it is.
    case measure(Int64, Unit)
    /// A number that is written with this many hexadecimal digits.
    case hexadecimal(UInt64, digits: UInt8)
    /// A number of 128 bits, written with the most significant octet first.
    case wide(UInt128)
    /// A number whose meaning the specification lists; without a name it is reserved.
    case named(UInt64, String?)
    /// A set of bits and what those that are set are called.
    case flags(UInt64, FlagNames, digits: UInt8 = 2)
    case truth(Bool)
    case octets([UInt8])
    /// Text as a device sent it: what shows it makes it safe.
    case text(String)
    case address(UInt64)
    case uuid(BluetoothUUID)
    case list([Value])
    case fields([Field])
}

/// What one of a number is.
public struct Unit: Hashable, Sendable {
    /// In microseconds, or zero where the unit is no time.
    let microseconds: Int64
    /// Written after a number that is no time.
    let symbol: StaticStringValue

    /// A unit of time.
    static func time(microseconds: Int64) -> Unit { Unit(microseconds: microseconds, symbol: .none) }
    static let decibelMilliwatts = Unit(microseconds: 0, symbol: .decibelMilliwatts)
    static let octets = Unit(microseconds: 0, symbol: .octets)

    /// The symbols that there are.
    enum StaticStringValue: Hashable, Sendable {
        case none
        case decibelMilliwatts
        case octets

        var text: String {
            switch self {
            case .none: ""
            case .decibelMilliwatts: "dBm"
            case .octets: "octets"
            }
        }
    }
}

/// The names of a set's bits, from the lowest.
public final class FlagNames: Sendable {
    let names: [String?]

    init(_ names: [String?]) {
        self.names = names
    }

    /// The names of the bits that are set; `bit 7` for one without a name.
    func names(in value: UInt64) -> [String] {
        (0..<64).compactMap { bit in
            guard value >> UInt64(bit) & 1 == 1 else { return nil }
            return (bit < names.count ? names[bit] : nil) ?? "bit \(bit)"
        }
    }
}

/// One protocol's part of a packet.
public struct Layer: Sendable {
    /// The protocols, in the order in which they lie in each other.
    public enum Kind: String, Sendable, CaseIterable {
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
        /// A frame of L2CAP.
        case l2cap
        /// A PDU of the Attribute Protocol.
        case att
        /// A PDU of the Security Manager Protocol.
        case smp
        /// What the recorder says besides packets.
        case note
    }

    /// The protocol.
    public let kind: Kind
    /// The packet's name in its protocol.
    public var title: String
    /// The numbers that name it: an opcode, an event code.
    public var head: [Field]
    /// What the packet says, in the order in which it lies there.
    public var fields: [Field] = []

    init(_ kind: Kind, _ title: String, head: [Field] = []) {
        self.kind = kind
        self.title = title
        self.head = head
    }
}
