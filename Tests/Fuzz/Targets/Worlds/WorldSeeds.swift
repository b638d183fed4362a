import BLEHCI

/// Scripts for a host that scans, advertises and connects: for each kind of controller, with and without private
/// addresses and a bond.
var discoverySeeds: [Script] {
    let name: [UInt8] = [4, 9, 0x74, 0x61, 0x67, 3, 3, 0x0F, 0x18]
    let actions: [Script.Packet] = [
        .init(choice: 3, octets: [8, 50, 50, 9]), .init(choice: 3, delay: 10, octets: [3, 60, 60]),
        .init(choice: 6, octets: [0, 5, 9] + name), .init(choice: 6, octets: [4, 5, 9] + name),
        .init(choice: 1, delay: 10, octets: [1, 0, 40, 3] + name), .init(choice: 1, octets: [0x20, 0, 40, 3] + name),
        .init(choice: 1, octets: [0, 0, 40, 3] + name), .init(choice: 2, octets: [0, 41] + name),
        .init(choice: 2, octets: [4, 41] + name), .init(choice: 9, delay: 50, octets: [0, 0, 40]),
        .init(choice: 9, octets: [4, 90]), .init(choice: 12, delay: 50, octets: [0x12]),
        .init(choice: 6, octets: [0x10, 0, 20]), .init(choice: 6, octets: [0x3C, 1, 2, 20, 9] + name),
        .init(choice: 5, delay: 60, octets: [3]), .init(choice: 14, octets: [3, 0]),
        .init(choice: 8, delay: 60, octets: [0]), .init(choice: 11, octets: [1]), .init(choice: 13, octets: [0]),
        .init(choice: 13, delay: 50, octets: [6]), .init(choice: 15, delay: 100, octets: [1]),
        .init(choice: 0, delay: 200, octets: [PacketType.event.rawValue, 0xFF, 0]),
    ]
    let trains = trainActions
    return (UInt8(0)..<16).flatMap { kind -> [Script] in
        let setups: [Script.Packet] = [
            .init(choice: kind << 4 | kind, octets: [2, 1, 4]), .init(choice: kind << 4 | 3, octets: [kind, 0, 0]),
        ]
        return setups.map { Script([$0] + actions) } + setups.map { Script([$0] + trains) }
    }
}

/// A train with subevents, and a synchronization with one, both with events of the controller.
private var trainActions: [Script.Packet] {
    let event = PacketType.event.rawValue
    let established: [UInt8] = [0, 1, 0, 1, 0, 1, 2, 3, 4, 5, 6, 1, 80, 0, 0, 4, 16, 8, 20]
    let report: [UInt8] = [1, 0, 0x7F, 0xC4, 0xFF, 5, 0, 2]
    let responses: [UInt8] = [0x7F, 0xC4, 0xFF, 0, 1, 2, 1, 9, 0x7F, 0xC4, 0xFF, 1, 0, 1, 0]
    let events: [[UInt8]] = [
        [0x27, 0, 0, 2], [0x28, 0, 1, 0, 2] + responses, [0x28, 0, 1, 1, 1] + responses.prefix(8), [0x24] + established,
        [0x25] + report + [1, 2, 1, 9], [0x25] + report + [0, 1, 0], [0x25] + report + [0xFF, 0], [0x10, 1, 0],
    ]
    let trains: [Script.Packet] = [
        .init(choice: 6, octets: [0x40, 3, 2, 1, 6]), .init(choice: 6, octets: [0x80, 40, 1, 2, 1, 2, 1, 6]),
    ]
    let rest: [Script.Packet] = [
        .init(choice: 5, octets: [1]), .init(choice: 13, octets: [1]), .init(choice: 8, delay: 60, octets: [0x80]),
    ]
    return trains
        + events.map { Script.Packet(delay: 10, octets: [event, 0x3E, UInt8($0.count)] + $0) } + rest
}

/// Scripts for two hosts that pair in every way, and then write with signatures.
var bondSeeds: [Script] {
    let second: UInt8 = 0x10
    let use: [Script.Packet] = [
        .init(choice: 5, octets: [8]), .init(choice: 9, delay: 250, octets: [2]),
        .init(choice: 10, delay: 100, octets: []),
        .init(choice: 11, delay: 50, octets: [0]), .init(choice: 7, octets: []), .init(choice: 7 | second, octets: []),
        .init(choice: 9, delay: 50, octets: [2]), .init(choice: 6 | second, delay: 50, octets: [1]),
        .init(choice: 1, delay: 250, octets: [0, 0xD2, 3, 0, 1] + [UInt8](repeating: 0, count: 12)),
        .init(choice: 2 | second, octets: [2, 0x0B, 0x0D]), .init(choice: 12 | second, delay: 50, octets: []),
        .init(choice: 5, octets: [8]), .init(choice: 14 | second, delay: 200, octets: [13]),
        .init(choice: 11, delay: 100, octets: [1]), .init(choice: 13, octets: [0]), .init(choice: 13, octets: [7]),
        .init(choice: 15, octets: [2]), .init(choice: 10 | second, delay: 200, octets: []),
    ]
    var scripts: [Script] = []
    for capability in UInt8(0)..<5 {
        for flags: UInt8 in [2, 4, 10, 16, 48] {
            let policies = (UInt8(0)...1).map { side in
                Script.Packet(choice: 3 | side << 4, octets: [(capability + side) % 5, flags, 0, 9, 0])
            }
            scripts.append(Script(policies + use))
        }
    }
    for flags in UInt8(0)..<16 {
        let exchange = Script.Packet(choice: 4, octets: [flags, 3, 2, 0, 9, 0, 3, 2, 0, 9, 0])
        scripts.append(Script([exchange] + use))
    }
    return scripts
}

/// Scripts for apps: usual ones, and each action from outside and within a delegate.
var managerSeeds: [Script] {
    let pause = Script.Packet(choice: 31, delay: 100, octets: [])
    let start = [pause, pause, pause]
    var scripts = [Script(start + start)]
    for action in UInt8(0)..<30 {
        let packets = (UInt8(0)..<6).flatMap { number in
            [Script.Packet(choice: action | (number & 1) << 5, delay: 20, octets: [number, number, number, number, 1])]
        }
        scripts.append(Script(start + packets + [pause]))
        let reactions = [UInt8](repeating: 31, count: 4 + Int(action)) + [action, action | 0x20, action | 0x60]
        scripts.append(
            Script([.init(choice: 30, octets: reactions)] + start + [.init(choice: 30, octets: reactions), pause])
        )
    }
    let channel: [Script.Packet] = [
        .init(choice: 26 | 0x20, delay: 20, octets: [0]), .init(choice: 16, delay: 20, octets: [0, 0, 0, 1]),
        .init(choice: 17, delay: 20, octets: [0, 3, 1, 2, 3]), .init(choice: 17 | 0x20, delay: 20, octets: [0, 3, 1]),
        .init(choice: 17, delay: 20, octets: [0, 15]), .init(choice: 17 | 0x20, delay: 20, octets: [0, 0x3F]),
    ]
    scripts.append(Script(start + channel))
    scripts.append(
        Script(start + [.init(choice: 28, delay: 50, octets: [0]), .init(choice: 28, delay: 250, octets: [3])] + start)
    )
    return scripts
}
