import BLEHCI
import BLEL2CAP
import BluetoothTypes

/// What the caller of a ``LinkControl`` does after an input, in the order of the effects.
enum ControlEffect: Equatable {
    /// Send a command. If it fails, call ``LinkControl/commandFailed(_:_:_:)``.
    case command(ControlCommand, ControlStep)
    /// As the peripheral: send a request on the signaling channel. If that refuses it, call
    /// ``LinkControl/signalingRefused(_:_:)`` before any other input.
    case requestBySignaling(ConnectionParameterUpdateRequest)
    /// End a call: with success, or with this error.
    case finish(CallToken, HostError?)
    /// End a call that has read the peer's transmit power.
    case finishPowerRead(CallToken, TransmitPower)
    /// Report an event to the observers of the link that want it.
    case report(LinkEvent)
    /// End an observer, with this error.
    case endObservation(LinkObservation, HostError)
    /// The controller has not ended the link in time: it has failed.
    case notEnding
    /// The controller does not know the link: it has ended.
    case hasEnded
}

/// A command about one link.
enum ControlCommand: Equatable {
    case connectionUpdate(LEConnectionUpdate)
    case setPHY(LESetPHY)
    case readPHY(LEReadPHY)
    case readFeatures(LEReadRemoteFeatures)
    case setDataLength(LESetDataLength)
    case requestSubrate(LESubrateRequest)
    case readRemotePower(LEReadRemoteTransmitPowerLevel)
    case reportTransmitPower(LESetTransmitPowerReportingEnable)
    case setPathLossThresholds(LESetPathLossReportingParameters)
    case reportPathLoss(LESetPathLossReportingEnable)
    case disconnect(Disconnect)
}

extension LEReadPHY: ConnectionCommand {}

/// The purpose of a command about one link.
enum ControlStep: Equatable {
    /// To start the procedure with this number.
    case procedure(LinkProcedure, number: UInt32)
    /// To start or stop reports to observers. If the command succeeds, call ``LinkControl/reportsChanged(_:)``.
    case reports(LinkReportStep)
    case disconnection
    /// To read the PHYs of a new link. If the command succeeds, call ``LinkControl/received(_:)`` with its answer.
    case phyRead
    /// To change what no call waits for.
    case unawaited
}

/// A kind of procedure of the Link Layer.
enum LinkProcedure: CaseIterable {
    case connectionUpdate
    case phyUpdate
    case featureExchange
    case subrateUpdate
    case powerRead
}

extension LinkProcedure: CustomStringConvertible {
    var description: String {
        switch self {
        case .connectionUpdate: "update of connection parameters"
        case .phyUpdate: "change of PHYs"
        case .featureExchange: "exchange of features"
        case .subrateUpdate: "change of the subrate"
        case .powerRead: "reading of the peer's power"
        }
    }
}

/// A request for a Link Layer procedure.
enum LinkRequest: Equatable {
    case parameters(ConnectionParameters)
    /// A peripheral's request, which this host has accepted.
    case peerParameters(ConnectionParameterUpdateRequest)
    case phys(transmit: PHYSet, receive: PHYSet, coding: PHYOptions = .noPreference)
    /// The features that the peer supports.
    case features
    case subrate(SubrateParameters)
    /// The transmit power of the peer on a PHY.
    case peerPower(PHY)

    var procedure: LinkProcedure {
        switch self {
        case .parameters, .peerParameters: .connectionUpdate
        case .phys: .phyUpdate
        case .features: .featureExchange
        case .subrate: .subrateUpdate
        case .peerPower: .powerRead
        }
    }
}

/// The facts that a ``LinkControl`` needs for an input.
struct ControlContext {
    var now: Instant
    /// Whether the controller is in use. While the host abandons it, no procedure begins.
    var isPoweredOn: Bool
    /// The time within which the controller answers a command.
    var commandTimeout: Duration
}

extension CommandFailure {
    /// Whether the host abandons the controller because of this failure, or has already done so. All links end then.
    fileprivate var endsLinks: Bool {
        switch self {
        case .timedOut, .aborted: true
        case .status, .malformedReply: false
        }
    }

    /// The error for the call whose procedure this failure ends; nil if the call ends with its link.
    var procedureError: HostError? { endsLinks ? nil : .command(self) }

    /// Whether the controller does not know the link that the command named.
    var isUnknownLink: Bool {
        if case .status(.unknownConnectionIdentifier, _) = self { true } else { false }
    }
}
