import BLEByteCoding
import BLEHCI
import BLEHCITransport
import BluetoothHost
import BluetoothTesting
import BluetoothTypes

/// A controller whose answers a test can choose. By default it answers at once, like a small controller.
final class ScriptedController: Transport {
    struct Profile {
        var usesExtendedCommands = false
        var leBuffers: (length: UInt16, count: UInt8) = (27, 4)
        var acceptListSize: UInt8 = 8
        /// LE_States: the supported states and combinations of states.
        var states: UInt64 = 0x0000_03FF_FFFF_FFFF
        /// Whether it supports Write Authenticated Payload Timeout.
        var watchesAuthenticatedPayload = false
        /// Whether it supports connected isochronous streams in both roles.
        var hasStreams = false
        /// Whether it receives the synchronizations that connected devices transfer.
        var receivesTransfers = false
        var advertisingSets: UInt8 = 4
    }

    /// A test's answer to a command; nil for the default answer.
    typealias Override = (CommandView) -> Answer?

    enum Answer {
        /// No answer.
        case silence
        /// These packets, with their H4 indicators.
        case packets([[UInt8]])
    }

    /// A command as it was sent.
    struct CommandView {
        let opcode: HCIOpcode
        let parameters: [UInt8]

        func decode<C: Command>(_ type: C.Type) -> C? {
            opcode == C.opcode ? try? C(decoding: parameters.rawSpan) : nil
        }
    }

    let loop: SimulatedEventLoop
    let profile: Profile
    private let confined: LoopConfined<State>
    private var state: State { confined.value }

    private final class State {
        var commands: [CommandView] = []
        var data: [[UInt8]] = []
        var override: Override = { _ in nil }
        var endOfStart: TransportError?
        var onPacket: (@Sendable (RawSpan) -> Void)?
        var onEnd: (@Sendable (TransportError) -> Void)?
    }

    init(loop: SimulatedEventLoop, profile: Profile = Profile()) {
        self.loop = loop
        self.profile = profile
        confined = LoopConfined(State(), to: loop)
    }

    var commands: [CommandView] { state.commands }
    var opcodes: [HCIOpcode] { commands.map(\.opcode) }
    var data: [[UInt8]] { state.data }

    var override: Override {
        get { state.override }
        set { state.override = newValue }
    }

    /// The error with which the transport ends before its start returns; nil if it starts.
    var endOfStart: TransportError? {
        get { state.endOfStart }
        set { state.endOfStart = newValue }
    }

    func forgetCommands() { state.commands = [] }
    func forgetData() { state.data = [] }

    func start(
        onPacket: @escaping @Sendable (RawSpan) -> Void,
        onEnd: @escaping @Sendable (TransportError) -> Void
    ) {
        state.onPacket = onPacket
        state.onEnd = onEnd
        if let endOfStart { onEnd(endOfStart) }
    }

    func close() {
        state.onPacket = nil
        state.onEnd = nil
    }

    /// Fails the connection, as a removed controller does.
    func vanish() {
        loop.execute { [self] in
            let onEnd = state.onEnd
            close()
            onEnd?(.closedByPeer)
        }
    }

    func send(_ packet: RawSpan) {
        switch packet[checked: 0].flatMap(PacketType.init(rawValue:)) {
        case .acl: state.data.append([UInt8](copying: packet))
        case .command:
            guard let command = try? CommandPacket(decoding: packet.extracting(droppingFirst: 1)) else { return }
            let view = CommandView(opcode: command.opcode, parameters: [UInt8](copying: command.parameters))
            state.commands.append(view)
            switch override(view) ?? defaultAnswer(to: view) {
            case .silence: break
            case .packets(let packets): for packet in packets { emit(packet) }
            }
        default: break
        }
    }

    /// Sends a packet to the host, on the loop.
    func emit(_ packet: [UInt8]) {
        loop.execute { [self] in state.onPacket?(packet.rawSpan) }
    }

    /// Sends an event that `encode` writes.
    func emit(_ encode: (inout PacketBuffer) -> Void) {
        emit(Self.packet(encode))
    }

    static func packet(_ encode: (inout PacketBuffer) -> Void) -> [UInt8] {
        PacketBuffer.bytes {
            $0.append(PacketType.event.rawValue)
            encode(&$0)
        }
    }

    static func complete<C: Command>(_ command: C.Type, _ result: Result<C.ReturnParameters, HCIErrorCode>) -> Answer {
        .packets([packet { CommandComplete.encodePacket(answering: command, with: result, into: &$0) }])
    }

    static func status(_ opcode: HCIOpcode, _ status: HCIErrorCode = .success) -> Answer {
        .packets([
            packet { CommandStatus(status: status, commandOpcode: opcode).encodePacket(into: &$0) }
        ])
    }

    private func defaultAnswer(to command: CommandView) -> Answer {
        switch command.opcode {
        case ReadLocalVersionInformation.opcode:
            return Self.complete(
                ReadLocalVersionInformation.self,
                .success(
                    .init(
                        hciVersion: .v54,
                        hciSubversion: 1,
                        lmpVersion: .v54,
                        companyIdentifier: 0x05F1,
                        lmpSubversion: 2
                    )
                )
            )
        case ReadLocalSupportedCommands.opcode:
            return Self.complete(ReadLocalSupportedCommands.self, .success(.init(supportedCommands: supportedCommands)))
        case ReadLocalSupportedFeatures.opcode:
            return Self.complete(
                ReadLocalSupportedFeatures.self,
                .success(.init(lmpFeatures: [.brEdrNotSupported, .leSupportedController]))
            )
        case LEReadLocalSupportedFeatures.opcode:
            return Self.complete(LEReadLocalSupportedFeatures.self, .success(.init(leFeatures: features)))
        case ReadBDADDR.opcode:
            return Self.complete(
                ReadBDADDR.self,
                .success(.init(bdADDR: DeviceAddress(0x0011_2233_4455, isRandom: false)))
            )
        case LEReadBufferSize.opcode:
            return Self.complete(
                LEReadBufferSize.self,
                .success(
                    .init(
                        leACLDataPacketLength: profile.leBuffers.length,
                        totalNumLEACLDataPackets: profile.leBuffers.count
                    )
                )
            )
        case LEReadBufferSizeV2.opcode:
            return Self.complete(
                LEReadBufferSizeV2.self,
                .success(
                    .init(
                        leACLDataPacketLength: profile.leBuffers.length,
                        totalNumLEACLDataPackets: profile.leBuffers.count,
                        isoDataPacketLength: 251,
                        totalNumISODataPackets: 8
                    )
                )
            )
        case ReadBufferSize.opcode:
            return Self.complete(
                ReadBufferSize.self,
                .success(
                    .init(
                        aclDataPacketLength: 310,
                        synchronousDataPacketLength: 0,
                        totalNumACLDataPackets: 10,
                        totalNumSynchronousDataPackets: 0
                    )
                )
            )
        case LEReadSupportedStates.opcode:
            return Self.complete(LEReadSupportedStates.self, .success(.init(leStates: profile.states)))
        case LEReadFilterAcceptListSize.opcode:
            return Self.complete(
                LEReadFilterAcceptListSize.self,
                .success(.init(filterAcceptListSize: profile.acceptListSize))
            )
        case LEReadNumberOfSupportedAdvertisingSets.opcode:
            return Self.complete(
                LEReadNumberOfSupportedAdvertisingSets.self,
                .success(.init(numSupportedAdvertisingSets: profile.advertisingSets))
            )
        case LEReadMaximumAdvertisingDataLength.opcode:
            return Self.complete(
                LEReadMaximumAdvertisingDataLength.self,
                .success(.init(maxAdvertisingDataLength: 1650))
            )
        case LESetExtendedAdvertisingParameters.opcode:
            return Self.complete(LESetExtendedAdvertisingParameters.self, .success(.init(selectedTXPower: 0)))
        case LECreateConnection.opcode, LEExtendedCreateConnection.opcode, Disconnect.opcode, LEConnectionUpdate.opcode:
            return Self.status(command.opcode)
        default:
            // Command Complete with success and no other parameters.
            return .packets([
                [
                    0x04, 0x0E, 0x04, 0x01, UInt8(truncatingIfNeeded: command.opcode.rawValue),
                    UInt8(truncatingIfNeeded: command.opcode.rawValue >> 8), 0x00,
                ]
            ])
        }
    }

    private var features: LEFeatures {
        var features: LEFeatures = [.encryption]
        if profile.usesExtendedCommands { features.insert(.extendedAdvertising) }
        if profile.hasStreams {
            features.insert([.connectedIsochronousStreamCentral, .connectedIsochronousStreamPeripheral])
        }
        if profile.receivesTransfers { features.insert(.periodicAdvertisingSyncTransferRecipient) }
        return features
    }

    private var supportedCommands: SupportedCommands {
        var commands = SupportedCommands()
        for opcode in [
            ReadBDADDR.opcode, LEReadSupportedStates.opcode, LEReadFilterAcceptListSize.opcode, LEReadBufferSize.opcode,
        ] {
            commands.insert(opcode)
        }
        if profile.watchesAuthenticatedPayload {
            commands.insert(SetEventMaskPage2.opcode)
            commands.insert(WriteAuthenticatedPayloadTimeout.opcode)
        }
        if profile.hasStreams {
            for opcode in [LESetHostFeature.opcode, LEReadBufferSizeV2.opcode, LESetupISODataPath.opcode] {
                commands.insert(opcode)
            }
        }
        if profile.receivesTransfers {
            commands.insert(LESetDefaultPeriodicAdvertisingSyncTransferParameters.opcode)
            commands.insert(LESetPeriodicAdvertisingSyncTransferParameters.opcode)
        }
        if profile.usesExtendedCommands {
            for opcode in [
                LESetExtendedAdvertisingParameters.opcode, LESetExtendedScanParameters.opcode,
                LEExtendedCreateConnection.opcode, LEReadNumberOfSupportedAdvertisingSets.opcode,
                LEReadMaximumAdvertisingDataLength.opcode,
            ] {
                commands.insert(opcode)
            }
        }
        return commands
    }
}
