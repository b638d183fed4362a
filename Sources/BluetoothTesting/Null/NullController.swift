import BluetoothTypes
import ByteCoding
import HCI
import HCITransport
import L2CAP

/// One host's controller of a ``NullRadio``, and the host's way to it.
///
/// Belongs to the one thread that runs its radio. It is to cost little beside the hosts: see ``NullRadio``.
final class NullController: Transport, @unchecked Sendable {
    let number: Int
    private let address: DeviceAddress
    private unowned let radio: NullRadio
    @exclusivity(unchecked)
    private var onPacket: (@Sendable (RawSpan) -> Void)?

    var isAdvertising = false
    /// Whom the host wants to be connected to.
    var soughtPeer: PeerAddress?

    @exclusivity(unchecked)
    private var queued = PacketQueue()
    /// What is being delivered, meanwhile.
    @exclusivity(unchecked)
    private var spare = PacketQueue()
    /// What a script's answer is written to.
    private var answer: PacketBuffer?
    /// How many packets of each link, by its handle, were taken from the host since it was last told.
    @exclusivity(unchecked)
    private var takenCounts: [UInt16] = []
    /// The links that any were taken of.
    @exclusivity(unchecked)
    private var taken: [UInt16] = []

    init(number: Int, address: DeviceAddress, radio: NullRadio) {
        self.number = number
        self.address = address
        self.radio = radio
    }

    // MARK: Transport

    func start(
        onPacket: @escaping @Sendable (RawSpan) -> Void,
        onEnd: @escaping @Sendable (TransportError) -> Void
    ) {
        self.onPacket = onPacket
    }

    func send(_ packet: RawSpan) {
        switch packet[checked: 0].flatMap(PacketType.init(rawValue:)) {
        case .acl: radio.receive(packet.extracting(droppingFirst: 1), fromHost: number)
        case .command:
            guard let command = try? CommandPacket(decoding: packet.extracting(droppingFirst: 1)) else { return }
            receive(command)
            radio.requestDelivery()
        default: break
        }
    }

    func close() {
        onPacket = nil
    }

    // MARK: To the host

    func deliver(_ packet: RawSpan) {
        onPacket?(packet)
    }

    func deliverQueued() {
        queueCompletions()
        guard !queued.isEmpty else { return }
        swap(&queued, &spare)
        spare.forEach(deliver)
        spare.removeAll()
    }

    func countTaken(on handle: ConnectionHandle) {
        let index = Int(handle.rawValue)
        if index >= takenCounts.count {
            takenCounts += repeatElement(0, count: index + 1 - takenCounts.count)
        }
        if takenCounts[index] == 0 { taken.append(handle.rawValue) }
        takenCounts[index] += 1
    }

    private func queueCompletions() {
        guard !taken.isEmpty else { return }
        // As many links as an event's 255 octets hold.
        for start in stride(from: 0, to: taken.count, by: 63) {
            let end = min(start + 63, taken.count)
            queued.append { buffer in
                let count = UInt8(end - start)
                buffer.append(PacketType.event.rawValue, NumberOfCompletedPackets.code, 1 + 4 * count, count)
                for handle in taken[start..<end] {
                    buffer.append(handle, takenCounts[Int(handle)])
                    takenCounts[Int(handle)] = 0
                }
            }
        }
        taken.removeAll(keepingCapacity: true)
    }

    func queue(_ event: some EventParameters) {
        queueEvent { event.encodePacket(into: &$0) }
    }

    /// Queues the data of a packet as a controller sends it.
    func queueACL(_ payload: RawSpan, of header: ACLHeader) {
        var header = header
        if header.packetBoundaryFlag == .firstNonFlushable { header.packetBoundaryFlag = .firstFlushable }
        queued.append { buffer in
            buffer.append(PacketType.acl.rawValue)
            header.encode(into: &buffer)
            buffer.append(payload)
        }
    }

    /// Queues the Attribute PDU that `encode` appends, in one ACL packet; nothing where it appends nothing.
    func queueAttributePDU(on handle: ConnectionHandle, _ encode: (inout PacketBuffer) -> Void) {
        var pdu = answer.take() ?? PacketBuffer()
        pdu.reset()
        encode(&pdu)
        if !pdu.isEmpty {
            Frame.prependHeader(channel: .attribute, to: &pdu)
            let length = UInt16(truncatingIfNeeded: pdu.count)
            queueACL(
                pdu.bytes,
                of: ACLHeader(
                    connectionHandle: handle,
                    packetBoundaryFlag: .firstFlushable,
                    dataTotalLength: length
                )
            )
        }
        answer = pdu
    }

    private func queueEvent(_ encode: (inout PacketBuffer) -> Void) {
        queued.append { buffer in
            buffer.append(PacketType.event.rawValue)
            encode(&buffer)
        }
        radio.requestDelivery()
    }

    // MARK: Commands

    /// The commands that are answered by more than a status, and those beside them that a host asks for first.
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
        queueEvent { CommandComplete.encodePacket(answering: command, with: .success(parameters), into: &$0) }
    }

    private func completeWithStatus(_ opcode: Opcode) {
        let status = [ErrorCode.success.rawValue]
        queueEvent {
            CommandComplete(commandOpcode: opcode, returnParameters: status.rawSpan).encodePacket(into: &$0)
        }
    }

    private func tellBegun(_ opcode: Opcode) {
        queue(CommandStatus(commandOpcode: opcode))
    }
}
