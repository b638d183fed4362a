import BLEByteCoding
import BluetoothTypes

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

    /// Appends the whole event packet for a command that succeeded or failed.
    ///
    /// A failure returns the status. If the return parameters begin with a connection handle, it also returns the
    /// handle, by which the host identifies the connection (Vol 4, Part E, 4.5). The values after the handle are then
    /// zero.
    ///
    /// - Parameters:
    ///   - command: the type of the command.
    ///   - result: the return parameters, or the status of a failure.
    ///   - numHCICommandPackets: the number of commands that the host may now send.
    ///   - connectionHandle: the handle in the command. It is ignored if the return parameters begin with another
    ///     value. With nil, a failure returns the status alone.
    ///   - buffer: the buffer of the packet.
    public static func encodePacket<C: Command>(
        answering command: C.Type,
        with result: Result<C.ReturnParameters, HCIErrorCode>,
        numHCICommandPackets: UInt8 = 1,
        connectionHandle: ConnectionHandle? = nil,
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
            if let connectionHandle, let length = connectionReturnLengths[C.opcode] {
                buffer.append(connectionHandle.rawValue)
                buffer.appendZeros(length - 2)
            }
        }
        buffer.endEvent(startingAt: start)
    }
}

/// The commands whose return parameters begin with the connection handle of the command, and the number of their bytes
/// after the status.
private let connectionReturnLengths: [HCIOpcode: Int] = [
    ReadTransmitPowerLevel.opcode: 3,
    ReadAuthenticatedPayloadTimeout.opcode: 4,
    WriteAuthenticatedPayloadTimeout.opcode: 2,
    ReadRSSI.opcode: 3,
    LEReadChannelMap.opcode: 7,
    LELongTermKeyRequestReply.opcode: 2,
    LELongTermKeyRequestNegativeReply.opcode: 2,
    LERemoteConnectionParameterRequestReply.opcode: 2,
    LERemoteConnectionParameterRequestNegativeReply.opcode: 2,
    LESetDataLength.opcode: 2,
    LEReadPHY.opcode: 4,
    LEPeriodicAdvertisingSyncTransfer.opcode: 2,
    LEPeriodicAdvertisingSetInfoTransfer.opcode: 2,
    LESetPeriodicAdvertisingSyncTransferParameters.opcode: 2,
    LEReadISOTXSync.opcode: 11,
    LERejectCISRequest.opcode: 2,
    LESetupISODataPath.opcode: 2,
    LERemoveISODataPath.opcode: 2,
    LEEnhancedReadTransmitPowerLevel.opcode: 5,
    LESetPathLossReportingParameters.opcode: 2,
    LESetPathLossReportingEnable.opcode: 2,
    LESetTransmitPowerReportingEnable.opcode: 2,
    LECSSetDefaultSettings.opcode: 2,
    LECSWriteCachedRemoteSupportedCapabilities.opcode: 2,
    LECSWriteCachedRemoteFAETable.opcode: 2,
    LECSSetProcedureParameters.opcode: 2,
]
