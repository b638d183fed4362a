import BLEByteCoding

/// An event that reports the result of a command, or that only returns command credits (Vol 4, Part E, 7.7.14).
public struct CommandComplete: EventParameters, ~Escapable {
    public static let code: UInt8 = 0x0E

    /// The number of commands that the host may now send before the next such event.
    public var numHCICommandPackets: UInt8
    /// The command; ``HCIOpcode/none`` if the event only returns credits.
    public var commandOpcode: HCIOpcode
    /// The status, then the command's other return parameters.
    public var returnParameters: RawSpan

    /// Creates an event that borrows `returnParameters`.
    ///
    /// - Parameters:
    ///   - numHCICommandPackets: the number of commands that the host may now send.
    ///   - commandOpcode: the command, or ``HCIOpcode/none``.
    ///   - returnParameters: the status, then the command's other return parameters.
    @_lifetime(copy returnParameters)
    public init(numHCICommandPackets: UInt8 = 1, commandOpcode: HCIOpcode, returnParameters: RawSpan) {
        self.numHCICommandPackets = numHCICommandPackets
        self.commandOpcode = commandOpcode
        self.returnParameters = returnParameters
    }

    @_lifetime(copy parameters)
    public init(decoding parameters: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(parameters)
        numHCICommandPackets = try reader.readUInt8()
        commandOpcode = HCIOpcode(rawValue: try reader.readUInt16())
        returnParameters = reader.readRemaining()
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(numHCICommandPackets)
        buffer.append(commandOpcode.rawValue)
        buffer.append(returnParameters)
    }

    /// The status, with which all return parameters begin; nil if there are none.
    public var status: HCIErrorCode? { returnParameters[checked: 0].map(HCIErrorCode.init(rawValue:)) }

    /// Decodes the command's return parameters: the status first, and the rest only if it is success.
    ///
    /// - Throws: an error if the event belongs to another command, or its return parameters are malformed.
    public func decode<C: Command>(
        _ command: C.Type
    ) throws(PacketDecodingError) -> Result<C.ReturnParameters, HCIErrorCode> {
        guard commandOpcode == C.opcode else {
            throw .invalidValue(UInt64(commandOpcode.rawValue), field: "Command_Opcode")
        }
        var reader = ByteReader(returnParameters)
        let status = HCIErrorCode(rawValue: try reader.readUInt8())
        guard status == .success else { return .failure(status) }
        let value = try C.ReturnParameters(decodingAfterStatus: &reader)
        try reader.requireEnd()
        return .success(value)
    }

    /// Appends the whole event packet for a command that succeeded or failed. A failure returns the status alone.
    public static func encodePacket<C: Command>(
        answering command: C.Type,
        with result: Result<C.ReturnParameters, HCIErrorCode>,
        numHCICommandPackets: UInt8 = 1,
        into buffer: inout PacketBuffer
    ) {
        let start = buffer.beginEvent(code: code)
        buffer.append(numHCICommandPackets)
        buffer.append(C.opcode.rawValue)
        switch result {
        case .success(let value):
            buffer.append(HCIErrorCode.success.rawValue)
            value.encodeAfterStatus(into: &buffer)
        case .failure(let error):
            buffer.append(error.rawValue)
        }
        buffer.endEvent(startingAt: start)
    }
}
