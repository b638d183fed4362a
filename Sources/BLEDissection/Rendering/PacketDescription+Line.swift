import BLECapture
import BluetoothTypes

extension PacketDescription {
    /// Appends the packet as one line, without a line break: number, time of day in UTC, adapter, direction, summary.
    package func appendLine(to text: inout TextBuffer, isColored: Bool = false) {
        text.append(decimal: Int64(index), width: 6)
        text.append(ascii: " ")
        text.append(clock: time)
        if adapter == 0xFFFF {
            text.append("    -" as StaticString)
        } else {
            text.append(" hci" as StaticString)
            text.append(decimal: Int64(adapter))
        }
        switch direction {
        case .hostToController?: text.append(" < " as StaticString)
        case .controllerToHost?: text.append(" > " as StaticString)
        case nil: text.append(" = " as StaticString)
        }
        if isColored { text.append(color.sequence) }
        appendSummary(to: &text)
        if isColored { text.append(Color.none.sequence) }
        if let answered {
            text.append(" [#" as StaticString)
            text.append(decimal: Int64(answered.index))
            text.append(", " as StaticString)
            text.append(duration: answered.microseconds)
            text.append(ascii: "]")
        }
        if dropped > 0 {
            text.append(" [" as StaticString)
            text.append(decimal: Int64(clamping: dropped))
            text.append(dropped == 1 ? " packet dropped before]" : " packets dropped before]")
        }
        for each in malformed {
            text.append(ascii: " ")
            if isColored { text.append(Color.red.sequence) }
            text.append("[malformed \(each.layer.rawValue): " as String)
            text.append(each.reason)
            text.append(ascii: "]")
            if isColored { text.append(Color.none.sequence) }
        }
    }

    /// Appends the summary of the packet, as its innermost protocol names it.
    private func appendSummary(to text: inout TextBuffer) {
        guard let last = layers.last else {
            text.append(kind.rawValue)
            return
        }
        switch kind {
        case .acl, .synchronous, .iso:
            text.append(kind == .acl ? "ACL " : kind == .iso ? "ISO " : "Synchronous ")
            text.append("0x" as StaticString)
            let handle: UInt64 =
                if case .hexadecimal(let value, _)? = layers.first?.head.first?.value { value } else { 0 }
            text.append(hexadecimal: handle, digits: 4)
            if let peer = link?.peer {
                text.append(ascii: " ")
                text.append(address: peer.address)
            }
            text.append(ascii: " ")
            appendInner(last, to: &text)
        case .command: appendTitled(last, prefix: "Command ", to: &text)
        case .event: appendTitled(last, prefix: "Event ", to: &text)
        default: appendTitled(last, prefix: "", to: &text)
        }
    }

    private func appendInner(_ layer: Layer, to text: inout TextBuffer) {
        switch layer.kind {
        case .acl, .synchronous, .iso:
            text.append("fragment:" as StaticString)
            text.append(ascii: " ")
            layer.head.last?.value.appendLine(to: &text)
        case .l2cap:
            text.append("L2CAP " as StaticString)
            if layer.title != "L2CAP" { text.append(layer.title) } else { text.append("frame" as StaticString) }
            text.append(" CID " as StaticString)
            layer.head.appendLine(to: &text, areNamed: false)
            appendFields(of: layer, to: &text)
        default: appendTitled(layer, prefix: layer.kind == .att ? "ATT " : "SMP ", to: &text)
        }
    }

    private func appendTitled(_ layer: Layer, prefix: String, to text: inout TextBuffer) {
        text.append(prefix)
        text.append(layer.title)
        appendFields(of: layer, to: &text)
    }

    /// Appends a colon and the fields, if any of them is shown.
    private func appendFields(of layer: Layer, to text: inout TextBuffer) {
        let end = text.count
        text.append(": " as StaticString)
        let start = text.count
        layer.fields.appendLine(to: &text)
        if text.count == start { text.truncate(to: end) }
    }

    private enum Color {
        case none, red, green, yellow, blue, magenta, cyan

        var sequence: StaticString {
            switch self {
            case .none: "\u{1B}[0m"
            case .red: "\u{1B}[31m"
            case .green: "\u{1B}[32m"
            case .yellow: "\u{1B}[33m"
            case .blue: "\u{1B}[34m"
            case .magenta: "\u{1B}[35m"
            case .cyan: "\u{1B}[36m"
            }
        }
    }

    private var color: Color {
        switch layers.last?.kind {
        case .command: .blue
        case .event: .magenta
        case .att: .green
        case .smp: .yellow
        case .l2cap, .acl, .synchronous, .iso: .cyan
        case .note, nil: .none
        }
    }
}

extension [Field] {
    /// Appends the fields of the summary line, separated by commas.
    func appendLine(to text: inout TextBuffer, areNamed: Bool = true) {
        var isFirst = true
        var index = startIndex
        while index < endIndex {
            let field = self[index]
            index += 1
            guard field.isInLine, !field.isSuccess, !field.value.isSilent else { continue }
            if !isFirst { text.append(", " as StaticString) }
            isFirst = false
            // An address is written before its type.
            if case .named(let number, let name) = field.value, index < endIndex,
                case .address(let address) = self[index].value, self[index].isInLine
            {
                text.append(address: address)
                text.append(" (" as StaticString)
                text.append(name ?? "type \(number)")
                text.append(ascii: ")")
                index += 1
                continue
            }
            field.appendLine(to: &text, isNamed: areNamed)
        }
    }
}

extension Field {
    fileprivate var isSuccess: Bool {
        if case .named(0, _) = value, name.key == "status" { true } else { false }
    }

    fileprivate func appendLine(to text: inout TextBuffer, isNamed: Bool) {
        if isNamed, value.needsName(in: name) {
            text.append(name.words)
            text.append(ascii: " ")
        }
        value.appendLine(to: &text)
    }
}

extension Value {
    /// Whether the summary line shows nothing of the value.
    fileprivate var isSilent: Bool {
        switch self {
        case .list(let values): values.allSatisfy(\.isSilent)
        case .fields(let fields): fields.allSatisfy { !$0.isInLine || $0.isSuccess || $0.value.isSilent }
        default: false
        }
    }

    /// Whether the summary line must name the value.
    fileprivate func needsName(in name: FieldName) -> Bool {
        switch self {
        case .number, .measure, .truth, .wide: true
        case .hexadecimal: name.key != "connectionHandle" && name.key != "handle"
        case .flags: name.key != "configuration"
        case .named(_, nil): true
        case .named, .octets, .text, .address, .uuid, .list, .fields: false
        }
    }

    func appendLine(to text: inout TextBuffer) {
        switch self {
        case .number(let number): text.append(decimal: number)
        case .measure(let number, let unit): unit.append(number, to: &text)
        case .hexadecimal(let number, let digits):
            text.append("0x" as StaticString)
            text.append(hexadecimal: number, digits: Int(digits))
        case .wide(let number):
            text.append(hexadecimal: UInt64(truncatingIfNeeded: number >> 64), digits: 16)
            text.append(hexadecimal: UInt64(truncatingIfNeeded: number), digits: 16)
        case .named(let number, let name):
            if let name {
                text.append(name)
            } else {
                text.append("0x" as StaticString)
                text.append(hexadecimal: number, digits: 2)
            }
        case .flags(let number, let names, _):
            let set = names.names(in: number)
            text.append(set.isEmpty ? "none" : set.joined(separator: " + "))
        case .truth(let truth): text.append(truth ? "yes" : "no")
        case .octets(let octets): Value.append(octets, limit: 32, to: &text)
        case .text(let string):
            text.append(ascii: "\"")
            text.append(foreign: string)
            text.append(ascii: "\"")
        case .address(let address): text.append(address: address)
        case .uuid(let uuid):
            if let name = uuid.name { text.append(name) } else { text.append(uuid: uuid) }
        case .list(let values): Value.append(values, to: &text)
        case .fields(let fields): fields.appendLine(to: &text)
        }
    }

    /// Appends values in brackets. Values that the summary line does not show are left out.
    private static func append(_ values: [Value], to text: inout TextBuffer) {
        var isFirst = true
        for value in values {
            let end = text.count
            text.append(isFirst ? "[" : "; ")
            let start = text.count
            value.appendLine(to: &text)
            if text.count == start { text.truncate(to: end) } else { isFirst = false }
        }
        if !isFirst { text.append(ascii: "]") }
    }

    /// Appends bytes as digits, followed by their text if they are printable.
    static func append(_ octets: [UInt8], limit: Int, to text: inout TextBuffer) {
        guard !octets.isEmpty else {
            text.append("(empty)" as StaticString)
            return
        }
        text.append(octets: octets.prefix(limit))
        if octets.count > limit {
            text.append("… (" as String)
            text.append(decimal: Int64(octets.count))
            text.append(" bytes)" as StaticString)
        } else if octets.isSpelling {
            text.append(" \"" as StaticString)
            text.append(printable: octets)
            text.append(ascii: "\"")
        }
    }
}

extension Unit {
    /// Appends a number of this unit in human-readable form.
    func append(_ number: Int64, to text: inout TextBuffer) {
        if microseconds > 0 {
            text.append(duration: number.multipliedReportingOverflow(by: microseconds).partialValue)
        } else {
            text.append(decimal: number)
            text.append(ascii: " ")
            text.append(symbol.text)
        }
    }
}
