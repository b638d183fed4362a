/// Writes the Swift types of one table.
enum PacketTypes {
    /// The file with the types; nil if no entry has one.
    static func file(_ table: Tables.Table) -> String? {
        let entries = table.entries.filter(\.isGenerated)
        guard !entries.isEmpty else { return nil }
        var text = SwiftText.file(
            from: "\(Tables.directory)/\(table.file)",
            importing: ["BLEByteCoding", "BluetoothTypes"]
        )
        for (index, entry) in entries.enumerated() {
            if index > 0 { text.line() }
            write(entry, to: &text)
        }
        return text.text
    }

    /// Writes the structure of one packet.
    static func write(_ entry: Entry, to text: inout SwiftText) {
        guard let sentence = entry.documentation, case .fields(let fields) = entry.parameters else { return }
        text.documentation(sentence.dropLast() + " (Vol 4, Part E, \(entry.section ?? "")).")
        text.block("public struct \(entry.typeName): \(conformances(of: entry.kind))") { text in
            let documentation = PacketDocumentation(entry: entry)
            writeCode(of: entry, documentation, to: &text)
            text.line()
            writeProperties(fields, initializer: documentation.initializer(fields), to: &text)
            text.line()
            writeCoding(of: fields, documentation, to: &text)
            if case .fields(let fields) = entry.returns {
                text.line()
                text.documentation(documentation.returns)
                writeReturns(fields, to: &text)
            }
        }
    }

    private static func conformances(of kind: Entry.Kind) -> String {
        switch kind {
        case .command: "Command, Equatable"
        case .event: "EventParameters, Sendable, Equatable"
        case .subevent: "LEEventParameters, Sendable, Equatable"
        }
    }

    private static func writeCode(
        of entry: Entry,
        _ documentation: PacketDocumentation,
        to text: inout SwiftText
    ) {
        if entry.kind == .command, case .unknown = entry.returns {
            let returns = entry.isAnsweredByStatus ? "NoReturnParameters" : "StatusReturnParameters"
            text.documentation(documentation.returns)
            text.line("public typealias ReturnParameters = \(returns)")
            text.line()
        }
        text.documentation(documentation.code)
        switch entry.kind {
        case .command:
            let group = SwiftName.hexadecimal(entry.code >> 10, digits: 2)
            let command = SwiftName.hexadecimal(entry.code & 0x03FF, digits: 4)
            text.line("public static let opcode = HCIOpcode(group: \(group), command: \(command))")
        case .event: text.line("public static let code: UInt8 = \(entry.literal)")
        case .subevent: text.line("public static let subeventCode: UInt8 = \(entry.literal)")
        }
    }

    /// Writes the properties and the initializer that sets them.
    private static func writeProperties(_ fields: [Field], initializer: String, to text: inout SwiftText) {
        for field in fields {
            text.documentation(field.documentation)
            text.line("public var \(field.swiftName): \(field.type.swiftName)")
        }
        if !fields.isEmpty { text.line() }
        text.documentation(initializer)
        guard !fields.isEmpty else { return text.line("public init() {}") }
        let parameters = fields.map { field in
            "\(field.swiftName): \(field.type.swiftName)" + (field.defaultValue.map { " = \($0)" } ?? "")
        }
        text.list("public init(", parameters, ") {")
        text.indent { text in
            for field in fields { text.line("self.\(field.swiftName) = \(field.swiftName)") }
        }
        text.line("}")
    }

    private static func writeCoding(
        of fields: [Field],
        _ documentation: PacketDocumentation,
        to text: inout SwiftText
    ) {
        text.documentation(documentation.decoding(fields))
        text.block("public init(decoding parameters: RawSpan) throws(PacketDecodingError)") { text in
            guard !fields.isEmpty else { return text.line("try ByteReader(parameters).requireEnd()") }
            text.line("var reader = ByteReader(parameters)")
            for field in fields { text.line("\(field.swiftName) = \(field.type.decoding(field.name))") }
            text.line("try reader.requireEnd()")
        }
        text.line()
        text.documentation(documentation.encoding(fields))
        guard !fields.isEmpty else { return text.line("public func encode(into buffer: inout PacketBuffer) {}") }
        text.block("public func encode(into buffer: inout PacketBuffer)") { text in
            for field in fields { text.line(field.type.encoding(field.swiftName)) }
        }
    }

    private static func writeReturns(_ fields: [Field], to text: inout SwiftText) {
        text.block("public struct ReturnParameters: BLEHCI.ReturnParameters, Equatable") { text in
            writeProperties(fields, initializer: PacketDocumentation.returnsInitializer, to: &text)
            text.line()
            text.documentation(PacketDocumentation.returnsDecoding(fields))
            let declaration = "public init(decodingAfterStatus reader: inout ByteReader) throws(PacketDecodingError)"
            text.block(declaration) { text in
                for field in fields { text.line("\(field.swiftName) = \(field.type.decoding(field.name))") }
            }
            text.line()
            text.documentation(PacketDocumentation.returnsEncoding(fields))
            text.block("public func encodeAfterStatus(into buffer: inout PacketBuffer)") { text in
                for field in fields { text.line(field.type.encoding(field.swiftName)) }
            }
        }
    }
}
