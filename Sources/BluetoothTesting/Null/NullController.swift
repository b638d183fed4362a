import BluetoothTypes
import ByteCoding
import HCI
import HCITransport

/// The controller of one host of a ``NullRadio``, and the host's transport to it.
///
/// Belongs to the thread that runs its radio. It must cost little compared with the hosts: see ``NullRadio``.
final class NullController: Transport {
    private final class State {
        var isAdvertising = false
        var soughtPeer: PeerAddress?
    }

    let number: Int
    private let address: DeviceAddress
    private unowned let radio: NullRadio
    private let state: LoopConfined<State>

    init(number: Int, address: DeviceAddress, radio: NullRadio) {
        self.number = number
        self.address = address
        self.radio = radio
        state = LoopConfined(State(), to: radio.loop)
    }

    var isAdvertising: Bool {
        get { state.value.isAdvertising }
        set { state.value.isAdvertising = newValue }
    }

    /// The peer that the host wants to connect to.
    var soughtPeer: PeerAddress? {
        get { state.value.soughtPeer }
        set { state.value.soughtPeer = newValue }
    }

    // MARK: Transport

    func start(
        onPacket: @escaping @Sendable (RawSpan) -> Void,
        onEnd: @escaping @Sendable (TransportError) -> Void
    ) {
        radio.attach(onPacket, toHost: number)
    }

    func send(_ packet: RawSpan) {
        switch packet[checked: 0].flatMap(PacketType.init(rawValue:)) {
        case .acl: radio.receive(packet.extracting(droppingFirst: 1), fromHost: number)
        case .command:
            guard let command = try? CommandPacket(decoding: packet.extracting(droppingFirst: 1)) else { return }
            receive(command)
        default: break
        }
    }

    func close() {
        radio.attach(nil, toHost: number)
    }

    // MARK: To the host

    func queue(_ event: some EventParameters) {
        radio.queueEvent(toHost: number) { event.encodePacket(into: &$0) }
    }

    // MARK: Commands

    /// The commands that are answered by more than a status, and further commands that a host checks for first.
    private static let commands: SupportedCommands = {
        var commands = SupportedCommands()
        commands.insert(ReadBDADDR.self)
        commands.insert(LEReadFilterAcceptListSize.self)
        return commands
    }()

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
            complete(ReadLocalSupportedCommands.self, .init(supportedCommands: Self.commands))
        case ReadLocalSupportedFeatures.opcode:
            complete(ReadLocalSupportedFeatures.self, .init(lmpFeatures: [.brEdrNotSupported, .leSupportedController]))
        case LEReadLocalSupportedFeatures.opcode:
            complete(LEReadLocalSupportedFeatures.self, .init(leFeatures: []))
        case ReadBDADDR.opcode:
            complete(ReadBDADDR.self, .init(bdADDR: address))
        case LEReadBufferSize.opcode:
            complete(
                LEReadBufferSize.self,
                .init(
                    leACLDataPacketLength: UInt16(radio.dataLength),
                    totalNumLEACLDataPackets: UInt8(radio.packetCount)
                )
            )
        case LEReadFilterAcceptListSize.opcode:
            complete(LEReadFilterAcceptListSize.self, .init(filterAcceptListSize: 8))
        case LESetAdvertisingEnable.opcode:
            isAdvertising = (try? command.decode(LESetAdvertisingEnable.self))?.advertisingEnable == true
            completeWithStatus(command.opcode)
            if isAdvertising { radio.advertisingStarted() }
        case LECreateConnection.opcode:
            tellBegun(command.opcode)
            soughtPeer = (try? command.decode(LECreateConnection.self))?.peerAddress
            radio.connect(from: number)
        case LECreateConnectionCancel.opcode:
            completeWithStatus(command.opcode)
            cancelConnecting()
        case LEReadRemoteFeatures.opcode:
            tellBegun(command.opcode)
            guard let command = try? command.decode(LEReadRemoteFeatures.self) else { return }
            queue(LEReadRemoteFeaturesComplete(connectionHandle: command.connectionHandle, leFeatures: []))
        case Disconnect.opcode:
            tellBegun(command.opcode)
            guard let command = try? command.decode(Disconnect.self) else { return }
            radio.disconnect(command.connectionHandle, by: number, reason: command.reason)
        default:
            completeWithStatus(command.opcode)
        }
    }

    private func cancelConnecting() {
        guard let peer = soughtPeer else { return }
        soughtPeer = nil
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
        radio.queueEvent(toHost: number) {
            CommandComplete.encodePacket(answering: command, with: .success(parameters), into: &$0)
        }
    }

    private func completeWithStatus(_ opcode: Opcode) {
        let status = [ErrorCode.success.rawValue]
        radio.queueEvent(toHost: number) {
            CommandComplete(commandOpcode: opcode, returnParameters: status.rawSpan).encodePacket(into: &$0)
        }
    }

    private func tellBegun(_ opcode: Opcode) {
        queue(CommandStatus(commandOpcode: opcode))
    }
}
