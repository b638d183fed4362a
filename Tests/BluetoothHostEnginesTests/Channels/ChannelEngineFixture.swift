import BLEATT
import BLEByteCoding
import BLEL2CAP
import BluetoothTypes

@testable import BluetoothHost

/// A ``ChannelEngine`` with what it has to know.
struct ChannelSide {
    /// A frame with its channel, as it goes over the link.
    struct SentFrame: Equatable {
        let channel: ChannelIdentifier
        let payload: [UInt8]
    }

    static let link = LinkIdentifier(handle: 0x0040, serial: 1)
    static let psm = SPSM(rawValue: 0x25)
    static let observers = (1...4).map { ObserverToken(index: $0, generation: 0) }
    static let call = CallToken(index: 9, generation: 0)
    static let otherCall = CallToken(index: 10, generation: 0)

    var engine: ChannelEngine
    var services = SPSMRegistry()
    var security = LinkSecurity()
    var parameters = NegotiatedConnectionParameters(interval: 24, latency: 0, supervisionTimeout: 400)
    var now = Instant(nanoseconds: 1_000_000_000_000)

    init(_ role: SignalingChannel.Role = .central) {
        engine = ChannelEngine(link: ChannelSide.link, role: role)
    }

    static func name(_ channel: UInt16, _ number: UInt64) -> HostChannelIdentifier {
        HostChannelIdentifier(link: link, channel: ChannelIdentifier(rawValue: channel), number: number)
    }

    // MARK: Inputs

    /// Requests a channel, and sends the request.
    mutating func connect(_ observer: Int = 0) throws -> HostChannelIdentifier {
        let name = try engine.connect(to: ChannelSide.psm, configuration: .init())
        _ = engine.observe(name, ChannelSide.observers[observer])
        engine.release(name.channel)
        return name
    }

    /// Requests a channel that can be reconfigured, and sends the request.
    mutating func connectEnhanced(_ observer: Int = 0) throws -> HostChannelIdentifier {
        let names = try engine.connect(to: ChannelSide.psm, count: 1, configuration: .init())
        _ = engine.observe(names[0], ChannelSide.observers[observer])
        engine.release(names[0].channel)
        return names[0]
    }

    mutating func signal(_ command: [UInt8]) -> SignalingOutcome {
        var buffer = PacketBuffer()
        return engine.receiveSignaling(
            command.rawSpan,
            services: services,
            security: security,
            parameters: parameters,
            at: now,
            into: &buffer
        )
    }

    /// The outcome of a command, and the answer in the buffer.
    mutating func answer(_ command: [UInt8]) -> (SignalingOutcome, [UInt8]) {
        var buffer = PacketBuffer()
        let outcome = engine.receiveSignaling(
            command.rawSpan,
            services: services,
            security: security,
            parameters: parameters,
            at: now,
            into: &buffer
        )
        return (outcome, [UInt8](copying: buffer.bytes))
    }

    mutating func receive(_ payload: [UInt8], on channel: UInt16) -> CreditBasedChannels.FrameOutcome {
        engine.receive(payload.rawSpan, on: ChannelIdentifier(rawValue: channel))
    }

    mutating func requestParameters() throws(SignalingChannel.RequestError) -> [UInt8] {
        var buffer = PacketBuffer()
        let request = ConnectionParameterUpdateRequest(intervalMin: 24, intervalMax: 40, latency: 0, timeout: 400)
        try engine.requestParameterUpdate(request, at: now, into: &buffer)
        return [UInt8](copying: buffer.bytes)
    }

    /// - Returns: whether a request for connection parameters has timed out.
    mutating func advance(by duration: Duration) -> Bool {
        now = now + duration
        return engine.advance(to: now)
    }

    // MARK: Outputs

    mutating func nextCommand() -> [UInt8]? {
        var buffer = PacketBuffer()
        return engine.nextCommand(at: now, into: &buffer) ? [UInt8](copying: buffer.bytes) : nil
    }

    mutating func commands() -> [[UInt8]] {
        var commands: [[UInt8]] = []
        while let command = nextCommand() { commands.append(command) }
        return commands
    }

    mutating func nextFrame() -> SentFrame? {
        var buffer = PacketBuffer()
        guard let channel = engine.nextFrame(into: &buffer) else { return nil }
        return SentFrame(channel: channel, payload: [UInt8](copying: buffer.bytes))
    }

    mutating func frames() -> [SentFrame] {
        var frames: [SentFrame] = []
        while let frame = nextFrame() { frames.append(frame) }
        return frames
    }

    mutating func effects() -> [ChannelEffect] {
        var effects: [ChannelEffect] = []
        while let effect = engine.nextEffect() { effects.append(effect) }
        return effects
    }
}

/// Signaling commands of a peer whose MTU is 200 bytes and whose MPS is 50 bytes.
enum PeerCommand {
    /// The response that opens the channel of the request with this identifier.
    static func accept(_ identifier: UInt8, as channel: UInt8, credits: UInt8 = 3) -> [UInt8] {
        [0x15, identifier, 10, 0, channel, 0, 200, 0, 50, 0, credits, 0, 0, 0]
    }

    static func refuse(_ identifier: UInt8, _ result: UInt8) -> [UInt8] {
        [0x15, identifier, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, result, 0]
    }

    /// The response that opens a channel with enhanced credit-based flow control, or refuses it.
    static func acceptEnhanced(_ identifier: UInt8, as channel: UInt8, result: UInt8 = 0) -> [UInt8] {
        [0x18, identifier, 10, 0, 200, 0, 64, 0, 3, 0, result, 0, channel, 0]
    }

    static func request(_ identifier: UInt8, from channel: UInt8, to psm: SPSM = ChannelSide.psm) -> [UInt8] {
        [0x14, identifier, 10, 0, UInt8(psm.rawValue), 0, channel, 0, 200, 0, 50, 0, 3, 0]
    }

    static func disconnect(_ identifier: UInt8, _ channel: UInt8, from source: UInt8) -> [UInt8] {
        [0x06, identifier, 4, 0, channel, 0, source, 0]
    }

    static func reconfigured(_ identifier: UInt8, result: UInt8 = 0) -> [UInt8] {
        [0x1A, identifier, 2, 0, result, 0]
    }

    static func reject(_ identifier: UInt8) -> [UInt8] { [0x01, identifier, 2, 0, 0, 0] }
}
