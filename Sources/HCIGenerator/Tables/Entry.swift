/// A command, an event or a subevent of LE Meta, as its table describes it.
struct Entry: Sendable {
    enum Kind: String, Comparable, Sendable {
        case command, event, subevent

        /// The number of hexadecimal digits of a code.
        var digits: Int { self == .command ? 4 : 2 }

        static func < (left: Kind, right: Kind) -> Bool { left.rawValue < right.rawValue }
    }

    /// Parameters, or return parameters after the status.
    enum Parameters: Sendable {
        /// The table does not describe them.
        case unknown
        /// Words in the grammar of layouts. An empty list means no parameters.
        case layout([String])
        /// The properties of a Swift type.
        case fields([Field])
    }

    /// A command's bit in Read Local Supported Commands (Vol 4, Part E, 6.27).
    struct Bit: Hashable, Sendable {
        /// 0 to 63.
        let byte: Int
        /// 0 to 7.
        let bit: Int
    }

    let location: Location
    let kind: Kind
    let code: UInt16
    /// The name in the specification.
    let name: String
    /// The section of Vol 4, Part E.
    var section: String?
    var bit: Bit?
    /// Whether the controller answers with Command Status, so that the command returns nothing.
    var isAnsweredByStatus = false
    /// Whether the Swift type is written by hand.
    var isByHand = false
    /// The sentence about the generated Swift type; nil for an entry without one.
    var documentation: String?
    var parameters = Parameters.unknown
    var returns = Parameters.unknown

    /// Whether the generator writes a Swift type.
    var isGenerated: Bool { documentation != nil }

    /// Whether there is a Swift type.
    var isTyped: Bool { isGenerated || isByHand }

    /// The name of the Swift type.
    var typeName: String { SwiftName.type(name) }

    /// The code as a Swift literal.
    var literal: String { SwiftName.hexadecimal(code, digits: kind.digits) }
}

/// A parameter of a packet that has a Swift type.
struct Field: Sendable {
    let location: Location
    /// The name in the specification, with underscores.
    let name: String
    /// The name of the property.
    let swiftName: String
    let type: FieldType
    /// The type in the layout, if it differs from the layout of `type`.
    let layout: String?
    /// Whether dissection shows the field in the line about a packet.
    let isInLine: Bool
    /// A Swift expression.
    let defaultValue: String?
    /// Documentation that follows the name and the unit.
    let note: String?

    /// Whether something is known about the field besides its name.
    var isDocumented: Bool { type.unit != nil || note != nil || type.documentation != nil }

    /// The documentation of the property: the names in the specification, the unit, then the note or that of the type.
    var documentation: String {
        let names = type.isTypedAddress ? "`\(name)_Type` and `\(name)`" : "`\(name)`"
        let text = note ?? type.documentation ?? ""
        guard let unit = type.unit else {
            return names + (text.hasPrefix("In ") ? ", " : ": ") + Self.lowercasingFirstWord(of: text)
        }
        guard !text.isEmpty else { return "\(names), \(unit)." }
        let continues = text.hasPrefix(";") || text.hasPrefix(":")
        return "\(names), \(unit)" + (continues ? "" : ", ") + Self.lowercasingFirstWord(of: text)
    }

    /// The text without the capital of its first word, unless that word is a name in capitals, such as LE.
    private static func lowercasingFirstWord(of text: String) -> String {
        guard let second = text.dropFirst().first, !second.isUppercase else { return text }
        return text.prefix(1).lowercased() + text.dropFirst()
    }

    /// The words of the layout: one, or two for an address with its type.
    var layoutWords: [String] {
        let mark = isInLine ? "!" : ""
        if type.isTypedAddress {
            return ["\(name)_Type:\(layout ?? "@addressType")\(mark)", "\(name):address\(mark)"]
        }
        return ["\(name):\(layout ?? type.layout)\(mark)"]
    }
}
