import BLEProfiles
import BluetoothSensors
import BluetoothTypes

/// A value as hexadecimal digits, followed by its meaning if the attribute's format is known: `63 (99 %)`. Otherwise
/// the text follows that the value spells, if it does.
///
/// - Parameters:
///   - uuid: The UUID of the characteristic or the descriptor; nil if it is not known.
///   - format: The characteristic's presentation format, if it has one.
///   - greatestCount: The number of bytes whose digits are shown.
func readable(
    _ value: [UInt8],
    of uuid: BluetoothUUID?,
    format: PresentationFormat? = nil,
    greatestCount: Int = .max
) -> String {
    guard let uuid, let decoded = CharacteristicValue(decoding: value, of: uuid, format: format) else {
        return readable(value, greatestCount: greatestCount)
    }
    // Digits that are all of the meaning are not repeated.
    guard decoded.text != value.hexadecimal else { return value.hexadecimal }
    let isCut = value.count > greatestCount
    let digits = [UInt8](value.prefix(greatestCount)).hexadecimal + (isCut ? "… (\(value.count) bytes)" : "")
    let text = terminalSafe(decoded.text)
    // A single text is in quotation marks.
    return text.hasPrefix("\"") ? "\(digits) \(text)" : "\(digits) (\(text))"
}

extension [JSON.Member] {
    /// The digits of a value, and its text and fields if the attribute's format is known.
    static func value(_ value: [UInt8], of uuid: BluetoothUUID?, format: PresentationFormat? = nil) -> [JSON.Member] {
        let digits = JSON.Member(key: "value", value: JSON(value))
        guard let uuid, let decoded = CharacteristicValue(decoding: value, of: uuid, format: format) else {
            return [digits]
        }
        return [
            digits,
            JSON.Member(key: "text", value: .string(decoded.text)),
            JSON.Member(key: "fields", value: decoded.fields.json),
        ]
    }
}
