import BluetoothTypes

extension AttributeHandle {
    /// The bytes of the handle in a PDU.
    var bytes: [UInt8] { [UInt8(rawValue & 0xFF), UInt8(rawValue >> 8)] }
}
