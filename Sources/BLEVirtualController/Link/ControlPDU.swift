import BLEHCI
import BluetoothTypes

/// A Link Layer control PDU, with the values that matter to a host (Vol 6, Part B, 2.4.2).
enum ControlPDU: Hashable {
    case terminate(HCIErrorCode)
    case connectionUpdate(LinkParameters, instant: UInt64)
    case channelMap(ChannelMap, instant: UInt64)
    case connectionParametersRequest(ConnectionParameters)
    case connectionParametersResponse(ConnectionParameters)
    case featureRequest(LEFeatures)
    case featureResponse(LEFeatures)
    case version(CoreVersion, company: UInt16, subversion: UInt16)
    case lengthRequest(DataLength)
    case lengthResponse(DataLength)
    case phyRequest(PHYChoice)
    case phyResponse(PHYChoice)
    /// ``PHY/none`` keeps a direction unchanged.
    case phyUpdate(centralToPeripheral: PHY, peripheralToCentral: PHY, instant: UInt64)
    case encryptionRequest(random: UInt64, diversifier: UInt16, sessionKeyDiversifier: UInt64)
    case encryptionResponse(sessionKeyDiversifier: UInt64)
    case startEncryptionRequest
    case startEncryptionResponse
    case pauseEncryptionRequest
    case pauseEncryptionResponse
    case pingRequest
    case pingResponse
    case periodicSync(SyncTransfer)
    case channelSounding(ChannelSoundingPDU)
    case subrateRequest(SubrateRange)
    case subrateIndication(SubrateIndication)
    case powerRequest(PHY, delta: Int8, power: Int8)
    case powerResponse(TransmitPowerLevelLimits, delta: Int8, power: Int8)
    case powerChange(PHY, TransmitPowerLevelLimits, delta: Int8, power: Int8)
    case reject(Rejected, HCIErrorCode)

    /// The procedure that is rejected.
    enum Rejected: Hashable {
        case connectionParameters
        case phy
        case encryption
        case ping
        case subrate
        case power
    }

    /// The length of the PDU in bytes, including the opcode (Vol 6, Part B, 2.4.2).
    var octets: Int {
        switch self {
        case .terminate: 2
        case .connectionUpdate: 12
        case .channelMap: 8
        case .connectionParametersRequest, .connectionParametersResponse: 24
        case .featureRequest, .featureResponse, .lengthRequest, .lengthResponse: 9
        case .version: 6
        case .phyRequest, .phyResponse, .reject: 3
        case .phyUpdate, .powerResponse, .powerChange: 5
        case .powerRequest: 4
        case .subrateRequest, .subrateIndication: 11
        case .encryptionRequest: 23
        case .encryptionResponse: 13
        case .periodicSync: 35
        case .channelSounding(let pdu): pdu.octets
        case .startEncryptionRequest, .startEncryptionResponse, .pauseEncryptionRequest, .pauseEncryptionResponse,
            .pingRequest, .pingResponse:
            1
        }
    }
}

/// The parameters of the Connection Parameters Request Procedure, in the units of ``LinkParameters``.
struct ConnectionParameters: Hashable {
    var intervalMin: UInt16
    var intervalMax: UInt16
    var latency: UInt16
    var supervisionTimeout: UInt16

    var areValid: Bool { intervalMin <= intervalMax && chosen.areValid && parameters(interval: intervalMin).areValid }

    /// The parameters that a central chooses: those with the longest interval, which costs least.
    var chosen: LinkParameters { parameters(interval: intervalMax) }

    private func parameters(interval: UInt16) -> LinkParameters {
        LinkParameters(interval: interval, latency: latency, supervisionTimeout: supervisionTimeout)
    }
}

/// The parameters of the Data Length Update Procedure: the bytes and microseconds that a side can receive and wants to
/// send.
struct DataLength: Hashable {
    var maxRXOctets: UInt16
    var maxRXTime: UInt16
    var maxTXOctets: UInt16
    var maxTXTime: UInt16
}

/// The PHYs on which a side prefers to send and receive.
struct PHYChoice: Hashable {
    var transmit: PHYSet
    var receive: PHYSet

    /// Returns the fastest PHY of a set, or none for an empty set.
    static func fastest(of set: PHYSet) -> PHY {
        if set.contains(.le2M) { return .le2M }
        if set.contains(.le1M) { return .le1M }
        return set.contains(.leCoded) ? .leCoded : .none
    }
}

/// The content of one packet of a link.
struct DataPhysicalChannelPDU {
    enum Body {
        /// A part of an ACL packet from the host.
        case data([UInt8], isStart: Bool, endsPacket: Bool)
        case control(ControlPDU)
    }

    let body: Body
    /// The session key with which the PDU is encrypted, if any. It stands for the MIC: a receiver with another key
    /// detects a MIC failure.
    let seal: UInt128?

    var octets: Int {
        switch body {
        case .data(let bytes, _, _): bytes.count
        case .control(let pdu): pdu.octets
        }
    }
}
