/// All tables: the value types and the entries, checked together.
struct Tables: Sendable {
    /// The folder of the tables, relative to the root of the package.
    static let directory = "Sources/BLEHCI/Tables"
    /// The table that declares the value types.
    static let typesFile = "Types.hci"

    /// The name of a table and its entries, in the order of their kinds and codes.
    struct Table: Sendable {
        let file: String
        let entries: [Entry]
    }

    /// In the order of their names.
    let tables: [Table]

    /// The entries of all tables.
    var entries: [Entry] { tables.flatMap(\.entries) }

    /// The entries of one kind, by code.
    func entries(_ kind: Entry.Kind) -> [Entry] {
        entries.filter { $0.kind == kind }.sorted { $0.code < $1.code }
    }

    /// Reads and checks tables.
    ///
    /// - Parameter texts: the text of each table by the name of its file.
    /// - Throws: all errors that were found.
    init(_ texts: [String: String]) throws(TableErrors) {
        var errors: [TableError] = []
        let valueTypes = Self.valueTypes(texts[Self.typesFile] ?? "", &errors)
        var tables: [Table] = []
        for (file, text) in texts.sorted(by: { $0.key < $1.key }) where file != Self.typesFile {
            let reader = TableReader(file: file, text: text, valueTypes: valueTypes)
            errors += reader.errors
            tables.append(Table(file: file, entries: reader.entries))
        }
        self.tables = tables
        errors += tables.flatMap { Self.disorder($0.entries) }
        errors += Self.duplicates(entries)
        guard errors.isEmpty else {
            throw TableErrors(
                errors: errors.sorted { ($0.location.file, $0.location.line) < ($1.location.file, $1.location.line) }
            )
        }
    }

    private static func valueTypes(_ text: String, _ errors: inout [TableError]) -> [String: ValueType] {
        var types: [String: ValueType] = [:]
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            if line.isEmpty || line.hasPrefix("#") { continue }
            let location = Location(file: typesFile, line: index + 1)
            guard let type = ValueType(parsing: String(line)) else {
                let form = "expected 'type Name u8 closed|open layout /// Sentence.', or 'coded'"
                errors.append(TableError(form, at: location))
                continue
            }
            if types.updateValue(type, forKey: type.name) != nil {
                errors.append(TableError("a second type '\(type.name)'", at: location))
            }
        }
        return types
    }

    /// Reports entries of one table whose code is lower than that of the entry before them.
    private static func disorder(_ entries: [Entry]) -> [TableError] {
        zip(entries, entries.dropFirst()).compactMap { first, second in
            guard (first.kind, first.code) > (second.kind, second.code) else { return nil }
            let order = "\(second.kind) \(second.literal) after \(first.kind) \(first.literal)"
            return TableError("\(order): entries are in ascending order", at: second.location)
        }
    }

    /// Reports entries that share a code, a bit or a Swift type with an earlier entry.
    private static func duplicates(_ entries: [Entry]) -> [TableError] {
        var errors: [TableError] = []
        var codes: Set<String> = []
        var bits: Set<Entry.Bit> = []
        var types: Set<String> = []
        for entry in entries {
            if !codes.insert("\(entry.kind) \(entry.code)").inserted {
                errors.append(TableError("a second \(entry.kind) \(entry.literal)", at: entry.location))
            } else if entry.isTyped, !types.insert(entry.typeName).inserted {
                errors.append(TableError("a second type '\(entry.typeName)'", at: entry.location))
            }
            if let bit = entry.bit, !bits.insert(bit).inserted {
                errors.append(TableError("a second command with bit \(bit.byte).\(bit.bit)", at: entry.location))
            }
        }
        return errors
    }
}
