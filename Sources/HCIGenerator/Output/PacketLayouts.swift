/// Writes the layouts of packets, from which Dissection reads parameters.
enum PacketLayouts {
    static func file(_ tables: Tables) -> String {
        var text = SwiftText.file(from: Tables.directory)
        text.block("extension CommandLayouts") { text in
            let commands = tables.entries(.command)
            write("parameters", commands, \.parameters, to: &text)
            text.line()
            write("returns", commands, \.returns, to: &text)
        }
        text.line()
        text.block("extension EventLayouts") { text in
            write("events", tables.entries(.event), \.parameters, to: &text)
            text.line()
            write("leEvents", tables.entries(.subevent), \.parameters, to: &text)
        }
        return text.text
    }

    /// Writes a table: a line for each entry that has a layout, with its code and the words.
    private static func write(
        _ name: String,
        _ entries: [Entry],
        _ parameters: KeyPath<Entry, Entry.Parameters>,
        to text: inout SwiftText
    ) {
        text.line("static let \(name) = LayoutTable(")
        text.indent { text in
            text.line("\"\"\"")
            for entry in entries {
                guard let words = words(entry[keyPath: parameters]) else { continue }
                let code = SwiftName.plainHexadecimal(entry.code, digits: entry.kind.digits)
                writeWrapped([code] + words, to: &text)
            }
            text.line("\"\"\"")
        }
        text.line(")")
    }

    private static func words(_ parameters: Entry.Parameters) -> [String]? {
        switch parameters {
        case .unknown: nil
        case .layout(let words): words
        case .fields(let fields): fields.flatMap(\.layoutWords)
        }
    }

    /// Writes a line of a string literal, continued with a backslash if it is too long.
    private static func writeWrapped(_ words: [String], to text: inout SwiftText) {
        let indentation = 8
        var current = ""
        for (index, word) in words.enumerated() {
            let isLast = index == words.count - 1
            let extended = current.isEmpty ? word : current + " " + word
            if indentation + extended.count + (isLast ? 0 : 2) > SwiftText.columns {
                text.line(current + " \\")
                current = word
            } else {
                current = extended
            }
        }
        text.line(current)
    }
}
