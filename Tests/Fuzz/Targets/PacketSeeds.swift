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

/// ISO packets of the first streams of a controller: a whole SDU, a lost one, one in fragments, and parts that do not
/// fit.
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

/// Streams of either side, in pieces of one byte and of 32 bytes, also with bytes that are no packet.
var streamSeeds: [[UInt8]] {
    let frame: [UInt8] = [2, 0x40, 0x20, 7, 0, 3, 0, 4, 0, 0x0A, 3, 0]
    let complete: [UInt8] = [4, 0x0E, 4, 1, 3, 0x0C, 0]
    let completed: [UInt8] = [4, 0x13, 5, 1, 0x40, 0, 1, 0]
    let sdu: [UInt8] = [5, 0x60, 0x2E, 6, 0, 0, 0, 2, 0, 1, 2]
    let commands: [[UInt8]] = [[1, 3, 0x0C, 0], [1, 0x0A, 0x20, 1, 1], [1, 0x06, 0x04, 3, 0x40, 0, 0x13]]
    let streams: [(sender: UInt8, packets: [[UInt8]])] = [
        (0, [complete, frame, completed, sdu]), (1, commands + [frame, sdu]), (0, [complete, [0, 9], complete]),
    ]
    return streams.flatMap { sender, packets -> [[UInt8]] in
        [sender, 62 | sender].map { choice -> [UInt8] in [choice] + packets.joined() }
    }
}

/// Fragments of a link: whole frames, frames in several packets, and each kind of violation.
var fragmentSeeds: [Script] {
    // The choices of the target: the boundary flags of its packets.
    let (start, continuation): (UInt8, UInt8) = (2, 1)
    func fragment(_ flag: UInt8, _ octets: [UInt8]) -> Script.Packet { .init(choice: flag, octets: octets) }
    let whole = fragment(start, [3, 0, 4, 0, 0x0A, 3, 0])
    let more = fragment(continuation, [3, 4])
    let begun = fragment(start, [6, 0, 4, 0, 1, 2])
    return [
        Script([whole, fragment(0, [1, 0, 5, 0, 7]), fragment(3, [1, 0, 6, 0, 7])]), Script([begun, more, more]),
        // The header is split.
        Script([fragment(start, [4]), fragment(continuation, [0, 4, 0, 1, 2]), more]),
        Script([begun, whole, more, fragment(start, [])]),
        Script([fragment(start, [1, 0, 4, 0, 1, 2]), begun, more, fragment(continuation, [1, 2, 3])]),
        Script([fragment(start, [0xFF, 0xFF, 4, 0, 1]), more, whole]),
        // With bit 7, a whole packet: one with a correct length, and one with another length.
        Script([fragment(0x80, [0x40, 0x20, 5, 0, 1, 0, 4, 0, 7]), fragment(0x80, [0x40, 0x20, 9, 0, 1])]),
    ]
}

/// Advertising data with structures of each kind, and with lengths that do not fit.
var advertisingSeeds: [[UInt8]] {
    let uuid = [UInt8](1...16)
    let uuidLists: [[UInt8]] = [
        [5, 0x03, 0x0F, 0x18, 0x0A, 0x18], [5, 0x05, 1, 2, 3, 4], [17, 0x07] + uuid, [3, 0x14, 0x0D, 0x18],
        [5, 0x1F, 1, 2, 3, 4], [17, 0x15] + uuid,
    ]
    let serviceData: [[UInt8]] = [[4, 0x16, 0x0F, 0x18, 99], [6, 0x20, 1, 2, 3, 4, 5], [18, 0x21, 0] + uuid]
    let others: [[UInt8]] = [
        [2, 0x01, 6], [5, 0x09, 0x6C, 0x61, 0x6D, 0x70], [3, 0x08, 0x6C, 0x61], [5, 0xFF, 0x4C, 0, 2, 0x15],
        [2, 0x0A, 0xF4], [3, 0x19, 0x40, 3],
    ]
    let malformed: [[UInt8]] = [[0, 0, 2, 0x01], [3, 0x03, 0x0F], [1, 0x09, 1, 0x01, 255, 0xFF, 1], [2, 0x07, 1]]
    return [uuidLists, serviceData, others].map { Array($0.joined()) } + malformed
}
