import BLEByteCoding
import BLEHCI
import BluetoothTypes

/// The commands of the controller, each with its handler.
///
/// Read Local Supported Commands reports the commands in the table. Other commands are answered with Unknown HCI
/// Command.
struct CommandTable: Sendable {
    /// The result of a command that is answered by a Command Status event.
    enum Beginning {
        case refused(HCIErrorCode)
        /// The action that runs after the status has been sent.
        case begun(() -> Void)
    }

    private struct Entry: Sendable {
        let needed: LEFeatures
        /// The controller needs at least one of these; empty for none.
        var neededAny: LEFeatures = []
        let run: @Sendable (VirtualController, borrowing CommandPacket) -> Void

        func isSupported(by features: LEFeatures) -> Bool {
            features.isSuperset(of: needed) && (neededAny.isEmpty || !features.isDisjoint(with: neededAny))
        }
    }

    private var entries: [HCIOpcode: Entry] = [:]

    /// The table of all commands.
    static let all: CommandTable = {
        var table = CommandTable()
        table.addBaseband()
        table.addInformation()
        table.addController()
        table.addAdvertising()
        table.addExtendedAdvertising()
        table.addPeriodicAdvertising()
        table.addPeriodicResponses()
        table.addPeriodicAdvertiserList()
        table.addSyncTransfer()
        table.addScanning()
        table.addInitiating()
        table.addAcceptList()
        table.addResolvingList()
        table.addLinks()
        table.addLinkProcedures()
        table.addLinkPower()
        table.addSecurity()
        table.addChannelSounding()
        table.addConnectedStreams()
        table.addBroadcastStreams()
        return table
    }()

    /// Returns the commands of a controller with these features.
    func supported(by features: LEFeatures) -> SupportedCommands {
        var commands = SupportedCommands()
        for (opcode, entry) in entries where entry.isSupported(by: features) { commands.insert(opcode) }
        return commands
    }

    /// Executes a command. Returns false if the controller does not have it.
    func run(_ command: borrowing CommandPacket, on controller: VirtualController) -> Bool {
        guard let entry = entries[command.opcode], entry.isSupported(by: controller.configuration.features) else {
            return false
        }
        entry.run(controller, command)
        return true
    }

    // MARK: Adding commands

    /// Adds a command that returns parameters.
    mutating func answer<C: Command & SendableMetatype>(
        _ type: C.Type,
        needs needed: LEFeatures = [],
        needsAnyOf neededAny: LEFeatures = [],
        _ handle: @escaping @Sendable (VirtualController, C) -> Result<C.ReturnParameters, HCIErrorCode>
    ) {
        entries[C.opcode] = Entry(needed: needed, neededAny: neededAny) { controller, packet in
            guard let command = try? packet.decode(C.self) else {
                return controller.complete(C.self, .failure(.invalidHCICommandParameters), packet.parameters)
            }
            controller.complete(C.self, handle(controller, command), packet.parameters)
        }
    }

    /// Adds a command that returns only a status.
    mutating func carryOut<C: Command & SendableMetatype>(
        _ type: C.Type,
        needs needed: LEFeatures = [],
        _ handle: @escaping @Sendable (VirtualController, C) -> HCIErrorCode
    ) where C.ReturnParameters == StatusReturnParameters {
        answer(type, needs: needed) { controller, command in
            let status = handle(controller, command)
            return status == .success ? .success(StatusReturnParameters()) : .failure(status)
        }
    }

    /// Adds a command that is answered by a Command Status event, and by another event later.
    mutating func begin<C: Command & SendableMetatype>(
        _ type: C.Type,
        needs needed: LEFeatures = [],
        _ handle: @escaping @Sendable (VirtualController, C) -> Beginning
    ) where C.ReturnParameters == NoReturnParameters {
        entries[C.opcode] = Entry(needed: needed) { controller, packet in
            guard let command = try? packet.decode(C.self) else {
                return controller.tellStatus(C.opcode, .invalidHCICommandParameters)
            }
            switch handle(controller, command) {
            case .refused(let error): controller.tellStatus(C.opcode, error)
            case .begun(let action):
                controller.tellStatus(C.opcode, .success)
                action()
            }
        }
    }
}

extension VirtualController {
    func receiveCommand(_ packet: RawSpan) {
        guard let command = try? CommandPacket(decoding: packet) else {
            host.statistics.malformedPackets += 1
            return
        }
        host.statistics.commands += 1
        if command.opcode == Reset.opcode { host.owesAnswer = false }
        if host.owesAnswer { host.statistics.commandsBeyondCredit += 1 }
        host.owesAnswer = true
        if faults.refusal > 0, command.opcode != Reset.opcode, air.random.happens(faults.refusal) {
            return tellStatus(command.opcode, .commandDisallowed)
        }
        if CommandTable.all.run(command, on: self) { return }
        // An unknown command is answered like a command that returns a status.
        let status = [HCIErrorCode.unknownHCICommand.rawValue]
        sendAnswer {
            CommandComplete(commandOpcode: command.opcode, returnParameters: status.rawSpan).encodePacket(into: &$0)
        }
    }

    /// - Parameter parameters: the parameters of the command. They begin with the connection handle if the return
    ///   parameters do.
    fileprivate func complete<C: Command>(
        _ command: C.Type,
        _ result: Result<C.ReturnParameters, HCIErrorCode>,
        _ parameters: RawSpan
    ) {
        var reader = ByteReader(parameters)
        let handle = (try? reader.readUInt16()).map { ConnectionHandle($0) }
        sendAnswer {
            CommandComplete.encodePacket(answering: command, with: result, connectionHandle: handle, into: &$0)
        }
    }

    fileprivate func tellStatus(_ opcode: HCIOpcode, _ status: HCIErrorCode) {
        sendAnswer { CommandStatus(status: status, commandOpcode: opcode).encodePacket(into: &$0) }
    }

    private func sendAnswer(_ encode: (inout PacketBuffer) -> Void) {
        send(
            PacketBuffer.bytes { buffer in
                buffer.append(PacketType.event.rawValue)
                encode(&buffer)
            },
            .answer
        )
    }
}
