extension TableReader {
    /// Reads the first line of an entry.
    static func head(_ text: String, at location: Location) throws(TableError) -> Entry {
        guard let match = text.wholeMatch(of: /(command|event|subevent) ([0-9A-F]+) ([^()]*[^() ])(?: \((.*)\))?/),
            let kind = Entry.Kind(rawValue: String(match.1)), match.2.count == kind.digits,
            let code = UInt16(match.2, radix: 16)
        else {
            throw TableError("expected 'command 0C03 Name (…)', 'event 0E Name' or 'subevent 01 Name'", at: location)
        }
        var entry = Entry(location: location, kind: kind, code: code, name: String(match.3))
        for attribute in (match.4 ?? "").split(separator: ",").map({ $0.drop { $0 == " " } }) {
            try apply(String(attribute), to: &entry)
        }
        return entry
    }

    private static func apply(_ attribute: String, to entry: inout Entry) throws(TableError) {
        switch attribute {
        case "by hand": entry.isByHand = true
        case "answered by status" where entry.kind == .command: entry.isAnsweredByStatus = true
        case _ where entry.kind == .command && attribute.hasPrefix("bit "):
            let numbers = attribute.dropFirst(4).split(separator: ".").map { Int($0) }
            guard numbers.count == 2, let byte = numbers[0], let bit = numbers[1],
                (0..<64).contains(byte), (0..<8).contains(bit)
            else {
                throw TableError("'\(attribute)' is not a byte, 0 to 63, and a bit, 0 to 7", at: entry.location)
            }
            entry.bit = Entry.Bit(byte: byte, bit: bit)
        case _ where attribute.wholeMatch(of: /\d+(\.\d+)+/) != nil: entry.section = attribute
        default: throw TableError("unknown attribute '\(attribute)'", at: entry.location)
        }
    }

    /// Reads a field of a Swift type.
    func field(_ line: String, at location: Location) throws(TableError) -> Field {
        var text = line
        var note: String?
        if let mark = text.firstRange(of: " /// ") {
            note = String(text[mark.upperBound...])
            text = String(text[..<mark.lowerBound])
            guard note?.hasSuffix(".") == true else {
                throw TableError("the documentation does not end with a period", at: location)
            }
        }
        let form = /(\w+)(?:\((\w+)\))?:([^\s!\/]+)(?:\/([^\s!]+))?(!)?(?: = (.*\S))?/
        guard let match = text.wholeMatch(of: form) else {
            throw TableError("expected 'Name(swiftName):type/layout! = default /// documentation'", at: location)
        }
        guard let type = FieldType(String(match.3), valueTypes: valueTypes) else {
            throw TableError("unknown type '\(match.3)'", at: location)
        }
        let field = Field(
            location: location,
            name: String(match.1),
            swiftName: match.2.map { String($0) } ?? SwiftName.property(String(match.1)),
            type: type,
            layout: match.4.map { String($0) },
            isInLine: match.5 != nil,
            defaultValue: match.6.map { String($0) },
            note: note
        )
        guard field.isDocumented else {
            throw TableError("'\(field.name)' has no documentation, and neither has its type", at: location)
        }
        return field
    }

    /// Whether a word has the form of one in a layout. Dissection's tests read the types.
    static func isLayoutWord(_ word: String) -> Bool {
        word == "}" || word.wholeMatch(of: /\w+\??\{/) != nil || word.wholeMatch(of: /\w+:[^\s!]+!?/) != nil
    }
}
