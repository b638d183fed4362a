import BLEByteCoding
import BLEL2CAP
import BluetoothTypes

/// One end of a link: its channels, and the state that a host has for them.
struct ChannelEndpoint {
    /// A frame with its channel, as it goes over the link.
    struct SentFrame: Equatable {
        let channel: UInt16
        let payload: [UInt8]
    }

    var channels: CreditBasedChannels
    var identifiers = SignalingIdentifiers()
    var services = SPSMRegistry()
    var security = LinkSecurity()
    var now = Instant(nanoseconds: 0)

    init(limit: Int = 16, yieldsToPeer: Bool = false) {
        channels = CreditBasedChannels(limit: limit, yieldsToPeer: yieldsToPeer)
    }

    mutating func receive(command: [UInt8]) -> CreditBasedChannels.CommandOutcome {
        channels.receive(command: command.rawSpan, services: services, security: security, at: now)
    }

    mutating func receive(_ payload: [UInt8], on channel: UInt16) -> CreditBasedChannels.FrameOutcome {
        channels.receive(payload.rawSpan, on: ChannelIdentifier(rawValue: channel))
    }

    /// The next signaling command; nil if there is none.
    mutating func nextCommand() -> [UInt8]? {
        var buffer = PacketBuffer()
        guard channels.nextCommand(at: now, identifiers: &identifiers, into: &buffer) else { return nil }
        return [UInt8](copying: buffer.bytes)
    }

    mutating func commands() -> [[UInt8]] {
        var commands: [[UInt8]] = []
        while let command = nextCommand() { commands.append(command) }
        return commands
    }

    /// The commands that are sent in answer to a command.
    mutating func answers(to command: [UInt8]) -> [[UInt8]] {
        _ = receive(command: command)
        return commands()
    }

    mutating func nextFrame() -> SentFrame? {
        var buffer = PacketBuffer()
        guard let channel = channels.nextFrame(into: &buffer) else { return nil }
        return SentFrame(channel: channel.rawValue, payload: [UInt8](copying: buffer.bytes))
    }

    mutating func frames() -> [SentFrame] {
        var frames: [SentFrame] = []
        while let frame = nextFrame() { frames.append(frame) }
        return frames
    }

    mutating func events() -> [CreditBasedChannels.Event] {
        var events: [CreditBasedChannels.Event] = []
        while let event = channels.nextEvent() { events.append(event) }
        return events
    }
}

/// Two ends, joined by a pipe in each direction that loses nothing and keeps the order.
struct ChannelPair {
    private enum Packet {
        case command([UInt8])
        case frame(ChannelEndpoint.SentFrame)
    }

    var ends: [ChannelEndpoint]
    private var pipes: [[Packet]] = [[], []]

    init(limit: Int = 16) {
        ends = [ChannelEndpoint(limit: limit), ChannelEndpoint(limit: limit)]
    }

    /// Puts an end's packets into its pipe: all commands, and at most `frames` K-frames.
    mutating func send(from end: Int, frames: Int) {
        pipes[end] += ends[end].commands().map(Packet.command)
        for _ in 0..<frames {
            guard let frame = ends[end].nextFrame() else { return }
            pipes[end].append(.frame(frame))
        }
    }

    /// Delivers the oldest packet of a pipe to the other end.
    ///
    /// - Returns: whether there was one.
    @discardableResult
    mutating func deliver(from end: Int) -> Bool {
        guard !pipes[end].isEmpty else { return false }
        switch pipes[end].removeFirst() {
        case .command(let command): _ = ends[1 - end].receive(command: command)
        case .frame(let frame): _ = ends[1 - end].receive(frame.payload, on: frame.channel)
        }
        return true
    }

    /// Runs both ends until no packet is left.
    mutating func settle() {
        var isBusy = true
        while isBusy {
            isBusy = false
            for end in 0...1 {
                send(from: end, frames: .max)
                while deliver(from: end) { isBusy = true }
            }
        }
    }
}

func channel(_ value: UInt16) -> ChannelIdentifier { ChannelIdentifier(rawValue: value) }

func list(_ values: UInt16...) -> ChannelIdentifierList {
    ChannelIdentifierList(values.map(channel)) ?? ChannelIdentifierList()
}
