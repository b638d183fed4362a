import BLEByteCoding
import BluetoothSensors
import BluetoothTypes

/// Reads lines `ADDRESS KEY DATA`, each in hexadecimal digits, `-` for no key, and writes a JSON array of reports for
/// each. Each line is decoded by a new decoder.
@main
struct SensorDecoderTool {
    static func main() {
        while let line = readLine() {
            let words = line.split(separator: " ")
            guard words.count == 3, let number = UInt64(words[0], radix: 16), let data = [UInt8](hexadecimal: words[2])
            else {
                print("null")
                continue
            }
            let address = DeviceAddress(number, isRandom: false)
            var decoder = SensorDecoder()
            if let key = BindKey(hexadecimal: words[1]) { decoder.setKey(key, for: address) }
            let reports = decoder.decode(data.rawSpan, from: address, at: Instant(nanoseconds: 0))
            print("[" + reports.map(json).joined(separator: ",") + "]")
        }
    }

    private static func json(_ report: SensorReport) -> String {
        var fields = [
            #""format":\#(quoted(report.format.rawValue))"#, #""protection":"\#(report.protection.rawValue)""#,
            #""readings":[\#(report.readings.map(json).joined(separator: ","))]"#,
        ]
        if let model = report.model { fields.append(#""model":\#(quoted(model))"#) }
        if let firmware = report.firmware { fields.append(#""firmware":\#(quoted(firmware))"#) }
        if let counter = report.counter { fields.append(#""counter":\#(counter)"#) }
        return "{" + fields.joined(separator: ",") + "}"
    }

    private static func json(_ reading: SensorReading) -> String {
        var fields = [#""name":\#(quoted(reading.name))"#, #""class":\#(quoted(reading.deviceClass.rawValue))"#]
        if let unit = reading.unit { fields.append(#""unit":\#(quoted(unit))"#) }
        switch reading.value {
        case .number(let number): fields.append(#""value":\#(number)"#)
        case .text(let text): fields.append(#""value":\#(quoted(text))"#)
        case .boolean(let state): fields.append(#""value":\#(state)"#)
        case .event(let event, let count):
            fields.append(#""event":\#(quoted(event))"#)
            if let count { fields.append(#""count":\#(count)"#) }
        }
        return "{" + fields.joined(separator: ",") + "}"
    }

    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            if scalar == "\"" || scalar == "\\" { result += "\\" }
            result.unicodeScalars.append(scalar)
        }
        return result + "\""
    }
}
