import ByteCoding

/// The header of a command packet (Vol 4, Part E, 5.4.1).
public struct CommandHeader: Sendable, Equatable {
    /// In octets.
    public static let length = 3

    public var opcode: Opcode
    /// How many octets follow the header.
    public var parameterTotalLength: UInt8

    public init(opcode: Opcode, parameterTotalLength: UInt8) {
        self.opcode = opcode
        self.parameterTotalLength = parameterTotalLength
    }

    /// Reads the header and leaves the reader at the parameters.
    public init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
        opcode = Opcode(rawValue: try reader.readUInt16())
        parameterTotalLength = try reader.readUInt8()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(opcode.rawValue)
        buffer.append(parameterTotalLength)
    }
}

/// A command packet as a controller or a capture sees it: its header and the borrowed parameters (Vol 4, Part E, 5.4.1).
public struct CommandPacket: ~Escapable {
    public let header: CommandHeader
    /// As many octets as the header says.
    public let parameters: RawSpan

    /// - Throws: when the packet is shorter or longer than its header says.
    @_lifetime(copy packet)
    public init(decoding packet: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(packet)
        header = try CommandHeader(decoding: &reader)
        parameters = try reader.readBytes(count: Int(header.parameterTotalLength))
        try reader.requireEnd()
    }

    /// Which command it is; compare with the `opcode` of a ``Command``.
    public var opcode: Opcode { header.opcode }

    /// Decodes the parameters as those of the command named.
    ///
    /// - Throws: also when the packet is another command.
    public func decode<C: Command>(_ command: C.Type) throws(PacketDecodingError) -> C {
        guard opcode == C.opcode else { throw .invalidValue(UInt64(opcode.rawValue), field: "Opcode") }
        return try C(decoding: parameters)
    }
}
