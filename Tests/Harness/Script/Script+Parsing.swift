extension Script {
    /// Maximum depth of included scripts.
    private static let deepestInclusion = 8

    /// Reads a script and the scripts that it includes.
    init(contentsOf path: String) throws(ScriptError) {
        self.path = path
        try include(path, depth: 0)
    }

    private mutating func include(_ path: String, depth: Int) throws(ScriptError) {
        guard depth <= Script.deepestInclusion else {
            throw ScriptError(file: path, line: 0, message: "scripts include each other without end")
        }
        switch readFile(path) {
        case .success(let octets):
            try append(String(decoding: octets, as: UTF8.self), of: path, depth: depth)
        case .failure(let error):
            throw ScriptError(file: path, line: 0, message: "cannot be read: \(error)")
        }
    }

    /// Reads a script's text.
    init(parsing text: String, path: String) throws(ScriptError) {
        self.path = path
        try append(text, of: path, depth: 0)
    }

    private mutating func append(_ text: String, of path: String, depth: Int) throws(ScriptError) {
        var number = 0
        for piece in text.split(separator: "\n", omittingEmptySubsequences: false) {
            number += 1
            let line = String(piece.last == "\r" ? piece.dropLast() : piece).trimmingBlanks
            if line.isEmpty || line.hasPrefix("#") { continue }
            let verb = String(line.prefix { $0 != " " && $0 != "\t" })
            let rest = String(line.dropFirst(verb.count)).trimmingBlanks
            switch verb {
            case "title": title = rest
            case "spec": specification = rest
            case "needs": needs += rest.split(separator: " ").map(String.init)
            case "host": host = rest.split(separator: " ").map(String.init)
            case "include": try include(folder(of: path) + "/" + rest, depth: depth + 1)
            default:
                do throws(Complaint) {
                    let statement = try Statement(parsing: line[...])
                    lines.append(Line(file: path, number: number, text: line, statement: statement))
                } catch {
                    throw ScriptError(file: path, line: number, message: error.message)
                }
            }
        }
    }
}

/// The folder that contains a path.
func folder(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
}
