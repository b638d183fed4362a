import BLEJSONText
import FoundationEssentials

/// The contents of a state file: sections by their names.
struct StateDocument: Hashable, Sendable {
    /// The format that this version writes.
    static let format = 1
    private static let formatKey = "format"
    /// Maximum depth of nested values, far above that of this project's own.
    private static let depthLimit = 64

    private static let staleCachesKey = "staleCaches"

    var sections: [String: JSON] = [:]

    /// The names of caches that must not be used, because their files may still have the values of earlier sections.
    var staleCaches: Set<String> {
        get {
            guard case .array(let names)? = sections[StateDocument.staleCachesKey] else { return [] }
            return names.reduce(into: []) { if case .string(let name) = $1 { $0.insert(name) } }
        }
        set {
            sections[StateDocument.staleCachesKey] = newValue.isEmpty ? nil : .array(newValue.sorted().map(JSON.string))
        }
    }

    init() {}

    /// Decodes the contents of a file.
    init(reading file: StateFile, _ contents: Data) throws(StateFileError) {
        guard StateDocument.isShallow(contents),
            let document = try? JSONDecoder().decode([String: JSON].self, from: contents),
            case .integer(let format)? = document[StateDocument.formatKey], format >= 1
        else { throw .damaged(file.path) }
        guard format <= StateDocument.format else { throw .laterFormat(file.path) }
        sections = document.filter { $0.key != StateDocument.formatKey }
    }

    /// The encoded document; nil if it contains numbers that JSON cannot represent.
    var encoded: Data? {
        var document = sections
        document[StateDocument.formatKey] = .integer(StateDocument.format)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return try? encoder.encode(document)
    }

    /// Whether values are nested no deeper than the limit, so that decoding them does not exhaust the stack.
    static func isShallow(_ contents: Data) -> Bool {
        var depth = 0
        var isInString = false
        var isEscaped = false
        for octet in contents {
            if isInString {
                if isEscaped {
                    isEscaped = false
                } else if octet == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if octet == UInt8(ascii: "\"") {
                    isInString = false
                }
                continue
            }
            switch octet {
            case UInt8(ascii: "\""): isInString = true
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                depth += 1
                if depth > depthLimit { return false }
            case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
            default: break
            }
        }
        return true
    }
}

extension StateDocument: CustomReflectable {
    /// Sections hold keys: only their names are shown.
    var customMirror: Mirror { Mirror(self, children: ["sections": sections.keys.sorted()], displayStyle: .struct) }
}
