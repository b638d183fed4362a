/// The documentation of the declarations in a packet's type, besides the properties.
struct PacketDocumentation {
    let entry: Entry

    /// The documentation of the opcode, the event code or the subevent code.
    var code: String {
        let code = "\(entry.name), \(entry.literal)"
        switch entry.kind {
        case .command:
            let position = entry.bit.map { ", at byte \($0.byte), bit \($0.bit) of ``SupportedCommands``" }
            return "The opcode of \(code)\(position ?? "")."
        case .event: return "The event code of \(code)."
        case .subevent: return "The subevent code of \(code)."
        }
    }

    /// The documentation of the type of the return parameters.
    var returns: String {
        switch entry.returns {
        case .unknown where entry.isAnsweredByStatus:
            "No return parameters, because Command Status answers the command."
        case .unknown: "The status is the only return parameter."
        case .layout, .fields: "The return parameters of \(entry.name) that follow the status."
        }
    }

    /// The documentation of the initializer that sets `fields`.
    func initializer(_ fields: [Field]) -> String {
        "Creates the \(packet)" + (fields.isEmpty ? ", which has no parameters." : " from its parameters.")
    }

    /// The documentation of the initializer that decodes `fields`.
    func decoding(_ fields: [Field]) -> String {
        if fields.isEmpty { return "Checks that there are no parameters." }
        return Self.length(fields).map { "Decodes the parameters, which are \($0) long." }
            ?? "Decodes the parameters, which fill `parameters`."
    }

    /// The documentation of the method that encodes `fields`.
    func encoding(_ fields: [Field]) -> String {
        if fields.isEmpty { return "Appends nothing, because there are no parameters." }
        let length = Self.length(fields).map { ", which are \($0) long," } ?? ","
        return "Appends the parameters\(length) without the \(header)."
    }

    /// The documentation of the initializer that sets the return parameters.
    static let returnsInitializer = "Creates the return parameters of a command that succeeded."

    /// The documentation of the initializer that decodes the return parameters.
    static func returnsDecoding(_ fields: [Field]) -> String {
        "Decodes the \(length(fields) ?? "parameters") after the status, which was success."
    }

    /// The documentation of the method that encodes the return parameters.
    static func returnsEncoding(_ fields: [Field]) -> String {
        "Appends the \(length(fields) ?? "parameters") after the status."
    }

    /// The documentation of the case of `Event`.
    var enumerationCase: String {
        let section = entry.section.map { " (Vol 4, Part E, \($0))" } ?? ""
        return "\(entry.name), \(entry.kind == .event ? "event" : "subevent") code \(entry.literal)\(section)."
    }

    private var packet: String { entry.kind == .command ? "command" : "event" }

    private var header: String {
        switch entry.kind {
        case .command: "command header"
        case .event: "event header"
        case .subevent: "event header and the subevent code"
        }
    }

    /// The length of all fields, such as "2 bytes"; nil if it varies.
    private static func length(_ fields: [Field]) -> String? {
        var count = 0
        for field in fields {
            guard let byteCount = field.type.byteCount else { return nil }
            count += byteCount
        }
        return count == 1 ? "1 byte" : "\(count) bytes"
    }
}
