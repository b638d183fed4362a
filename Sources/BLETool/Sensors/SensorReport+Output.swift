import BLEProfiles
import BluetoothSensors

extension SensorReport {
    /// The format and the readings: `bthome_v2: temperature 22.04 °C, humidity 49.5 %`.
    var line: String {
        let encrypted = protection == .authenticated ? " (encrypted)" : ""
        let model = model.map { " \(terminalSafe($0))" } ?? ""
        let content = problem?.text ?? (readings.isEmpty ? "no readings" : readings.line)
        return "\(terminalSafe(format.rawValue))\(model)\(encrypted): \(content)"
    }

    /// An object with the members that ble-gateway writes, and `problem` if the report cannot be trusted or decrypted.
    var json: JSON {
        var members: [JSON.Member] = [.init(key: "format", value: .string(format.rawValue))]
        if let model { members.append(.init(key: "model", value: .string(model))) }
        if let firmware { members.append(.init(key: "firmware", value: .string(firmware))) }
        if protection == .authenticated { members.append(.init(key: "encrypted", value: .bool(true))) }
        if let problem { members.append(.init(key: "problem", value: .string(problem.identifier))) }
        if let counter { members.append(.init(key: "counter", value: .integer(Int(counter)))) }
        members.append(.init(key: "readings", value: readings.json))
        return .object(members)
    }

    /// Why the report has no readings: a word for programs, and a text for people.
    private var problem: (identifier: String, text: String)? {
        switch protection {
        case .none, .authenticated: nil
        case .needsKey: (protection.rawValue, "encrypted, needs a key")
        case .wrongKey: (protection.rawValue, "encrypted, does not match the key")
        case .replayed: (protection.rawValue, "replayed, not newer than an earlier report")
        case .downgraded: (protection.rawValue, "not encrypted, although there is a key")
        case .unsupported: (protection.rawValue, "encrypted in a way that is not supported")
        }
    }
}

extension [SensorReading] {
    /// Names, values and units, separated by commas.
    var line: String {
        map { terminalSafe("\($0.name.replacingUnderscores) \($0.valueText)") }.joined(separator: ", ")
    }

    /// An object with a member for each reading.
    var json: JSON {
        .object(map { JSON.Member(key: $0.name, value: $0.json) })
    }
}

extension SensorReading {
    fileprivate var valueText: String {
        switch value {
        case .number(let number): unit.map { "\(numberText(number)) \($0)" } ?? numberText(number)
        case .text(let text): "\"\(text)\""
        case .boolean(let state): state ? "yes" : "no"
        case .event(let event, let count): count.map { "\(event) \($0)" } ?? event
        }
    }

    fileprivate var json: JSON {
        var members: [JSON.Member] = []
        switch value {
        case .number(let number):
            members.append(.init(key: "value", value: Int(exactly: number).map { .integer($0) } ?? .decimal(number)))
        case .text(let text): members.append(.init(key: "value", value: .string(text)))
        case .boolean(let state): members.append(.init(key: "value", value: .bool(state)))
        case .event(let event, let count):
            members.append(.init(key: "event", value: .string(event)))
            if let count { members.append(.init(key: "count", value: .integer(count))) }
        }
        if let unit { members.append(.init(key: "unit", value: .string(unit))) }
        return .object(members)
    }
}

/// A number without a fraction if it is whole.
private func numberText(_ number: Double) -> String {
    Int(exactly: number).map(String.init) ?? "\(number)"
}

extension String {
    fileprivate var replacingUnderscores: String { String(map { $0 == "_" ? " " : $0 }) }
}
