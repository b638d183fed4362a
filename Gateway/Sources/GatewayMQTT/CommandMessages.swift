import BLE
import BluetoothSensors
import BluetoothTypes
import GatewayCore

extension CommandRequest {
    /// The greatest size of a result, in bytes. Many brokers end the connection when they receive a larger message.
    static let resultSizeLimit = 65_536

    /// The result as one line of JSON, or the error that it is too large.
    func text(of result: Result<DeviceCommandOutcome, DeviceCommandError>, gateway: String) -> String {
        let text = unlimitedText(of: result, gateway: gateway)
        guard text.utf8.count > Self.resultSizeLimit else { return text }
        let reason = "the result has \(text.utf8.count) bytes; at most \(Self.resultSizeLimit) are published"
        return unlimitedText(of: .failure(DeviceCommandError(.tooLarge, reason)), gateway: gateway)
    }

    private func unlimitedText(
        of result: Result<DeviceCommandOutcome, DeviceCommandError>,
        gateway: String
    ) -> String {
        var fields = [
            ("id", identifier.map(JSONText.string) ?? "null"), ("gateway", JSONText.string(gateway)),
        ]
        if let name { fields.append(("command", JSONText.string(name))) }
        if let address { fields.append(("address", JSONText.string("\(address)"))) }
        switch result {
        case .success(let outcome):
            fields.append(("success", "true"))
            switch outcome {
            case .done: break
            case .value(let value, let characteristic): fields += JSONText.fields(value, of: characteristic)
            case .services(let services):
                fields.append(("services", JSONText.list(services.map(JSONText.service))))
            case .paired(let identity):
                fields.append(("identity", JSONText.string("\(identity)")))
                fields.append(("identityType", JSONText.string(identity.isRandom ? "random" : "public")))
            }
        case .failure(let error):
            fields.append(("success", "false"))
            fields.append(("error", JSONText.error(error)))
        }
        return JSONText.object(fields)
    }
}

extension DeviceNotification {
    /// The notification as one line of JSON.
    func text(gateway: String, boot: String, sequence: UInt64) -> String {
        var fields = [
            ("gateway", JSONText.string(gateway)), ("boot", JSONText.string(boot)), ("sequence", "\(sequence)"),
            ("address", JSONText.string("\(DeviceAddress(address, isRandom: false))")),
        ]
        switch content {
        case .value(let value): fields += JSONText.fields(value, of: characteristic)
        case .ended(let error):
            fields.append(("characteristic", JSONText.string("\(characteristic)")))
            fields.append(("ended", JSONText.error(error)))
        }
        return JSONText.object(fields)
    }
}

extension JSONText {
    fileprivate static func list(_ elements: [String]) -> String { "[\(elements.joined(separator: ", "))]" }

    fileprivate static func error(_ error: DeviceCommandError) -> String {
        var fields = [("code", string(error.code.rawValue))]
        if let number = error.attributeError { fields.append(("attributeError", "\(number)")) }
        fields.append(("text", string(error.text)))
        return object(fields)
    }

    /// The fields of a value: hexadecimal, and decoded if the characteristic is a standard one.
    fileprivate static func fields(_ value: [UInt8], of characteristic: BluetoothUUID) -> [(String, String)] {
        let text = "\(characteristic)"
        var fields = [("characteristic", string(text)), ("value", string(value.hexadecimal))]
        if let reading = CharacteristicValue(decoding: value, of: characteristic)?.fields.first,
            case .number(let decoded) = reading.value
        {
            fields.append(("reading", string(reading.name)))
            fields.append(("decoded", self.number(decoded)))
            if let unit = reading.unit { fields.append(("unit", string(unit))) }
        }
        return fields
    }

    fileprivate static func service(_ service: RemoteService) -> String {
        let characteristics = service.characteristics.map { characteristic in
            object([
                ("characteristic", string("\(characteristic.uuid)")),
                ("properties", list(characteristic.properties.names.map(string))),
            ])
        }
        return object([("service", string("\(service.uuid)")), ("characteristics", list(characteristics))])
    }
}

extension CharacteristicProperties {
    fileprivate var names: [String] {
        let all: [(CharacteristicProperties, String)] = [
            (.broadcast, "broadcast"), (.read, "read"), (.writeWithoutResponse, "writeWithoutResponse"),
            (.write, "write"), (.notify, "notify"), (.indicate, "indicate"),
            (.authenticatedSignedWrites, "authenticatedSignedWrites"), (.extendedProperties, "extendedProperties"),
        ]
        return all.filter { contains($0.0) }.map(\.1)
    }
}
