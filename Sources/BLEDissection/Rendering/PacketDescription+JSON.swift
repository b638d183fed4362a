import BLECapture
import BluetoothTypes

extension PacketDescription {
    /// Appends the packet as one JSON object, without a line break.
    ///
    /// Numbers have the values sent, in the units of the specification. Numbers of 64 bits and more are strings. The
    /// name of a number follows it in a member of its own, as do the names of the set bits of a set: `status` and
    /// `statusName`.
    package func appendJSON(to text: inout TextBuffer) {
        text.append("{\"index\":" as StaticString)
        text.append(decimal: Int64(index))
        text.append(",\"time\":\"" as StaticString)
        text.append(time: time)
        text.append("\",\"microseconds\":" as StaticString)
        text.append(decimal: time)
        if let direction {
            text.append(",\"direction\":" as StaticString)
            switch direction {
            case .hostToController: text.append("\"hostToController\"" as StaticString)
            case .controllerToHost: text.append("\"controllerToHost\"" as StaticString)
            }
        }
        if adapter != 0xFFFF {
            text.append(",\"adapter\":" as StaticString)
            text.append(decimal: Int64(adapter))
        }
        text.append(",\"type\":\"" as StaticString)
        text.append(kind.rawValue)
        text.append(ascii: "\"")
        if let link { link.appendJSON(to: &text) }
        for layer in layers { layer.appendJSON(to: &text) }
        if let answered {
            text.append(",\"answers\":{\"index\":" as StaticString)
            text.append(decimal: Int64(answered.index))
            text.append(",\"microseconds\":" as StaticString)
            text.append(decimal: answered.microseconds)
            text.append(ascii: "}")
        }
        if dropped > 0 {
            text.append(",\"dropped\":" as StaticString)
            text.append(decimal: Int64(clamping: dropped))
        }
        if !malformed.isEmpty {
            text.append(",\"malformed\":[" as StaticString)
            for (index, each) in malformed.enumerated() {
                if index > 0 { text.append(ascii: ",") }
                text.append("{\"layer\":\"" as StaticString)
                text.append(each.layer.rawValue)
                text.append("\",\"reason\":" as StaticString)
                text.append(json: each.reason)
                text.append(ascii: "}")
            }
            text.append(ascii: "]")
        }
        text.append(ascii: "}")
    }
}

extension LinkReference {
    fileprivate func appendJSON(to text: inout TextBuffer) {
        text.append(",\"link\":{\"number\":" as StaticString)
        text.append(decimal: Int64(number))
        text.append(",\"handle\":" as StaticString)
        text.append(decimal: Int64(handle))
        if let peer {
            text.append(",\"peer\":\"" as StaticString)
            text.append(address: peer.address)
            text.append(ascii: "\"")
            if let type = peer.type {
                text.append(",\"peerType\":" as StaticString)
                text.append(decimal: Int64(type))
            }
        }
        if let isCentral {
            text.append(isCentral ? ",\"role\":\"central\"" : ",\"role\":\"peripheral\"")
        }
        text.append(ascii: "}")
    }
}

extension Layer {
    fileprivate func appendJSON(to text: inout TextBuffer) {
        text.append(",\"" as StaticString)
        text.append(kind.rawValue)
        text.append("\":{\"name\":" as StaticString)
        text.append(json: title)
        head.appendMembers(to: &text, isFirst: false)
        if kind == .command || kind == .event {
            text.append(",\"parameters\":" as StaticString)
            fields.appendObject(to: &text)
        } else {
            fields.appendMembers(to: &text, isFirst: false)
        }
        text.append(ascii: "}")
    }
}

extension [Field] {
    fileprivate func appendObject(to text: inout TextBuffer) {
        text.append(ascii: "{")
        appendMembers(to: &text, isFirst: true)
        text.append(ascii: "}")
    }

    fileprivate func appendMembers(to text: inout TextBuffer, isFirst: Bool) {
        var isFirst = isFirst
        for field in self {
            if !isFirst { text.append(ascii: ",") }
            isFirst = false
            text.append(ascii: "\"")
            text.append(field.name.key)
            text.append("\":" as StaticString)
            field.value.appendJSON(to: &text)
            field.value.appendNames(of: field.name, to: &text)
        }
    }
}

extension Value {
    fileprivate func appendJSON(to text: inout TextBuffer) {
        switch self {
        case .number(let number), .measure(let number, _): text.append(decimal: number)
        case .named(let number, _): text.append(decimal: Int64(clamping: number))
        case .hexadecimal(let number, let digits), .flags(let number, _, let digits):
            // JSON numbers are exact only up to 53 bits. A wider field is always a string.
            if digits < 14 {
                text.append(decimal: Int64(clamping: number))
            } else {
                text.append("\"0x" as StaticString)
                text.append(hexadecimal: number, digits: Int(digits))
                text.append(ascii: "\"")
            }
        case .wide(let number):
            text.append(ascii: "\"")
            text.append(hexadecimal: UInt64(truncatingIfNeeded: number >> 64), digits: 16)
            text.append(hexadecimal: UInt64(truncatingIfNeeded: number), digits: 16)
            text.append(ascii: "\"")
        case .truth(let truth): text.append(truth ? "true" : "false")
        case .octets(let octets):
            text.append(ascii: "\"")
            text.append(octets: octets)
            text.append(ascii: "\"")
        case .text(let string): text.append(json: string)
        case .address(let address):
            text.append(ascii: "\"")
            text.append(address: address)
            text.append(ascii: "\"")
        case .uuid(let uuid):
            text.append(ascii: "\"")
            text.append(uuid: uuid)
            text.append(ascii: "\"")
        case .list(let values):
            text.append(ascii: "[")
            for (index, value) in values.enumerated() {
                if index > 0 { text.append(ascii: ",") }
                value.appendJSON(to: &text)
            }
            text.append(ascii: "]")
        case .fields(let fields): fields.appendObject(to: &text)
        }
    }

    /// Appends the member with the value's name, if it has a name.
    fileprivate func appendNames(of field: FieldName, to text: inout TextBuffer) {
        switch self {
        case .named(_, let name?): appendName(name, of: field, to: &text)
        case .uuid(let uuid):
            if let name = uuid.name { appendName(name, of: field, to: &text) }
        case .flags(let value, let names, _):
            text.append(",\"" as StaticString)
            text.append(field.nameKey)
            text.append("s\":[" as StaticString)
            for (index, name) in names.names(in: value).enumerated() {
                if index > 0 { text.append(ascii: ",") }
                text.append(json: name)
            }
            text.append(ascii: "]")
        default: break
        }
    }

    private func appendName(_ name: String, of field: FieldName, to text: inout TextBuffer) {
        text.append(",\"" as StaticString)
        text.append(field.nameKey)
        text.append("\":" as StaticString)
        text.append(json: name)
    }
}
