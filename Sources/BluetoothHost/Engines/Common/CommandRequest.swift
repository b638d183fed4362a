import BluetoothTypes
import ByteCoding
import HCI

/// A command to the controller, and what its outcome is for.
struct CommandRequest: Equatable {
    let opcode: HCI.Opcode
    /// Whether the controller answers with Command Status rather than Command Complete.
    let isAnsweredByStatus: Bool
    /// The command packet with its H4 indicator.
    let packet: [UInt8]
    let tag: CommandTag

    init<C: Command>(_ command: C, _ tag: CommandTag) {
        opcode = C.opcode
        isAnsweredByStatus = C.isAnsweredByStatus
        packet = PacketBuffer.bytes {
            $0.append(HCI.PacketType.command.rawValue)
            command.encodePacket(into: &$0)
        }
        self.tag = tag
    }

    init(_ command: GAPCommand, _ tag: CommandTag) {
        opcode = command.opcode
        isAnsweredByStatus = command.isAnsweredByStatus
        packet = command.packet
        self.tag = tag
    }
}

/// What the outcome of a command is for.
enum CommandTag: Equatable {
    /// A step of the session's bring-up.
    case bringUp(BringUpStep)
    /// The end of a link that the controller did not report.
    case strayLink(ConnectionHandle)
    /// A command of a plan of GAP.
    case plan(GAPStep)
    /// A caller of the shell, by its token.
    case caller(SlotToken)
    /// Nothing. A failure is only logged.
    case unawaited
}
