/// What is wrong with a line, or what would be right.
struct Complaint: Error, Equatable {
    let message: String

    init(_ message: String) {
        self.message = message
    }
}

/// A script that cannot be read, and where.
struct ScriptError: Error, Equatable, CustomStringConvertible {
    let file: String
    /// Counted from 1; zero where the whole file is meant.
    let line: Int
    let message: String

    var description: String { line > 0 ? "\(file):\(line): \(message)" : "\(file): \(message)" }
}
