import BluetoothTypes

extension FuzzTarget {
    /// Inputs that reach states that captures do not contain.
    package var madeSeeds: [[UInt8]] {
        switch self {
        case .security: pairings.map(\.octets)
        case .signaling: channels.map(\.octets)
        case .client: (0..<13).flatMap { number in answers(number).map(\.octets) }
        case .server: [requests.octets]
        case .profile: profiles.map { Array($0.utf8) }
        case .capture: captures
        case .trace: traces
        case .event: eventSeeds
        case .command: commandSeeds
        case .host: hostSeeds
        case .discovery: discoverySeeds.map(\.octets)
        case .bonds: bondSeeds.map(\.octets)
        case .managers: managerSeeds.map(\.octets)
        case .state: stateSeeds.map(\.octets)
        case .sensors: sensorSeeds
        case .controller: controllerSeeds.map(\.octets)
        case .stream: streamSeeds
        case .acl: fragmentSeeds.map(\.octets)
        case .advertising: advertisingSeeds
        }
    }
}

/// A complete pairing for each pair of IO capabilities and each kind of pairing.
private var pairings: [Script] {
    var scripts: [Script] = []
    for central in UInt8(0)..<5 {
        for peripheral in UInt8(0)..<5 {
            for flags: UInt8 in [0, 1, 2, 3, 0x23] {
                // The choices of the target: configure, start, answer with the shown passkey, deliver all PDUs.
                var packets: [Script.Packet] = [
                    .init(choice: 7, octets: [central, flags, 9]), .init(choice: 6, octets: [peripheral, flags, 9]),
                    // Odd flags: the peripheral begins the pairing by a Security Request.
                    .init(choice: flags & 1 != 0 ? 0xF2 : 0xF0, octets: []), .init(choice: 0xF0, octets: []),
                ]
                if flags == 3 { packets.append(.init(choice: 0x0B, octets: [0x0E, 0])) }
                for _ in 0..<7 {
                    packets += [.init(choice: 0xF9, octets: [2]), .init(choice: 0xF8, octets: [2])]
                    packets += [.init(choice: 0xF9, octets: [3]), .init(choice: 0xF8, octets: [3])]
                }
                scripts.append(Script(packets))
            }
        }
    }
    return scripts
}

/// Channels that either side opens, uses, changes and closes (Vol 3, Part A, 4.22 to 4.28).
private var channels: [Script] {
    let request: [UInt8] = [0x14, 1, 10, 0, 0x80, 0, 0x40, 0, 0x40, 0, 0x20, 0, 5, 0]
    let enhanced: [UInt8] = [0x17, 2, 12, 0, 0x80, 0, 0x40, 0, 0x40, 0, 5, 0, 0x50, 0, 0x51, 0]
    let reconfigure: [UInt8] = [0x19, 3, 8, 0, 0x80, 0, 0x80, 0, 0x50, 0, 0x51, 0]
    let credit: [UInt8] = [0x16, 4, 4, 0, 0x40, 0, 9, 0]
    let disconnect: [UInt8] = [0x06, 5, 4, 0, 0x41, 0, 0x40, 0]
    let answer: [UInt8] = [0x15, 1, 10, 0, 0x40, 0, 0x40, 0, 0x20, 0, 5, 0, 0, 0]
    let enhancedAnswer: [UInt8] = [0x18, 2, 12, 0, 0x40, 0, 0x40, 0, 5, 0, 0, 0, 0x60, 0, 0x61, 0]
    let reconfigured: [UInt8] = [0x1A, 3, 2, 0, 0, 0]
    let frame: [UInt8] = [6, 0, 1, 2, 3, 4]
    let rest: [UInt8] = [5, 6]
    func own(_ action: UInt8, _ channel: UInt8 = 0, _ octets: [UInt8] = []) -> Script.Packet {
        .init(choice: 0x81 | channel << 4 | action << 1, delay: 2, octets: octets)
    }
    return [
        Script([
            .init(octets: request), .init(choice: 1, octets: frame), .init(choice: 1, octets: rest), own(3),
            own(2, 1, frame), .init(octets: credit), own(2, 1, frame), .init(octets: disconnect), own(7, 1),
        ]),
        Script([
            .init(octets: answer), .init(choice: 1, octets: frame), own(2, 0, frame), own(5), .init(octets: credit),
        ]),
        Script([
            .init(octets: enhanced), .init(octets: reconfigure), own(4, 1, [UInt8](repeating: 0, count: 20)),
            .init(octets: reconfigured), .init(choice: 0x21, octets: frame), own(7, 2),
        ]),
        Script([
            own(1), .init(octets: enhancedAnswer), own(2, 1, frame), own(4, 1), .init(octets: reconfigured), own(6),
        ]),
        Script([
            .init(octets: [0x12, 9, 8, 0, 6, 0, 12, 0, 0, 0, 100, 0]), .init(octets: [0x13, 1, 2, 0, 0, 0]),
            .init(octets: [0x01, 1, 2, 0, 0, 0]), .init(octets: [0x0A, 1, 2, 0, 1, 0]),
        ]),
    ]
}

/// Valid and invalid responses of a server to each procedure in turn.
private func answers(_ first: Int) -> [Script] {
    let responses: [[UInt8]] = [
        [0x11, 6, 1, 0, 5, 0, 0x0F, 0x18], [0x01, 0x10, 6, 0, 0x0A], [0x07, 1, 0, 5, 0], [0x01, 0x06, 6, 0, 0x0A],
        [0x09, 8, 3, 0, 1, 0, 5, 0, 0x0F, 0x18], [0x09, 7, 4, 0, 0x12, 5, 0, 0x19, 0x2A], [0x01, 0x08, 5, 0, 0x0A],
        [0x05, 1, 6, 0, 2, 0x29], [0x01, 0x04, 7, 0, 0x0A], [0x0B] + [UInt8](repeating: 1, count: 22), [0x0D, 1, 2],
        [0x09, 4, 3, 0, 1, 2], [0x0F, 1, 2], [0x21, 1, 0, 7, 2, 0, 8, 9],
        [0x17, 3, 0, 0, 0] + [UInt8](repeating: 1, count: 18), [0x17, 3, 0, 18, 0] + [UInt8](repeating: 1, count: 18),
        [0x17, 3, 0, 36, 0] + [UInt8](repeating: 1, count: 18), [0x17, 3, 0, 54, 0] + [UInt8](repeating: 1, count: 6),
        [0x19], [0x13], [0x01, 0x12, 3, 0, 0x05], [0x1D, 4, 0, 1, 0, 0xFF, 0xFF],
        [0x1B, 3, 0, 1, 2], [0x23, 3, 0, 1, 0, 9, 4, 0, 0, 0], [0x23, 3, 0, 9, 0, 9],
    ]
    let packets = responses.map { Script.Packet(octets: $0) }
    return [0, 1, 7].map { delay in
        Script([.init(choice: UInt8(first), delay: delay, octets: [])] + packets + packets)
    }
}

/// A request of each kind, and a command of each kind.
private var requests: Script {
    let requests: [[UInt8]] = [
        [0x02, 23, 2], [0x04, 1, 0, 0xFF, 0xFF], [0x06, 1, 0, 0xFF, 0xFF, 0, 0x28, 0x0F, 0x18],
        [0x08, 1, 0, 0xFF, 0xFF, 3, 0x28], [0x08, 1, 0, 0xFF, 0xFF, 0x2A, 0x2B], [0x0A, 3, 0], [0x0C, 0x1A, 0, 20, 0],
        [0x0E, 3, 0, 0x12, 0], [0x20, 3, 0, 0x12, 0], [0x10, 1, 0, 0xFF, 0xFF, 0, 0x28], [0x12, 0x13, 0, 1, 0],
        [0x12, 4, 0, 2, 0], [0x52, 0x16, 0, 1], [0x16, 0x16, 0, 0, 0, 1, 2], [0x16, 0x16, 0, 2, 0, 3], [0x18, 1],
        [0x18, 0], [0xD2, 0x16, 0, 1] + [UInt8](repeating: 0, count: 12), [0x1E],
    ]
    return Script(requests.map { .init(choice: 0x17, delay: 3, octets: $0) })
}

private let profiles = [
    """
    {"name": "Thermo", "appearance": 768, "address": "f0:12:34:56:78:9a",
     "advertise": {"services": ["1809"], "manufacturerData": {"004C": "0215"}, "connectable": false, "interval": 62.5},
     "services": [
       {"uuid": "1809", "primary": true, "handle": 16, "includes": [1], "characteristics": [
         {"uuid": "2A1C", "handle": "0x0012", "properties": ["read", "indicate"], "permissions": ["readEncrypted"],
          "value": "0a0b", "maxLength": 20,
          "descriptors": [{"uuid": "2901", "handle": 21, "value": {"text": "hot"}, "permissions": ["read", "write"]}]}]},
       {"uuid": "12345678-1234-5678-1234-56789ABCDEF0", "primary": false}]}
    """,
    #"["\u00e9\ud83c\udf21\/\b\f\n\r\t\"\\", -2.5e1, 12345678901234567890, true, false, null, {}]"#,
    "hci0?channel=raw", "addr:00:1A:7D:DA:71:13", "tcp:[::1]:6402", "unix:/run/air", "virtual:lab",
    "serial:/dev/ttyAMA0,115200,flow=rtscts",
]

/// Advertisements of BTHome, plain and encrypted, and of Ruuvi; values of Heart Rate Measurement, of Blood Pressure
/// Measurement and with a presentation format.
private let sensorSeeds: [[UInt8]] = [
    "0c16d2fc40029c080356133a01", "1216d2fc41a47266c95f730011223378237214",
    "1bff99040512fc5394c37c0004fffc040cac364200cdcbb8334c884f", "372a1f48001400000400030102",
    "352a1fa0f06bf07cf0ea070b1b1300264800022d00", "f1ff0efe2f270100006608",
].compactMap { [UInt8](hexadecimal: $0) }

/// A capture (btsnoop) in which the peer discovers and uses the attributes of the recorded host.
private var traces: [[UInt8]] {
    var file = Array("btsnoop".utf8) + [0, 0, 0, 0, 1, 0, 0, 0x03, 0xEA]
    for (pdu, isClients) in exchanges {
        let count = UInt8(pdu.count)
        let packet: [UInt8] = [2, 0x40, 0x20, count + 4, 0, count, 0, 4, 0] + pdu
        let length: [UInt8] = [0, 0, 0, UInt8(packet.count)]
        file += length + length
        file += [0, 0, 0, isClients ? 1 : 0, 0, 0, 0, 0]
        file += [0, 0xE0, 0x3A, 0xB4, 0x4A, 0x67, 0x60, 0]
        file += packet
    }
    return [file]
}

/// The services, characteristics and descriptors of a server, and a read, a write and a refused read of their values.
private let exchanges: [(pdu: [UInt8], isClients: Bool)] = [
    ([0x10, 1, 0, 0xFF, 0xFF, 0, 0x28], true), ([0x11, 6, 1, 0, 6, 0, 0x0F, 0x18], false),
    ([0x08, 1, 0, 6, 0, 3, 0x28], true),
    ([0x09, 7, 2, 0, 0x0A, 3, 0, 0x19, 0x2A, 4, 0, 0x12, 5, 0, 0x1B, 0x2A], false),
    ([0x04, 6, 0, 6, 0], true), ([0x05, 1, 6, 0, 2, 0x29], false),
    ([0x0A, 3, 0], true), ([0x0B, 99], false), ([0x12, 3, 0, 1], true), ([0x13], false),
    ([0x0A, 5, 0], true), ([0x01, 0x0A, 5, 0, 2], false),
]

/// A packet in each format that can be read but not written (libpcap, and Apple's PacketLogger).
private let captures: [[UInt8]] = [
    [0xD4, 0xC3, 0xB2, 0xA1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 201, 0, 0, 0]
        + [1, 0, 0, 0, 2, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1, 3, 0x0C, 0],
    [0xD4, 0xC3, 0xB2, 0xA1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 187, 0, 0, 0]
        + [1, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1, 3, 0x0C, 0],
    [0xA1, 0xB2, 0x3C, 0x4D, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 254]
        + [0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0, 7, 0, 0, 0, 2, 3, 0x0C, 0],
    [0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 2, 0, 3, 0x0C, 0],
]
