import BLEByteCoding
import BLEHCI
import BLEHCITransport
import BluetoothTypes

/// The controller of one host of a ``NullRadio``, and the host's transport to it.
///
/// It must cost little compared with the hosts: see ``NullRadio``.
final class NullController: Transport {
    private let number: Int
    private let address: DeviceAddress
    private let features: LEFeatures
    private let confined: LoopConfined<NullAir>
    private var air: NullAir { confined.value }

    init(number: Int, address: DeviceAddress, features: LEFeatures, air: LoopConfined<NullAir>) {
        self.number = number
        self.address = address
        self.features = features
        confined = air
    }

    // MARK: Transport

    func start(
        onPacket: @escaping @Sendable (RawSpan) -> Void,
        onEnd: @escaping @Sendable (TransportError) -> Void
    ) {
        start(receiver: PacketReceiver(onPacket), onEnd: onEnd)
    }

    func start(receiver: PacketReceiver, onEnd: @escaping @Sendable (TransportError) -> Void) {
        air.attach(receiver, toHost: number)
    }

    func send(_ packet: RawSpan) {
        switch packet[checked: 0].flatMap(PacketType.init(rawValue:)) {
        case .acl: air.receive(packet.extracting(droppingFirst: 1), fromHost: number)
        case .command:
            guard let command = try? CommandPacket(decoding: packet.extracting(droppingFirst: 1)) else { return }
            receive(command)
        default: break
        }
    }

    func close() {
        air.attach(nil, toHost: number)
    }

    // MARK: To the host

    private func queue(_ event: some EventParameters) {
        air.queue(event, toHost: number)
    }

    // MARK: Commands

    /// The commands that are answered by more than a status, and further commands that a host checks for first.
    private var commands: SupportedCommands {
        var commands = SupportedCommands()
        commands.insert(ReadBDADDR.self)
        commands.insert(LEReadFilterAcceptListSize.self)
        if features.contains(.periodicAdvertising) {
            commands.insert(LESetExtendedAdvertisingParameters.self)
            commands.insert(LESetExtendedScanParameters.self)
            commands.insert(LEExtendedCreateConnection.self)
            commands.insert(LEPeriodicAdvertisingCreateSync.self)
        }
        return commands
    }

    private func receive(_ command: borrowing CommandPacket) {
        switch command.opcode {
        case ReadLocalVersionInformation.opcode:
            complete(
                ReadLocalVersionInformation.self,
                .init(
                    hciVersion: CoreVersion(rawValue: 0x0D),
                    hciSubversion: 0,
                    lmpVersion: CoreVersion(rawValue: 0x0D),
                    companyIdentifier: 0xFFFF,
                    lmpSubversion: 0
                )
            )
        case ReadLocalSupportedCommands.opcode:
            complete(ReadLocalSupportedCommands.self, .init(supportedCommands: commands))
        case ReadLocalSupportedFeatures.opcode:
            complete(ReadLocalSupportedFeatures.self, .init(lmpFeatures: [.brEdrNotSupported, .leSupportedController]))
        case LEReadLocalSupportedFeatures.opcode:
            complete(LEReadLocalSupportedFeatures.self, .init(leFeatures: features))
        case ReadBDADDR.opcode:
            complete(ReadBDADDR.self, .init(bdADDR: address))
        case LEReadBufferSize.opcode:
            complete(
                LEReadBufferSize.self,
                .init(
                    leACLDataPacketLength: UInt16(air.dataLength),
                    totalNumLEACLDataPackets: UInt8(air.packetCount)
                )
            )
        case LEReadFilterAcceptListSize.opcode:
            complete(LEReadFilterAcceptListSize.self, .init(filterAcceptListSize: 8))
        case LESetAdvertisingEnable.opcode:
            completeWithStatus(command.opcode)
            let isAdvertising = (try? command.decode(LESetAdvertisingEnable.self))?.advertisingEnable == true
            air.setAdvertising(isAdvertising, ofHost: number)
        case LECreateConnection.opcode where air.isFull:
            queue(CommandStatus(status: .connectionLimitExceeded, commandOpcode: command.opcode))
        case LECreateConnection.opcode:
            tellBegun(command.opcode)
            air.seek((try? command.decode(LECreateConnection.self))?.peerAddress, fromHost: number)
        case LECreateConnectionCancel.opcode:
            completeWithStatus(command.opcode)
            cancelConnecting()
        case LEReadRemoteFeatures.opcode:
            tellBegun(command.opcode)
            guard let command = try? command.decode(LEReadRemoteFeatures.self) else { return }
            queue(LEReadRemoteFeaturesComplete(connectionHandle: command.connectionHandle, leFeatures: []))
        case LEPeriodicAdvertisingCreateSync.opcode:
            // The test delivers the events of the train.
            tellBegun(command.opcode)
        case LEEnableEncryption.opcode:
            tellBegun(command.opcode)
            guard let command = try? command.decode(LEEnableEncryption.self) else { return }
            air.requestKey(command, by: number)
        case LELongTermKeyRequestReply.opcode:
            guard let command = try? command.decode(LELongTermKeyRequestReply.self) else { return }
            complete(LELongTermKeyRequestReply.self, .init(connectionHandle: command.connectionHandle))
            air.encrypt(command.connectionHandle)
        case Disconnect.opcode:
            tellBegun(command.opcode)
            guard let command = try? command.decode(Disconnect.self) else { return }
            air.disconnect(command.connectionHandle, by: number, reason: command.reason)
        default:
            completeWithStatus(command.opcode)
        }
    }

    private func cancelConnecting() {
        guard let peer = air.endSearch(ofHost: number) else { return }
        queue(
            LEConnectionComplete(
                status: .unknownConnectionIdentifier,
                connectionHandle: 0,
                role: .central,
                peerAddress: peer,
                connectionInterval: 0,
                peripheralLatency: 0,
                supervisionTimeout: 0
            )
        )
    }

    private func complete<C: Command>(_ command: C.Type, _ parameters: C.ReturnParameters) {
        air.queueEvent(toHost: number) {
            CommandComplete.encodePacket(answering: command, with: .success(parameters), into: &$0)
        }
    }

    private func completeWithStatus(_ opcode: HCIOpcode) {
        let status = [HCIErrorCode.success.rawValue]
        air.queueEvent(toHost: number) {
            CommandComplete(commandOpcode: opcode, returnParameters: status.rawSpan).encodePacket(into: &$0)
        }
    }

    private func tellBegun(_ opcode: HCIOpcode) {
        queue(CommandStatus(commandOpcode: opcode))
    }
}
