import BluetoothSensors
import Foundation

extension SensorObservation {
    /// The observation as one line of JSON, without its line break.
    public var json: String { json([]) }

    /// The observation as one line of JSON, with what a consumer needs to notice that messages are lost or come twice.
    ///
    /// - Parameters:
    ///   - boot: distinguishes the runs of the gateway.
    ///   - sequence: the number of the message in this run.
    public func json(boot: String, sequence: UInt64) -> String {
        json([("boot", JSONText.string(boot)), ("sequence", "\(sequence)")])
    }

    private func json(_ origin: [(String, String)]) -> String {
        var fields = [
            ("time", JSONText.string(time.formatted(Self.timeFormat))), ("gateway", JSONText.string(gateway)),
        ]
        fields += origin
        fields.append(("address", JSONText.string("\(address)")))
        if let name { fields.append(("name", JSONText.string(name))) }
        if let rssi { fields.append(("rssi", "\(rssi)")) }
        fields.append(("format", JSONText.string(report.format.rawValue)))
        if let model = report.model { fields.append(("model", JSONText.string(model))) }
        if let firmware = report.firmware { fields.append(("firmware", JSONText.string(firmware))) }
        if report.protection == .authenticated { fields.append(("encrypted", "true")) }
        if let counter = report.counter { fields.append(("counter", "\(counter)")) }
        fields.append(("readings", JSONText.object(report.readings.map { ($0.name, JSONText.object($0.fields)) })))
        return JSONText.object(fields)
    }

    private static let timeFormat = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
}

extension SensorReading {
    /// The fields of the reading's object, with their values in JSON.
    fileprivate var fields: [(String, String)] {
        var fields: [(String, String)] = []
        switch value {
        case .number(let number): fields.append(("value", JSONText.number(number)))
        case .text(let text): fields.append(("value", JSONText.string(text)))
        case .boolean(let state): fields.append(("value", "\(state)"))
        case .event(let event, let count):
            fields.append(("event", JSONText.string(event)))
            if let count { fields.append(("count", "\(count)")) }
        }
        if let unit { fields.append(("unit", JSONText.string(unit))) }
        return fields
    }
}
