/// A line of a table.
struct Location: Equatable, Sendable {
    /// The name of the file, such as `LinkEvents.hci`.
    let file: String
    /// Counted from 1.
    let line: Int
}

/// A line of a table that the generator rejects.
struct TableError: Error, Equatable, Sendable, CustomStringConvertible {
    let location: Location
    let message: String

    init(_ message: String, at location: Location) {
        self.location = location
        self.message = message
    }

    /// The form in which compilers report errors, so that editors find the line.
    var description: String { "\(Tables.directory)/\(location.file):\(location.line): error: \(message)" }
}

/// All errors of a set of tables, in the order of their lines.
struct TableErrors: Error, CustomStringConvertible {
    let errors: [TableError]

    var description: String { errors.map(\.description).joined(separator: "\n") }
}
