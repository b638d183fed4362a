import ByteCoding

/// An event packet, decoded; what is variable in it is borrowed (Vol 4, Part E, 7.7).
public enum Event: ~Escapable {
    case disconnectionComplete(DisconnectionComplete)
    case encryptionChange(EncryptionChange)
    case encryptionChangeV2(EncryptionChangeV2)
    case encryptionKeyRefreshComplete(EncryptionKeyRefreshComplete)
    case authenticatedPayloadTimeoutExpired(AuthenticatedPayloadTimeoutExpired)
    case readRemoteVersionInformationComplete(ReadRemoteVersionInformationComplete)
    case commandComplete(CommandComplete)
    case commandStatus(CommandStatus)
    case hardwareError(HardwareError)
    case numberOfCompletedPackets(NumberOfCompletedPackets)
    case dataBufferOverflow(DataBufferOverflow)

    case leConnectionComplete(LEConnectionComplete)
    case leAdvertisingReport(LEAdvertisingReport)
    case leConnectionUpdateComplete(LEConnectionUpdateComplete)
    case leReadRemoteFeaturesComplete(LEReadRemoteFeaturesComplete)
    case leLongTermKeyRequest(LELongTermKeyRequest)
    case leRemoteConnectionParameterRequest(LERemoteConnectionParameterRequest)
    case leDataLengthChange(LEDataLengthChange)
    case leReadLocalP256PublicKeyComplete(LEReadLocalP256PublicKeyComplete)
    case leGenerateDHKeyComplete(LEGenerateDHKeyComplete)
    case leEnhancedConnectionComplete(LEEnhancedConnectionComplete)
    case leEnhancedConnectionCompleteV2(LEEnhancedConnectionCompleteV2)
    case leDirectedAdvertisingReport(LEDirectedAdvertisingReport)
    case lePHYUpdateComplete(LEPHYUpdateComplete)
    case leExtendedAdvertisingReport(LEExtendedAdvertisingReport)
    case lePeriodicAdvertisingSyncEstablished(LEPeriodicAdvertisingSyncEstablished)
    case lePeriodicAdvertisingReport(LEPeriodicAdvertisingReport)
    case lePeriodicAdvertisingSyncLost(LEPeriodicAdvertisingSyncLost)
    case leScanTimeout(LEScanTimeout)
    case leAdvertisingSetTerminated(LEAdvertisingSetTerminated)
    case leScanRequestReceived(LEScanRequestReceived)
    case leChannelSelectionAlgorithm(LEChannelSelectionAlgorithm)

    /// An event that has no case of its own: its code, the subevent code of an LE Meta event, and all that follows.
    case unknown(code: UInt8, subeventCode: UInt8?, parameters: RawSpan)

    /// The code that all LE events share.
    public static let leMetaCode: UInt8 = 0x3E

    /// Decodes a whole event packet, without the H4 indicator.
    ///
    /// Lists inside it (reports, completed packets) are only checked as they are walked.
    ///
    /// - Throws: when the packet is shorter or longer than its header says, or its parameters are malformed.
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

    @_lifetime(copy parameters)
    private static func decode(code: UInt8, parameters: RawSpan) throws(PacketDecodingError) -> Event {
        switch code {
        case DisconnectionComplete.code:
            .disconnectionComplete(try DisconnectionComplete(decoding: parameters))
        case EncryptionChange.code:
            .encryptionChange(try EncryptionChange(decoding: parameters))
        case EncryptionChangeV2.code:
            .encryptionChangeV2(try EncryptionChangeV2(decoding: parameters))
        case EncryptionKeyRefreshComplete.code:
            .encryptionKeyRefreshComplete(try EncryptionKeyRefreshComplete(decoding: parameters))
        case AuthenticatedPayloadTimeoutExpired.code:
            .authenticatedPayloadTimeoutExpired(try AuthenticatedPayloadTimeoutExpired(decoding: parameters))
        case ReadRemoteVersionInformationComplete.code:
            .readRemoteVersionInformationComplete(try ReadRemoteVersionInformationComplete(decoding: parameters))
        case CommandComplete.code:
            .commandComplete(try CommandComplete(decoding: parameters))
        case CommandStatus.code:
            .commandStatus(try CommandStatus(decoding: parameters))
        case HardwareError.code:
            .hardwareError(try HardwareError(decoding: parameters))
        case NumberOfCompletedPackets.code:
            .numberOfCompletedPackets(try NumberOfCompletedPackets(decoding: parameters))
        case DataBufferOverflow.code:
            .dataBufferOverflow(try DataBufferOverflow(decoding: parameters))
        default:
            .unknown(code: code, subeventCode: nil, parameters: parameters)
        }
    }

    @_lifetime(copy eventParameters)
    private static func decodeLE(_ eventParameters: RawSpan) throws(PacketDecodingError) -> Event {
        var reader = ByteReader(eventParameters)
        let subeventCode = try reader.readUInt8()
        let parameters = reader.readRemaining()
        return switch subeventCode {
        case LEConnectionComplete.subeventCode:
            .leConnectionComplete(try LEConnectionComplete(decoding: parameters))
        case LEAdvertisingReport.subeventCode:
            .leAdvertisingReport(try LEAdvertisingReport(decoding: parameters))
        case LEConnectionUpdateComplete.subeventCode:
            .leConnectionUpdateComplete(try LEConnectionUpdateComplete(decoding: parameters))
        case LEReadRemoteFeaturesComplete.subeventCode:
            .leReadRemoteFeaturesComplete(try LEReadRemoteFeaturesComplete(decoding: parameters))
        case LELongTermKeyRequest.subeventCode:
            .leLongTermKeyRequest(try LELongTermKeyRequest(decoding: parameters))
        case LERemoteConnectionParameterRequest.subeventCode:
            .leRemoteConnectionParameterRequest(try LERemoteConnectionParameterRequest(decoding: parameters))
        case LEDataLengthChange.subeventCode:
            .leDataLengthChange(try LEDataLengthChange(decoding: parameters))
        case LEReadLocalP256PublicKeyComplete.subeventCode:
            .leReadLocalP256PublicKeyComplete(try LEReadLocalP256PublicKeyComplete(decoding: parameters))
        case LEGenerateDHKeyComplete.subeventCode:
            .leGenerateDHKeyComplete(try LEGenerateDHKeyComplete(decoding: parameters))
        case LEEnhancedConnectionComplete.subeventCode:
            .leEnhancedConnectionComplete(try LEEnhancedConnectionComplete(decoding: parameters))
        case LEEnhancedConnectionCompleteV2.subeventCode:
            .leEnhancedConnectionCompleteV2(try LEEnhancedConnectionCompleteV2(decoding: parameters))
        case LEDirectedAdvertisingReport.subeventCode:
            .leDirectedAdvertisingReport(try LEDirectedAdvertisingReport(decoding: parameters))
        case LEPHYUpdateComplete.subeventCode:
            .lePHYUpdateComplete(try LEPHYUpdateComplete(decoding: parameters))
        case LEExtendedAdvertisingReport.subeventCode:
            .leExtendedAdvertisingReport(try LEExtendedAdvertisingReport(decoding: parameters))
        case LEPeriodicAdvertisingSyncEstablished.subeventCode:
            .lePeriodicAdvertisingSyncEstablished(try LEPeriodicAdvertisingSyncEstablished(decoding: parameters))
        case LEPeriodicAdvertisingReport.subeventCode:
            .lePeriodicAdvertisingReport(try LEPeriodicAdvertisingReport(decoding: parameters))
        case LEPeriodicAdvertisingSyncLost.subeventCode:
            .lePeriodicAdvertisingSyncLost(try LEPeriodicAdvertisingSyncLost(decoding: parameters))
        case LEScanTimeout.subeventCode:
            .leScanTimeout(try LEScanTimeout(decoding: parameters))
        case LEAdvertisingSetTerminated.subeventCode:
            .leAdvertisingSetTerminated(try LEAdvertisingSetTerminated(decoding: parameters))
        case LEScanRequestReceived.subeventCode:
            .leScanRequestReceived(try LEScanRequestReceived(decoding: parameters))
        case LEChannelSelectionAlgorithm.subeventCode:
            .leChannelSelectionAlgorithm(try LEChannelSelectionAlgorithm(decoding: parameters))
        default:
            .unknown(code: Event.leMetaCode, subeventCode: subeventCode, parameters: parameters)
        }
    }

    /// Appends the whole event packet, without the H4 indicator.
    public func encodePacket(into buffer: inout PacketBuffer) {
        switch self {
        case .disconnectionComplete(let event): event.encodePacket(into: &buffer)
        case .encryptionChange(let event): event.encodePacket(into: &buffer)
        case .encryptionChangeV2(let event): event.encodePacket(into: &buffer)
        case .encryptionKeyRefreshComplete(let event): event.encodePacket(into: &buffer)
        case .authenticatedPayloadTimeoutExpired(let event): event.encodePacket(into: &buffer)
        case .readRemoteVersionInformationComplete(let event): event.encodePacket(into: &buffer)
        case .commandComplete(let event): event.encodePacket(into: &buffer)
        case .commandStatus(let event): event.encodePacket(into: &buffer)
        case .hardwareError(let event): event.encodePacket(into: &buffer)
        case .numberOfCompletedPackets(let event): event.encodePacket(into: &buffer)
        case .dataBufferOverflow(let event): event.encodePacket(into: &buffer)
        case .leConnectionComplete(let event): event.encodePacket(into: &buffer)
        case .leAdvertisingReport(let event): event.encodePacket(into: &buffer)
        case .leConnectionUpdateComplete(let event): event.encodePacket(into: &buffer)
        case .leReadRemoteFeaturesComplete(let event): event.encodePacket(into: &buffer)
        case .leLongTermKeyRequest(let event): event.encodePacket(into: &buffer)
        case .leRemoteConnectionParameterRequest(let event): event.encodePacket(into: &buffer)
        case .leDataLengthChange(let event): event.encodePacket(into: &buffer)
        case .leReadLocalP256PublicKeyComplete(let event): event.encodePacket(into: &buffer)
        case .leGenerateDHKeyComplete(let event): event.encodePacket(into: &buffer)
        case .leEnhancedConnectionComplete(let event): event.encodePacket(into: &buffer)
        case .leEnhancedConnectionCompleteV2(let event): event.encodePacket(into: &buffer)
        case .leDirectedAdvertisingReport(let event): event.encodePacket(into: &buffer)
        case .lePHYUpdateComplete(let event): event.encodePacket(into: &buffer)
        case .leExtendedAdvertisingReport(let event): event.encodePacket(into: &buffer)
        case .lePeriodicAdvertisingSyncEstablished(let event): event.encodePacket(into: &buffer)
        case .lePeriodicAdvertisingReport(let event): event.encodePacket(into: &buffer)
        case .lePeriodicAdvertisingSyncLost(let event): event.encodePacket(into: &buffer)
        case .leScanTimeout(let event): event.encodePacket(into: &buffer)
        case .leAdvertisingSetTerminated(let event): event.encodePacket(into: &buffer)
        case .leScanRequestReceived(let event): event.encodePacket(into: &buffer)
        case .leChannelSelectionAlgorithm(let event): event.encodePacket(into: &buffer)
        case .unknown(let code, let subeventCode, let parameters):
            let start = buffer.beginEvent(code: code)
            if let subeventCode { buffer.append(subeventCode) }
            buffer.append(parameters)
            buffer.endEvent(startingAt: start)
        }
    }
}
