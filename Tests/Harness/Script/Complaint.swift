/// The error in a line, or a hint for a correct line.
struct Complaint: Error, Equatable {
    let message: String

    init(_ message: String) {
        self.message = message
    }
}

/// The position and error of a script that cannot be read.
struct ScriptError: Error, Equatable, CustomStringConvertible {
    let file: String
    /// The line, from 1; zero for the whole file.
    let line: Int
    let message: String

    var description: String { line > 0 ? "\(file):\(line): \(message)" : "\(file): \(message)" }
}
