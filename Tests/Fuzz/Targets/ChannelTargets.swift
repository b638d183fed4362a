import BluetoothTypes
import ByteCoding
import L2CAP

/// A link's signalling channel and its credit-based channels, as the packets of a script drive them: an even choice is for
/// the signalling channel, an odd one for the channel it names; a delay moves the clock.
func fuzzSignaling(_ input: [UInt8]) {
    var signaling = SignalingChannel(role: .central)
    var channels = CreditBasedChannels()
    var services = SPSMRegistry()
    try? services.register(.init(), at: SPSM(rawValue: SPSM.dynamicRange.lowerBound))
    try? services.register(.init(security: .init(needsEncryption: true)), at: SPSM(rawValue: 0x0081))
    var now = Instant(nanoseconds: 0)
    var buffer = PacketBuffer(capacity: 4096)
    _ = try? channels.connect(to: SPSM(rawValue: 0x0080))

    for packet in Script(input).packets {
        now = now + .milliseconds(Int(packet.delay) * 200)
        _ = signaling.advance(to: now)
        channels.advance(to: now)
        if packet.choice.isMultiple(of: 2) {
            let payload = packet.octets.rawSpan
            let outcome = channels.receive(command: payload, services: services, security: LinkSecurity(), at: now)
            if case .notForChannels = outcome {
                buffer.reset()
                _ = signaling.receive(payload, into: &buffer)
            }
        } else {
            let channel = ChannelIdentifier(rawValue: 0x0040 + UInt16(packet.choice >> 1))
            _ = channels.receive(packet.octets.rawSpan, on: channel)
            if packet.choice & 0x80 != 0 { _ = channels.read(from: channel) }
            if packet.choice & 0x40 != 0 { try? channels.send(packet.octets, on: channel) }
        }
        drain(&channels, &signaling, now, &buffer)
        require(channels.count <= 16, "\(channels.count) channels of one link")
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
