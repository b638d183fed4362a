import BLEByteCoding

/// The header of a command packet (Vol 4, Part E, 5.4.1).
public struct CommandHeader: Sendable, Equatable {
    /// The length of the header in bytes.
    public static let length = 3

    /// The command to which the parameters belong.
    public var opcode: HCIOpcode
    /// The number of bytes after the header.
    public var parameterTotalLength: UInt8

    /// Creates a header.
    public init(opcode: HCIOpcode, parameterTotalLength: UInt8) {
        self.opcode = opcode
        self.parameterTotalLength = parameterTotalLength
    }

    /// Reads the header and leaves the reader at the parameters.
    public init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
        opcode = HCIOpcode(rawValue: try reader.readUInt16())
        parameterTotalLength = try reader.readUInt8()
    }

    /// Appends the header, of ``length`` bytes.
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(opcode.rawValue)
        buffer.append(parameterTotalLength)
    }
}

/// A command packet as a controller or a capture receives it: its header and the borrowed parameters
/// (Vol 4, Part E, 5.4.1).
public struct CommandPacket: ~Escapable {
    /// The opcode and the length of ``parameters``.
    public let header: CommandHeader
    /// The parameters, with the length that the header gives.
    public let parameters: RawSpan

    /// - Throws: an error if the length of the packet differs from its header.
    @_lifetime(copy packet)
    public init(decoding packet: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(packet)
        header = try CommandHeader(decoding: &reader)
        parameters = try reader.readBytes(count: Int(header.parameterTotalLength))
        try reader.requireEnd()
    }

    /// The command's opcode; compare it with the `opcode` of a ``Command``.
    public var opcode: HCIOpcode { header.opcode }

    /// Decodes the parameters as those of the given command.
    ///
    /// - Throws: an error also if the packet is another command.
    public func decode<C: Command>(_ command: C.Type) throws(PacketDecodingError) -> C {
        guard opcode == C.opcode else { throw .invalidValue(UInt64(opcode.rawValue), field: "Opcode") }
        return try C(decoding: parameters)
    }
}
