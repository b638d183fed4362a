/// Reads the lines of one table.
///
/// ## Grammar
///
/// A line that begins with `#`, after any spaces, is a comment. An entry begins with its head:
///
///     command|event|subevent CODE Name (section, bit BYTE.BIT, answered by status, by hand)
///
/// The code is hexadecimal. All in the parentheses is optional; so are they. The section is one of Vol 4, Part E of
/// Core 6.1; entries that it no longer has, have no section and no bit. The lines of the entry follow, indented:
/// - `/// Sentence.` documents the Swift type. Such an entry needs a section, and gets a type.
/// - `Name(swiftName):type/layout! = default /// documentation` is a field of the type. `(swiftName)` is needed only if
///   ``SwiftName/property(_:)`` gives another name, `/layout` only if dissection shows another type. `!` includes the
///   field in the line about the packet. The default is a Swift expression. The documentation follows the name of the
///   field and the unit of the type, after a comma unless it begins with `;` or `:`. A field needs it unless its type
///   has a unit or documentation.
/// - `returns`: the fields after it follow the status in Command Complete.
/// - `none`: the packet of an entry without a generated type has no parameters.
///
/// An entry without a sentence has words in the grammar of layouts (`ParameterLayout` in Dissection) in place of
/// fields, in as many lines as needed. An entry of one line has a name only.
///
/// These are the types of fields:
/// - `u8 u16 u24 u32 u64 u128 i8 i16`, and `x8` to `x64`, which dissection shows in hexadecimal;
/// - `u16*625us`, a count of units of time, and `i8dBm`;
/// - `handle`, a connection handle, and `flag`, a byte that is 0 or 1;
/// - `typedAddress`, `randomAddress`, `publicAddress` and `PeerAddress`;
/// - the types that `Types.hci` declares: see ``ValueType``.
struct TableReader {
    let file: String
    let valueTypes: [String: ValueType]
    private(set) var entries: [Entry] = []
    private(set) var errors: [TableError] = []
    /// Whether the lines describe what the command returns.
    private var isInReturns = false
    /// Whether the rest of the current entry is skipped, because a line that decides how to read it was rejected.
    private var isSkipping = false

    init(file: String, text: String, valueTypes: [String: ValueType]) {
        self.file = file
        self.valueTypes = valueTypes
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let location = Location(file: file, line: index + 1)
            do throws(TableError) {
                try read(String(line), at: location)
            } catch {
                errors.append(error)
            }
        }
        endEntry()
    }

    private mutating func read(_ line: String, at location: Location) throws(TableError) {
        let text = String(line.drop { $0 == " " })
        if text.isEmpty || text.hasPrefix("#") { return }
        guard line.hasPrefix(" ") else {
            endEntry()
            isInReturns = false
            isSkipping = true
            entries.append(try Self.head(text, at: location))
            isSkipping = false
            return
        }
        guard !isSkipping else { return }
        guard var entry = entries.popLast() else {
            throw TableError("a line of an entry before the first entry", at: location)
        }
        defer { entries.append(entry) }
        try read(text, of: &entry, at: location)
    }

    private mutating func read(_ text: String, of entry: inout Entry, at location: Location) throws(TableError) {
        if text.hasPrefix("/// ") {
            isSkipping = true
            try document(&entry, String(text.dropFirst(4)), at: location)
            isSkipping = false
        } else if text == "none" {
            guard !entry.isGenerated, case .unknown = entry.parameters, !isInReturns else {
                throw TableError("'none' stands alone, in an entry without a generated type", at: location)
            }
            entry.parameters = .layout([])
        } else if text == "returns" {
            isSkipping = true
            try beginReturns(of: &entry, at: location)
            isSkipping = false
        } else if entry.isGenerated {
            append(try field(text, at: location), to: isInReturns ? \.returns : \.parameters, of: &entry)
        } else {
            let words = text.split(separator: " ").map { String($0) }
            for word in words where !Self.isLayoutWord(word) {
                throw TableError("'\(word)' is not a word of a layout, such as Name:type", at: location)
            }
            try append(words, to: isInReturns ? \.returns : \.parameters, of: &entry, at: location)
        }
    }

    private func document(_ entry: inout Entry, _ sentence: String, at location: Location) throws(TableError) {
        guard case .unknown = entry.parameters, !entry.isGenerated, !isInReturns else {
            throw TableError("the sentence about a type is one line, the first of its entry", at: location)
        }
        guard sentence.hasSuffix(".") else { throw TableError("the sentence does not end with a period", at: location) }
        guard !entry.isByHand else { throw TableError("a type by hand has its documentation in Swift", at: location) }
        guard entry.section != nil else { throw TableError("'\(entry.name)' has no section", at: location) }
        entry.documentation = sentence
        entry.parameters = .fields([])
    }

    private mutating func beginReturns(of entry: inout Entry, at location: Location) throws(TableError) {
        guard entry.kind == .command, !isInReturns, !entry.isAnsweredByStatus else {
            throw TableError("only a command returns parameters, and not one that is answered by status", at: location)
        }
        if case .unknown = entry.parameters {
            throw TableError("'returns' without parameters before it: write 'none' or the parameters", at: location)
        }
        isInReturns = true
        entry.returns = entry.isGenerated ? .fields([]) : .layout([])
    }

    private func append(_ field: Field, to path: WritableKeyPath<Entry, Entry.Parameters>, of entry: inout Entry) {
        guard case .fields(let fields) = entry[keyPath: path] else { return }
        entry[keyPath: path] = .fields(fields + [field])
    }

    private func append(
        _ words: [String],
        to path: WritableKeyPath<Entry, Entry.Parameters>,
        of entry: inout Entry,
        at location: Location
    ) throws(TableError) {
        switch entry[keyPath: path] {
        case .layout([]) where path == \.parameters: throw TableError("parameters after 'none'", at: location)
        case .layout(let earlier): entry[keyPath: path] = .layout(earlier + words)
        case .unknown: entry[keyPath: path] = .layout(words)
        case .fields: break
        }
    }

    /// Checks conditions that need all lines of an entry.
    private mutating func endEntry() {
        guard !isSkipping, let entry = entries.last else { return }
        for parameters in [entry.parameters, entry.returns] {
            guard case .fields(let fields) = parameters else { continue }
            var names: Set<String> = []
            for field in fields where !names.insert(field.swiftName).inserted {
                errors.append(TableError("a second field '\(field.swiftName)'", at: field.location))
            }
        }
        if isInReturns {
            switch entry.returns {
            case .fields(let fields) where !fields.isEmpty: break
            case .layout(let words) where !words.isEmpty: break
            default: errors.append(TableError("'returns' of '\(entry.name)' has no fields", at: entry.location))
            }
        }
    }
}
