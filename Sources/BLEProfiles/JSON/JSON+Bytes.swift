@_exported import BLEJSONText
import BluetoothTypes

extension JSON {
    /// Bytes as hexadecimal digits.
    package init(_ bytes: [UInt8]) { self = .string(bytes.hexadecimal) }
}
