import BLEByteCoding
import BLEHCI
import BLEHCITransport
import BLEL2CAP
import BluetoothHost
import BluetoothTypes

/// A controller with the link of a trace. Everything else, starting with the bring-up, is left to a virtual controller.
final class TracedController: Transport {
    static let handle: UInt16 = 0x0040

    private let base: any Transport
    private let loop: SimulatedEventLoop
    private let isCentral: Bool
    private let peer: DeviceAddress
    private let onFrame: @Sendable (ChannelIdentifier, [UInt8]) -> Void
    private let confined: LoopConfined<State>
    private var state: State { confined.value }

    private final class State {
        var onPacket: (@Sendable (RawSpan) -> Void)?
        var reassembler = Reassembler(maximumPayloadLength: 0xFFFF)
        var isConnected = false
    }

    /// - Parameters:
    ///   - base: the virtual controller.
    ///   - isCentral: whether the host is the central on the link.
    ///   - peer: the address of the peer on the link.
    ///   - loop: the loop of the virtual controller.
    ///   - onFrame: receives each frame that the host sends on the link.
    init(
        _ base: any Transport,
        isCentral: Bool,
        peer: DeviceAddress,
        loop: SimulatedEventLoop,
        onFrame: @escaping @Sendable (ChannelIdentifier, [UInt8]) -> Void
    ) {
        self.base = base
        self.isCentral = isCentral
        self.peer = peer
        self.loop = loop
        self.onFrame = onFrame
        confined = LoopConfined(State(), to: loop)
    }

    func start(
        onPacket: @escaping @Sendable (RawSpan) -> Void,
        onEnd: @escaping @Sendable (TransportError) -> Void
    ) {
        state.onPacket = onPacket
        base.start(onPacket: onPacket, onEnd: onEnd)
    }

    func close() {
        state.onPacket = nil
        base.close()
    }

    func send(_ packet: RawSpan) {
        switch packet[checked: 0].flatMap(PacketType.init(rawValue:)) {
        case .command: receiveCommand(packet)
        case .acl: receiveACL(packet.extracting(droppingFirst: 1))
        default: base.send(packet)
        }
    }

    /// Delivers a frame from the peer to the host.
    func deliver(_ payload: [UInt8], on channel: ChannelIdentifier) {
        var buffer = PacketBuffer(capacity: payload.count + 9, headroom: 0)
        buffer.append(PacketType.acl.rawValue)
        // A first fragment that was received over the air (Vol 4, Part E, 5.4.2).
        buffer.append(TracedController.handle | 0x2000)
        buffer.append(UInt16(clamping: payload.count + Frame.headerLength))
        buffer.append(UInt16(clamping: payload.count))
        buffer.append(channel.rawValue)
        buffer.append(payload)
        emit([UInt8](copying: buffer.bytes))
    }

    private func emit(_ packet: [UInt8]) {
        loop.execute { [weak self] in self?.state.onPacket?(packet.rawSpan) }
    }

    // MARK: From the host

    private func receiveACL(_ bytes: RawSpan) {
        guard let packet = try? ACLPacket(decoding: bytes),
            packet.header.connectionHandle.rawValue == TracedController.handle
        else { return }
        var frames: [(ChannelIdentifier, [UInt8])] = []
        _ = state.reassembler.receive(packet.payload, isStart: packet.header.packetBoundaryFlag != .continuing) {
            frame in
            frames.append((frame.channel, [UInt8](copying: frame.payload)))
        }
        // Number Of Completed Packets for this packet.
        emit([4, 0x13, 5, 1] + TracedController.octets(TracedController.handle) + [1, 0])
        for (channel, payload) in frames { onFrame(channel, payload) }
    }

    private func receiveCommand(_ packet: RawSpan) {
        guard let command = try? CommandPacket(decoding: packet.extracting(droppingFirst: 1)) else { return }
        let parameters = [UInt8](copying: command.parameters)
        let opcode = command.opcode.rawValue
        switch opcode {
        case 0x200D, 0x2043:  // LE Create Connection, LE Extended Create Connection
            status(opcode)
            connect()
        case 0x200A where parameters.first == 1 && !isCentral:  // LE Set Advertising Enable
            base.send(packet)
            connect()
        default:
            guard parameters.starts(with: TracedController.octets(TracedController.handle)),
                answerOnLink(opcode, parameters)
            else { return base.send(packet) }
        }
    }

    private func connect() {
        guard !state.isConnected else { return }
        state.isConnected = true
        var event: [UInt8] = [4, 0x3E, 19, 0x01, 0] + TracedController.octets(TracedController.handle)
        event += [isCentral ? 0 : 1, peer.isRandom ? 1 : 0]
        event += (0..<6).map { UInt8(truncatingIfNeeded: peer.value >> ($0 * 8)) }
        event += TracedController.octets(24) + TracedController.octets(0) + TracedController.octets(400) + [0]
        emit(event)
    }

    /// Answers a command for the link. Returns false for any other command.
    private func answerOnLink(_ opcode: UInt16, _ parameters: [UInt8]) -> Bool {
        let handle = TracedController.octets(TracedController.handle)
        switch opcode {
        case 0x0406:  // Disconnect
            status(opcode)
            state.isConnected = false
            emit([4, 0x05, 4, 0] + handle + [0x16])
        case 0x2013 where parameters.count >= 10:  // LE Connection Update
            status(opcode)
            emit([4, 0x3E, 10, 0x03, 0] + handle + parameters[4..<10])
        case 0x2016:  // LE Read Remote Features: none
            status(opcode)
            emit([4, 0x3E, 12, 0x04, 0] + handle + [UInt8](repeating: 0, count: 8))
        case 0x2032:  // LE Set PHY: it stays LE 1M
            status(opcode)
            emit([4, 0x3E, 6, 0x0C, 0] + handle + [1, 1])
        case 0x2019:  // LE Enable Encryption
            status(opcode)
            emit([4, 0x08, 4, 0] + handle + [1])
        case 0x1405: complete(opcode, handle + [0xD0])  // Read RSSI
        case 0x2022, 0x2020, 0x2021: complete(opcode, handle)  // LE Set Data Length, answers about parameters
        default: return false
        }
        return true
    }

    private func status(_ opcode: UInt16) {
        emit([4, 0x0F, 4, 0, 1] + TracedController.octets(opcode))
    }

    private func complete(_ opcode: UInt16, _ parameters: [UInt8]) {
        emit([4, 0x0E, UInt8(clamping: parameters.count + 4), 1] + TracedController.octets(opcode) + [0] + parameters)
    }

    private static func octets(_ value: UInt16) -> [UInt8] {
        [UInt8(truncatingIfNeeded: value), UInt8(truncatingIfNeeded: value >> 8)]
    }
}
