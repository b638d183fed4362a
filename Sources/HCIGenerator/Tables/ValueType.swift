/// A Swift type of parameters that `Types.hci` declares: `type Role u8 open @role`, `type ChannelMap coded x40`.
///
/// ` /// Sentence.` at the end of the line documents the fields of the type that have no documentation of their own.
struct ValueType: Equatable, Sendable {
    enum Coding: Equatable, Sendable {
        /// An enumeration of a byte. A reserved value is an error.
        case closed
        /// A raw value. A reserved value is kept.
        case open(FieldType.Integer)
        /// The type has `init(decoding:)` and `encode(into:)`.
        case coded
    }

    let name: String
    let coding: Coding
    /// The type in layouts.
    let layout: String
    /// The documentation of a field that has none.
    let documentation: String?

    /// Parses a line of `Types.hci`; nil if it is not a definition.
    init?(parsing line: String) {
        let mark = line.firstRange(of: " /// ")
        documentation = mark.map { String(line[$0.upperBound...]) }
        guard documentation?.hasSuffix(".") != false else { return nil }
        let words = line[..<(mark?.lowerBound ?? line.endIndex)].split(separator: " ").map { String($0) }
        guard words.first == "type", words.count >= 4, words[1].first?.isUppercase == true else { return nil }
        name = words[1]
        layout = words[words.count - 1]
        switch Array(words[2..<words.count - 1]) {
        case ["coded"]: coding = .coded
        case ["u8", "closed"]: coding = .closed
        case let form where form.count == 2 && form[1] == "open":
            guard let integer = FieldType.Integer(rawValue: form[0]), integer != .u24, integer != .i16 else {
                return nil
            }
            coding = .open(integer)
        default: return nil
        }
    }

    /// The number of bytes on the wire; nil if it varies.
    var byteCount: Int? {
        switch coding {
        case .closed: 1
        case .open(let integer): integer.byteCount
        case .coded: codedByteCount
        }
    }

    /// The number of bytes of a coded type: from `x40`, `bytes64`, or `ad8of31`, which has a length before the data.
    private var codedByteCount: Int? {
        guard let match = layout.wholeMatch(of: /(x|bytes|ad8of)(\d+)/), let count = Int(match.2) else { return nil }
        return switch match.1 {
        case "x": count / 8
        case "bytes": count
        default: 1 + count
        }
    }

    /// The expression that reads the field `field` of the specification.
    func decoding(_ field: String) -> String {
        switch coding {
        case .closed: "try reader.readValue(\"\(field)\")"
        case .open(let integer): "\(name)(rawValue: try reader.read\(integer.wireName)())"
        case .coded: "try \(name)(decoding: &reader)"
        }
    }

    /// The statement that appends the property.
    func encoding(_ property: String) -> String {
        coding == .coded ? "\(property).encode(into: &buffer)" : "buffer.append(\(property).rawValue)"
    }
}
