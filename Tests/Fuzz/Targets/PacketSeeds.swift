import BLEByteCoding
import BLEHCI

/// Events of every kind, with parameters of zeros, as short as each can be.
var eventSeeds: [[UInt8]] {
    let kinds = (UInt8(0)...0xFE).map { [$0] } + (UInt8(1)...0x3F).map { [0x3E, $0] }
    return kinds.flatMap { kind in
        (kind.count - 1...200).lazy.map { length in
            let rest = [UInt8](repeating: 0, count: length - kind.count + 1)
            return [kind[0], UInt8(length)] + kind.dropFirst() + rest
        }.filter(isKnownEvent).prefix(2)
    }
}

private func isKnownEvent(_ packet: [UInt8]) -> Bool {
    guard let event = try? Event(decoding: packet.rawSpan) else { return false }
    if case .unknown = event { return false }
    return true
}

/// Scripts for a host.
///
/// Some have events of every kind from its controller. Some have the inputs of each protocol's targets on each of its
/// links. The others have the actions of its app and its peers, one at a time and all at once.
var hostSeeds: [[UInt8]] {
    let events = eventSeeds.map { Script.Packet(delay: 1, octets: [PacketType.event.rawValue] + $0) }
    var scripts = stride(from: 0, to: events.count, by: 20).map {
        Script(Array(events[$0..<min($0 + 20, events.count)]))
    }
    let protocols: [(channel: UInt8, target: FuzzTarget)] = [(4, .server), (4, .client), (5, .signaling)]
    for (channel, target) in protocols {
        for seed in target.madeSeeds {
            scripts += (UInt8(0)...1).map { link in
                Script(Script(seed).packets.prefix(40).map { data($0.octets, on: channel, link: link) })
            }
        }
    }
    let pairing: [[UInt8]] = [
        [0x0B, 0x0D], [0x01, 3, 0, 0x0D, 16, 7, 7], [0x02, 3, 0, 0x0D, 16, 7, 7], [0x01, 3, 0, 0x05, 16, 7, 7],
        [0x0C] + [UInt8](repeating: 1, count: 64), [0x03] + [UInt8](repeating: 1, count: 16),
        [0x04] + [UInt8](repeating: 1, count: 16), [0x0D] + [UInt8](repeating: 1, count: 16), [0x05, 4], [0x0E, 0],
    ]
    scripts += (UInt8(0)...1).map { link in Script((pairing + pairing).map { data($0, on: 6, link: link) }) }
    scripts += (UInt8(1)...7).map { Script([action($0), action(0), action(0)]) }
    scripts.append(Script((UInt8(1)...6).map(action) + [action(0), action(0)]))
    // An action with a broadcast group, while the controller sends packets and events of streams.
    scripts.append(Script([action(8)] + streamPackets + [action(0), action(0)]))
    let channelFrame = data([6, 0, 1, 2, 3, 4], on: 0x40, link: 0)
    scripts.append(Script([action(3), channelFrame, action(4), channelFrame, action(0)]))
    return scripts.map(\.octets)
}

/// ISO packets of the first streams of a controller: a whole SDU, a lost one, one in fragments, and parts that do not fit.
private var streamPackets: [Script.Packet] {
    let bodies: [[UInt8]] = [
        [0x60, 0x2E, 6, 0, 0, 0, 2, 0, 1, 2], [0x61, 0x2E, 4, 0, 1, 0, 0, 0x80],
        [0x60, 0x0E, 5, 0, 2, 0, 2, 0, 1], [0x60, 0x3E, 1, 0, 2], [0x60, 0x1E, 2, 0, 3, 4],
    ]
    let packets = bodies.map { Script.Packet(delay: 50, octets: [PacketType.iso.rawValue] + $0) }
    let events: [[UInt8]] = [
        [0x3E, 0x17, 0x1B, 0, 0, 1, 0, 0, 1, 0, 0, 2, 1, 1, 0, 1, 100, 0, 8, 0, 2, 0x60, 0x0E, 0x61, 0x0E],
        [0x3E, 3, 0x1E, 0, 0x3D], [0x3E, 3, 0x1C, 0, 0x16],
    ]
    return packets + events.map { Script.Packet(delay: 50, octets: [PacketType.event.rawValue] + $0) } + packets
}

/// An action of the app or a peer, followed by an unknown event.
private func action(_ number: UInt8) -> Script.Packet {
    Script.Packet(choice: number << 3, delay: 200, octets: [PacketType.event.rawValue, 0xFF, 0])
}

/// An ACL packet with one frame for a channel of one of the host's own links.
private func data(_ payload: [UInt8], on channel: UInt8, link: UInt8) -> Script.Packet {
    let length = UInt8(clamping: payload.count)
    let header = [PacketType.acl.rawValue, 0, 0x20, length &+ 4, 0, length, 0, channel, 0]
    return Script.Packet(choice: 1 | link << 1, delay: 2, octets: header + payload)
}
