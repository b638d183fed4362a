/// Writes lookups by code: names, bits of supported commands, and the codes of typed packets.
enum CodeSwitches {
    static func commandNames(_ tables: Tables) -> String {
        var text = SwiftText.file(from: Tables.directory)
        text.block("extension HCIOpcode") { text in
            text.documentation(
                "The command's name in the specification (Vol 4, Part E, 7), or nil. Withdrawn commands are included, "
                    + "because old captures have them."
            )
            writeNames("package var name: String?", of: "rawValue", tables.entries(.command), to: &text)
        }
        return text.text
    }

    static func eventNames(_ tables: Tables) -> String {
        var text = SwiftText.file(from: Tables.directory)
        text.block("extension Event") { text in
            text.documentation("The event's name in the specification (Vol 4, Part E, 7.7), or nil.")
            writeNames("static func name(ofCode code: UInt8) -> String?", of: "code", tables.entries(.event), to: &text)
            text.line()
            text.documentation("The name of an LE Meta event in the specification (Vol 4, Part E, 7.7.65), or nil.")
            writeNames(
                "static func name(ofSubeventCode code: UInt8) -> String?",
                of: "code",
                tables.entries(.subevent),
                to: &text
            )
        }
        return text.text
    }

    static func supportedCommandPositions(_ tables: Tables) -> String {
        var text = SwiftText.file(from: Tables.directory)
        text.block("extension SupportedCommands") { text in
            text.documentation(
                "The number of the command's bit, counted from bit 0 of byte 0 (Vol 4, Part E, 6.27), or nil."
            )
            text.block("static func position(of opcode: HCIOpcode) -> Int?") { text in
                text.line("switch opcode.rawValue {")
                for entry in tables.entries(.command) {
                    guard let bit = entry.bit else { continue }
                    text.line("case \(entry.literal): \(bit.byte) * 8 + \(bit.bit)")
                }
                text.line("default: nil")
                text.line("}")
            }
        }
        return text.text
    }

    private static func writeNames(
        _ declaration: String,
        of value: String,
        _ entries: [Entry],
        to text: inout SwiftText
    ) {
        text.block(declaration) { text in
            text.line("switch \(value) {")
            for entry in entries { text.line("case \(entry.literal): \"\(entry.name)\"") }
            text.line("default: nil")
            text.line("}")
        }
    }

    /// The list from which `BLEHCITests` know that each type has a sample.
    static func typedCodes(_ tables: Tables) -> String {
        var text = SwiftText.file(from: Tables.directory)
        text.documentation("The codes of the packets that have a Swift type.")
        text.block("enum TypedCodes") { text in
            let commands = tables.entries(.command).filter(\.isTyped)
            let returning = commands.filter { entry in
                if case .unknown = entry.returns { false } else { true }
            }
            write("commands: [UInt16]", commands, to: &text)
            text.line()
            text.documentation("Commands with return parameters of their own.")
            write("returns: [UInt16]", returning, to: &text)
            text.line()
            write("events: [UInt8]", tables.entries(.event).filter(\.isTyped), to: &text)
            text.line()
            write("subevents: [UInt8]", tables.entries(.subevent).filter(\.isTyped), to: &text)
        }
        return text.text
    }

    private static func write(_ declaration: String, _ entries: [Entry], to text: inout SwiftText) {
        text.line("static let \(declaration) = [")
        text.indent { text in
            for entry in entries { text.line("\(entry.literal),  // \(entry.name)") }
        }
        text.line("]")
    }
}
