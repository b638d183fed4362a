import BLEByteCoding
import BLEL2CAP
import BluetoothTypes

/// Fuzzes a link's signaling channel and its credit-based channels with the packets of a script. A packet with an even
/// choice goes to the signaling channel. One with an odd choice goes to the channel that it selects, or makes this side
/// act. A delay advances the clock.
func fuzzSignaling(_ input: [UInt8]) {
    var signaling = SignalingChannel(role: input.count.isMultiple(of: 2) ? .central : .peripheral)
    var channels = CreditBasedChannels()
    var services = SPSMRegistry()
    setUpAtOnce {
        try services.register(.init(), at: SPSM(rawValue: SPSM.dynamicRange.lowerBound))
        try services.register(.init(security: .init(needsEncryption: true)), at: SPSM(rawValue: 0x0081))
    }
    var now = Instant(nanoseconds: 0)
    var buffer = PacketBuffer(capacity: 4096)
    _ = setUpAtOnce { try channels.connect(to: SPSM(rawValue: 0x0080)) }

    for packet in Script(input).packets {
        now = now + .milliseconds(Int(packet.delay) * 200)
        _ = signaling.advance(to: now)
        channels.advance(to: now)
        let channel = ChannelIdentifier(rawValue: 0x0040 + UInt16(packet.choice >> 4 & 7))
        if packet.choice & 0x81 == 0x81 {
            buffer.reset()
            let request = ConnectionParameterUpdateRequest(
                intervalMin: 6,
                intervalMax: 12,
                latency: 0,
                timeout: 100
            )
            try? signaling.requestParameterUpdate(request, at: now, into: &buffer)
            act(packet, on: channel, &channels)
        } else if packet.choice.isMultiple(of: 2) {
            let payload = packet.octets.rawSpan
            let outcome = channels.receive(command: payload, services: services, security: LinkSecurity(), at: now)
            if case .notForChannels = outcome {
                buffer.reset()
                _ = signaling.receive(payload, into: &buffer)
            }
        } else {
            _ = channels.receive(packet.octets.rawSpan, on: channel)
        }
        drain(&channels, &signaling, now, &buffer)
        require(channels.count <= 16, "\(channels.count) channels of one link")
    }
}

/// An action of an app on channels.
private func act(_ packet: Script.Packet, on channel: ChannelIdentifier, _ channels: inout CreditBasedChannels) {
    var list = ChannelIdentifierList()
    list.append(channel)
    switch packet.choice >> 1 & 7 {
    case 0: _ = try? channels.connect(to: SPSM(rawValue: 0x0080))
    case 1: _ = try? channels.connect(to: SPSM(rawValue: 0x0081), count: Int(packet.delay % 6))
    case 2: try? channels.send(packet.octets, on: channel)
    case 3: while channels.read(from: channel) != nil {}
    case 4: try? channels.reconfigure(list, mtu: UInt16(clamping: packet.octets.count * 64), mps: 128)
    case 5: channels.finish(channel)
    case 6: channels.linkEnded()
    default: channels.disconnect(channel)
    }
}

private func drain(
    _ channels: inout CreditBasedChannels,
    _ signaling: inout SignalingChannel,
    _ now: Instant,
    _ buffer: inout PacketBuffer
) {
    for _ in 0..<64 {
        buffer.reset()
        guard channels.nextCommand(at: now, identifiers: &signaling.identifiers, into: &buffer) else { break }
    }
    for _ in 0..<64 {
        buffer.reset()
        guard channels.nextFrame(into: &buffer) != nil else { break }
    }
    while channels.nextEvent() != nil {}
}
