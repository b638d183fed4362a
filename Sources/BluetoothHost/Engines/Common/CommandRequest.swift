import BLEByteCoding
import BLEHCI
import BluetoothTypes

/// A command to the controller, and what its outcome is for.
struct CommandRequest: Equatable {
    let opcode: HCIOpcode
    /// Whether the controller answers with Command Status rather than Command Complete.
    let isAnsweredByStatus: Bool
    /// The command packet with its H4 indicator.
    let packet: [UInt8]
    let tag: CommandTag
    /// The handle of the connection that the command is about; nil if it is about none.
    let handle: ConnectionHandle?

    init<C: Command>(_ command: C, _ tag: CommandTag) {
        opcode = C.opcode
        isAnsweredByStatus = C.isAnsweredByStatus
        packet = PacketBuffer.bytes {
            $0.append(BLEHCI.PacketType.command.rawValue)
            command.encodePacket(into: &$0)
        }
        self.tag = tag
        handle = (command as? any ConnectionCommand)?.connectionHandle
    }

    init(_ command: GAPCommand, _ tag: CommandTag) {
        opcode = command.opcode
        isAnsweredByStatus = command.isAnsweredByStatus
        packet = command.packet
        self.tag = tag
        handle = nil
    }

    /// Whether the command counts for ``CommandQueue/eventLimit``: no caller waits for its answer, or it encrypts a
    /// link. Events of the controller cause most of these commands.
    var isCausedByEvents: Bool {
        switch tag {
        case .unawaited, .strayLink: true
        case .caller: opcode == LEEnableEncryption.opcode
        case .bringUp, .plan, .isochronous: false
        }
    }
}

/// A command about one connection.
protocol ConnectionCommand: Command {
    var connectionHandle: ConnectionHandle { get }
}

extension Disconnect: ConnectionCommand {}
extension LEConnectionUpdate: ConnectionCommand {}
extension LEEnableEncryption: ConnectionCommand {}
extension LELongTermKeyRequestNegativeReply: ConnectionCommand {}
extension LELongTermKeyRequestReply: ConnectionCommand {}
extension LEPeriodicAdvertisingSetInfoTransfer: ConnectionCommand {}
extension LEPeriodicAdvertisingSyncTransfer: ConnectionCommand {}
extension LEReadRemoteFeatures: ConnectionCommand {}
extension LEEnhancedReadTransmitPowerLevel: ConnectionCommand {}
extension LEReadRemoteTransmitPowerLevel: ConnectionCommand {}
extension LERemoteConnectionParameterRequestNegativeReply: ConnectionCommand {}
extension LERemoteConnectionParameterRequestReply: ConnectionCommand {}
extension LESetDataLength: ConnectionCommand {}
extension LESetPHY: ConnectionCommand {}
extension LESetPathLossReportingEnable: ConnectionCommand {}
extension LESetPathLossReportingParameters: ConnectionCommand {}
extension LESetTransmitPowerReportingEnable: ConnectionCommand {}
extension LESubrateRequest: ConnectionCommand {}
extension ReadRSSI: ConnectionCommand {}
extension WriteAuthenticatedPayloadTimeout: ConnectionCommand {}

/// What the outcome of a command is for.
enum CommandTag: Equatable {
    /// A step of the session's bring-up.
    case bringUp(BringUpStep)
    /// The end of a link that the controller did not report.
    case strayLink(ConnectionHandle)
    /// A command of a plan of GAP.
    case plan(GAPStep)
    /// A command of the isochronous streams.
    case isochronous(IsochronousStep)
    /// A caller of the shell, by its token.
    case caller(SlotToken)
    /// Nothing. A failure is only logged.
    case unawaited
}
