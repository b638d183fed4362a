/// Writes `enum Event`: a case for each event that has a Swift type, and how each is decoded and encoded.
enum EventEnumeration {
    static func file(_ tables: Tables) -> String {
        let events = tables.entries(.event).filter(\.isTyped)
        let subevents = tables.entries(.subevent).filter(\.isTyped)
        var text = SwiftText.file(from: Tables.directory, importing: ["BLEByteCoding"])
        text.documentation("An event packet, decoded. Data of variable length is borrowed (Vol 4, Part E, 7.7).")
        text.block("public enum Event: ~Escapable") { text in
            writeCases(of: events, to: &text)
            text.line()
            writeCases(of: subevents, to: &text)
            text.line()
            text.documentation(
                "An event that has no case: its code, the subevent code of an LE Meta event, and the bytes after it."
            )
            text.line("case unknown(code: UInt8, subeventCode: UInt8?, parameters: RawSpan)")
        }
        text.line()
        text.block("extension Event") { text in
            writeDecoding(events, of: .event, to: &text)
            text.line()
            writeDecoding(subevents, of: .subevent, to: &text)
            text.line()
            writeEncoding(events + subevents, to: &text)
        }
        return text.text
    }

    private static func writeCases(of events: [Entry], to text: inout SwiftText) {
        for event in events {
            text.documentation(PacketDocumentation(entry: event).enumerationCase)
            text.line("case \(caseName(event))(\(event.typeName))")
        }
    }

    private static func caseName(_ entry: Entry) -> String { SwiftName.enumerationCase(entry.name) }

    private static func writeDecoding(_ entries: [Entry], of kind: Entry.Kind, to text: inout SwiftText) {
        let code = kind == .event ? "code" : "subeventCode"
        let unknown = kind == .event ? "code: code, subeventCode: nil" : "code: leMetaCode, subeventCode: subeventCode"
        text.line("@_lifetime(copy parameters)")
        let parameters = "\(code): UInt8, parameters: RawSpan"
        text.block("static func decode(\(parameters)) throws(PacketDecodingError) -> Event") { text in
            text.line("switch \(code) {")
            for entry in entries {
                text.line("case \(entry.typeName).\(code):")
                text.indent { text in
                    text.list(".\(caseName(entry))(", ["try \(entry.typeName)(decoding: parameters)"], ")")
                }
            }
            text.line("default:")
            text.indent { $0.line(".unknown(\(unknown), parameters: parameters)") }
            text.line("}")
        }
    }

    private static func writeEncoding(_ entries: [Entry], to text: inout SwiftText) {
        text.documentation("Appends the whole event packet, without the H4 indicator.")
        text.block("public func encodePacket(into buffer: inout PacketBuffer)") { text in
            text.line("switch self {")
            for entry in entries {
                text.line("case .\(caseName(entry))(let event): event.encodePacket(into: &buffer)")
            }
            text.line("case .unknown(let code, let subeventCode, let parameters):")
            text.indent { text in
                text.line("let start = buffer.beginEvent(code: code)")
                text.line("if let subeventCode { buffer.append(subeventCode) }")
                text.line("buffer.append(parameters)")
                text.line("buffer.endEvent(startingAt: start)")
            }
            text.line("}")
        }
    }
}
