import ESPHomeMessages
import NIOCore

/// The fields of a request to read an attribute of a device.
///
/// Reads are frequent. They are decoded from the payload without a message object, if the payload has nothing else.
struct AttributeFields: Hashable {
    /// The device's address.
    private(set) var address: UInt64 = 0
    /// The attribute's handle.
    private(set) var handle: UInt32 = 0

    /// Decodes the payload of a message.
    ///
    /// - Throws: ``ProtocolError/undecodableMessage(_:)``.
    init(_ message: Message) throws(ProtocolError) {
        if let fields = AttributeFields(plain: message.payload) {
            self = fields
        } else {
            // The request to read a descriptor has the same fields.
            let request = try message.decode(as: ESPHomeBluetoothGATTReadRequest.self)
            address = request.address
            handle = request.handle
        }
    }

    /// Decodes a payload; nil if it has other fields, or a number of more than 9 bytes.
    init?(plain payload: ByteBuffer) {
        var payload = payload
        while let tag = payload.readInteger(as: UInt8.self) {
            guard let number = payload.readVariableLength() else { return nil }
            switch tag {
            case 1 << 3: address = number
            case 2 << 3: handle = UInt32(truncatingIfNeeded: number)
            default: return nil
            }
        }
    }
}
