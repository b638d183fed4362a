import BLEByteCoding
import BluetoothTypes

extension Event {
    /// The code that all LE events share.
    public static let leMetaCode: UInt8 = 0x3E

    /// Decodes a complete event packet, without the H4 indicator.
    ///
    /// Lists in the packet (reports, completed packets) are only checked as they are iterated.
    ///
    /// - Throws: an error if the length of the packet differs from its header, or its parameters are malformed.
    @_lifetime(copy packet)
    public init(decoding packet: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(packet)
        let code = try reader.readUInt8()
        let parameters = try reader.readBytes(count: Int(try reader.readUInt8()))
        try reader.requireEnd()
        self =
            code == Event.leMetaCode
            ? try Event.decodeLE(parameters) : try Event.decode(code: code, parameters: parameters)
    }

    @inline(__always)
    @_lifetime(copy eventParameters)
    private static func decodeLE(_ eventParameters: RawSpan) throws(PacketDecodingError) -> Event {
        var reader = ByteReader(eventParameters)
        let subeventCode = try reader.readUInt8()
        return try decode(subeventCode: subeventCode, parameters: reader.readRemaining())
    }
}

extension Event {
    /// The event's name in the specification (Vol 4, Part E, 7.7), or its number if it has none.
    ///
    /// - Parameters:
    ///   - code: the event code.
    ///   - subeventCode: the subevent code of an LE Meta event, which is then named by its subevent.
    public static func name(code: UInt8, subeventCode: UInt8? = nil) -> String {
        if code == leMetaCode, let subeventCode {
            return name(ofSubeventCode: subeventCode) ?? "LE subevent 0x" + hexadecimalDigits(subeventCode, count: 2)
        }
        return name(ofCode: code) ?? "event 0x" + hexadecimalDigits(code, count: 2)
    }
}
