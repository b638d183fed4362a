import BluetoothTypes

extension PacketDescription {
    /// Appends each field on its own line, in wire order. Each line ends with a line break.
    package func appendTree(to text: inout TextBuffer) {
        for layer in layers {
            text.append("         " as StaticString)
            text.append(layer.title)
            text.append(ascii: "\n")
            layer.head.appendTree(depth: 1, to: &text)
            layer.fields.appendTree(depth: 1, to: &text)
        }
    }
}

extension [Field] {
    fileprivate func appendTree(depth: Int, to text: inout TextBuffer) {
        for field in self {
            for _ in 0..<(8 + depth * 2) { text.append(ascii: " ") }
            text.append(field.name.text)
            text.append(ascii: ":")
            field.value.appendTree(depth: depth, to: &text)
        }
    }
}

extension Value {
    fileprivate func appendTree(depth: Int, to text: inout TextBuffer) {
        switch self {
        case .fields(let fields):
            text.append(ascii: "\n")
            fields.appendTree(depth: depth + 1, to: &text)
        case .list(let values):
            guard !values.isEmpty else {
                text.append(" none\n" as StaticString)
                return
            }
            text.append(ascii: "\n")
            for (index, value) in values.enumerated() {
                for _ in 0..<(8 + depth * 2 + 2) { text.append(ascii: " ") }
                text.append(ascii: "[")
                text.append(decimal: Int64(index))
                text.append(ascii: "]")
                value.appendTree(depth: depth + 1, to: &text)
            }
        default:
            text.append(ascii: " ")
            appendWhole(to: &text)
            text.append(ascii: "\n")
        }
    }

    /// Appends the value with the number sent and its meaning.
    private func appendWhole(to text: inout TextBuffer) {
        switch self {
        case .measure(let number, let unit):
            appendLine(to: &text)
            guard unit != .octets, unit != .decibelMilliwatts else { return }
            text.append(" (" as StaticString)
            text.append(decimal: number)
            text.append(ascii: ")")
        case .named(let number, let name):
            text.append(name ?? "reserved")
            text.append(" (0x" as StaticString)
            text.append(hexadecimal: number, digits: 2)
            text.append(ascii: ")")
        case .flags(let number, _, let digits):
            appendLine(to: &text)
            text.append(" (0x" as StaticString)
            text.append(hexadecimal: number, digits: Int(digits))
            text.append(ascii: ")")
        case .octets(let octets): Value.append(octets, limit: .max, to: &text)
        case .uuid(let uuid):
            text.append(uuid.description)
            if let name = uuid.name {
                text.append(" (" as StaticString)
                text.append(name)
                text.append(ascii: ")")
            }
        default: appendLine(to: &text)
        }
    }
}
