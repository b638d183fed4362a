/// A Swift type of parameters that `Types.hci` declares: `type Role u8 open @role`, `type ChannelMap coded x40`.
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

    /// Parses a line of `Types.hci`; nil if it is not a definition.
    init?(parsing line: String) {
        let words = line.split(separator: " ").map { String($0) }
        guard words.first == "type", words.count >= 4, words[1].first?.isUppercase == true else { return nil }
        name = words[1]
        layout = words[words.count - 1]
        switch Array(words[2..<words.count - 1]) {
        case ["coded"]: coding = .coded
        case ["u8", "closed"]: coding = .closed
        case let form where form.count == 2 && form[1] == "open":
            guard let integer = FieldType.Integer(rawValue: form[0]), integer != .u24 else { return nil }
            coding = .open(integer)
        default: return nil
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
