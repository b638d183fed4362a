import NIOCore

extension Message {
    /// A message about an attribute of a device, with its value: the response to a read, or a notification.
    ///
    /// - Parameters:
    ///   - type: ``MessageType/readResponse`` or ``MessageType/notifyDataResponse``.
    ///   - address: the device's address as a 48-bit number.
    ///   - handle: the attribute's handle.
    ///   - value: the value.
    public static func value(_ type: MessageType, address: UInt64, handle: UInt16, value: [UInt8]) -> Message {
        var payload = ByteBufferAllocator().buffer(capacity: value.count + 16)
        payload.writeField(1, number: address)
        payload.writeField(2, number: UInt64(handle))
        payload.writeField(3, bytes: value)
        return Message(type, payload: payload)
    }

    /// A message about an attribute of a device without a value: the response to a write or to a subscription.
    public static func attribute(_ type: MessageType, address: UInt64, handle: UInt16) -> Message {
        value(type, address: address, handle: handle, value: [])
    }
}
