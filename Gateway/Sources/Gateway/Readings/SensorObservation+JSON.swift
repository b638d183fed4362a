import Foundation
import GatewayCore
import SensorDecoders

extension SensorObservation {
    /// The observation as one line of JSON, without its line break.
    var json: String {
        var fields = [
            ("time", Self.quoted(time.formatted(Self.timeFormat))), ("gateway", Self.quoted(gateway)),
            ("address", Self.quoted("\(address)")),
        ]
        if let name { fields.append(("name", Self.quoted(name))) }
        if let rssi { fields.append(("rssi", "\(rssi)")) }
        fields.append(("format", Self.quoted(report.format.rawValue)))
        if let model = report.model { fields.append(("model", Self.quoted(model))) }
        if let firmware = report.firmware { fields.append(("firmware", Self.quoted(firmware))) }
        if report.protection == .authenticated { fields.append(("encrypted", "true")) }
        if let counter = report.counter { fields.append(("counter", "\(counter)")) }
        fields.append(("readings", Self.object(report.readings.map { ($0.name, Self.object($0.fields)) })))
        return Self.object(fields)
    }

    private static let timeFormat = Date.ISO8601FormatStyle(includingFractionalSeconds: true)

    private static func object(_ fields: [(String, String)]) -> String {
        "{" + fields.map { "\(quoted($0)): \($1)" }.joined(separator: ", ") + "}"
    }

    /// A string of JSON (RFC 8259, section 7). Control characters, also those of terminals, are escaped.
    fileprivate static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{2028}", "\u{2029}", "\u{202A}"..."\u{202E}",
                "\u{2066}"..."\u{2069}":
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}

extension SensorReading {
    /// The fields of the reading's object, with their values in JSON.
    fileprivate var fields: [(String, String)] {
        var fields: [(String, String)] = []
        switch value {
        case .number(let number): fields.append(("value", Self.json(number)))
        case .text(let text): fields.append(("value", SensorObservation.quoted(text)))
        case .boolean(let state): fields.append(("value", "\(state)"))
        case .event(let event, let count):
            fields.append(("event", SensorObservation.quoted(event)))
            if let count { fields.append(("count", "\(count)")) }
        }
        if let unit { fields.append(("unit", SensorObservation.quoted(unit))) }
        return fields
    }

    /// A finite number in JSON; whole numbers without a fraction.
    private static func json(_ number: Double) -> String {
        guard number.isFinite else { return "null" }
        return Int64(exactly: number).map { "\($0)" } ?? "\(number)"
    }
}
