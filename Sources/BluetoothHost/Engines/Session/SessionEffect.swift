import BLEHCI
import BluetoothTypes

/// What the caller of a ``ControllerSession`` does after an input. It performs the effects in their order.
enum SessionEffect: Equatable {
    /// Open a transport, and call ``ControllerSession/transportOpened(at:)`` or
    /// ``ControllerSession/transportNotOpened(_:at:)``, unless the session has another generation by then.
    case openTransport(generation: UInt64)
    case closeTransport
    /// Give this packet to the transport.
    case send([UInt8])
    /// A command of a caller has failed.
    case commandFailed(CommandTag, CommandFailure)
    /// Read the stored state of the host on the controller with this public address, and call
    /// ``ControllerSession/bondsLoaded(identity:obstacle:at:)``.
    case loadBonds(DeviceAddress?)
    /// Set up the addresses in the controller, and call ``ControllerSession/addressesPrepared(_:at:)``.
    case prepareAddresses(ControllerInformation)
    /// The controller is up and can be used.
    case ready(ControllerInformation)
    /// The call of ``ControllerSession/start(_:)`` has ended. There is no error if the controller is up.
    case finish(CallToken, HostError?)
    /// The controller that was up has failed: all links have ended, and it has lost all its settings.
    case lost(reason: String)
    /// Start connectable advertising and initiating again.
    case restartRoles
    case report(SessionReport)
}

/// An event that is only logged.
enum SessionReport: Equatable {
    /// The controller has not answered a command in time.
    case unanswered(HCIOpcode)
    /// The controller has not accepted a command in time.
    case acceptsNoCommands
    /// The bring-up continues without this command.
    case optionalCommandFailed(CommandFailure)
    case failedDuringBringUp(reason: String)
    /// A recovery has failed and is tried again after this time.
    case willRetry(reason: String, after: Duration)
    /// The controller ends a link that it did not report.
    case endingUnknownLink(ConnectionHandle)
    /// The controller has ended a link that it did not report.
    case unknownLinkEnded(ConnectionHandle)
}

extension SessionReport: CustomStringConvertible {
    var description: String {
        switch self {
        case .unanswered(let opcode): "the controller did not answer \(opcode)"
        case .acceptsNoCommands: "the controller accepts no commands"
        case .optionalCommandFailed(let failure): "an optional command failed: \(failure)"
        case .failedDuringBringUp(let reason): "controller failed while it was brought up: \(reason)"
        case .willRetry(let reason, let delay): "the controller is not up yet: \(reason); trying again in \(delay)"
        case .endingUnknownLink(let handle): "the controller has a link \(handle) that it did not report; ending it"
        case .unknownLinkEnded(let handle): "the controller ended a link \(handle) that it did not report"
        }
    }
}
