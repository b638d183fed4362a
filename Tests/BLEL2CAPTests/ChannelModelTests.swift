import BLEL2CAP
import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

/// The lengths and capacities of one end, and the behavior of both ends.
private struct Scenario: CustomTestStringConvertible, Sendable {
    let testDescription: String
    var configurations: [CreditBasedChannel.Configuration]
    /// The number of channels that the enhanced variant opens; nil for the other variant.
    var enhanced: Int?
    /// The approximate number of bytes on each channel in each direction.
    var volume = 20_000
}

private let spsm = SPSM(rawValue: 0x80)

private let scenarios = [
    Scenario(
        testDescription: "the least lengths and credits",
        configurations: Array(
            repeating: .init(mtu: 23, mps: 23, receiveByteCapacity: 0, sendByteCapacity: 0),
            count: 2
        ),
        volume: 4_000
    ),
    Scenario(
        testDescription: "long SDUs in short K-frames, one end starving",
        configurations: [
            .init(mtu: 65535, mps: 23, receiveByteCapacity: 0), .init(mtu: 1000, mps: 24, receiveByteCapacity: 100_000),
        ],
        volume: 70_000
    ),
    Scenario(
        testDescription: "the greatest lengths",
        configurations: Array(repeating: .init(mtu: 65535, mps: 65533), count: 2),
        volume: 140_000
    ),
    Scenario(
        testDescription: "short SDUs, long K-frames",
        configurations: [
            .init(mtu: 23, mps: 65533, receiveByteCapacity: 0), .init(mtu: 23, mps: 300, receiveByteCapacity: 0),
        ]
    ),
    Scenario(
        testDescription: "usual lengths",
        configurations: [.init(), .init(mtu: 512, mps: 100)]
    ),
    Scenario(
        testDescription: "five channels at once",
        configurations: [
            .init(mtu: 64, mps: 64, receiveByteCapacity: 0), .init(mtu: 1280, mps: 247, receiveByteCapacity: 3000),
        ],
        enhanced: 5
    ),
]

/// Two ends of a link whose apps write and read at random, and a model of the data.
private struct World {
    private struct Traffic {
        /// The identifier of the channel at each end.
        var names: [ChannelIdentifier]
        /// The SDUs written at each end and not yet read at the other.
        var underway: [[[UInt8]]] = [[], []]
        var written = [0, 0]
        /// The SDU that had no room at each end, which is written next.
        var refused: [[UInt8]?] = [nil, nil]
    }

    private let scenario: Scenario
    private var numbers: SeededGenerator
    private var pair = ChannelPair()
    private var traffic: [Traffic] = []

    init(_ scenario: Scenario, seed: UInt64) throws {
        self.scenario = scenario
        numbers = SeededGenerator(seed: seed)
        try pair.ends[1].services.register(.init(configuration: scenario.configurations[1]), at: spsm)
        var names: [ChannelIdentifier] = []
        if let count = scenario.enhanced {
            names += try pair.ends[0].channels
                .connect(to: spsm, count: count, configuration: scenario.configurations[0])
        } else {
            names.append(try pair.ends[0].channels.connect(to: spsm, configuration: scenario.configurations[0]))
        }
        pair.settle()
        #expect(pair.ends[0].events() == names.map { .opened($0) })
        _ = pair.ends[1].events()
        for name in names {
            let remote = try #require(pair.ends[0].channels[name]?.remote)
            traffic.append(Traffic(names: [name, remote]))
        }
    }

    mutating func run() throws {
        var steps = 0
        while traffic.contains(where: { min($0.written[0], $0.written[1]) < scenario.volume }) {
            try step()
            steps += 1
            try #require(steps < 200_000, "the channels stand still")
        }
        while traffic.contains(where: { !$0.underway[0].isEmpty || !$0.underway[1].isEmpty }) {
            try finishStep()
            steps += 1
            try #require(steps < 300_000, "the channels stand still")
        }
        for end in 0...1 {
            let events = pair.ends[end].events()
            #expect(!events.contains { if case .closed = $0 { true } else { false } })
        }
    }

    private mutating func step() throws {
        let end = Int.random(in: 0...1, using: &numbers)
        let index = Int.random(in: traffic.indices, using: &numbers)
        switch Int.random(in: 0..<10, using: &numbers) {
        case 0...1: try write(at: end, index)
        case 2: try read(at: end, index)
        case 3...5: pair.send(from: end, frames: Int.random(in: 0...8, using: &numbers))
        default: pair.deliver(from: end)
        }
    }

    private mutating func finishStep() throws {
        for end in 0...1 {
            for index in traffic.indices { try read(at: end, index) }
            pair.send(from: end, frames: 4)
            while pair.deliver(from: end) {}
        }
    }

    private mutating func write(at end: Int, _ index: Int) throws {
        guard traffic[index].written[end] < scenario.volume else { return }
        let name = traffic[index].names[end]
        let mtu = try #require(pair.ends[end].channels[name]?.peerMTU)
        #expect(mtu == max(Int(scenario.configurations[1 - end].mtu), scenario.enhanced == nil ? 23 : 64))
        let unit = traffic[index].refused[end].take() ?? makeUnit(atMost: mtu)
        do throws(CreditBasedChannel.SendError) {
            try pair.ends[end].channels.send(unit, on: name)
            traffic[index].underway[end].append(unit)
            traffic[index].written[end] += unit.count + 1
        } catch {
            #expect(error == .noRoom)
            traffic[index].refused[end] = unit
        }
    }

    private mutating func makeUnit(atMost mtu: Int) -> [UInt8] {
        let length = Bool.random(using: &numbers) ? mtu : Int.random(in: 0...min(mtu, 400), using: &numbers)
        let first = UInt8.random(in: 0...255, using: &numbers)
        return (0..<length).map { first &+ UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
    }

    private mutating func read(at end: Int, _ index: Int) throws {
        let name = traffic[index].names[end]
        for _ in 0..<Int.random(in: 1...4, using: &numbers) {
            guard let unit = pair.ends[end].channels.read(from: name) else { return }
            try #require(!traffic[index].underway[1 - end].isEmpty)
            try #require(traffic[index].underway[1 - end].removeFirst() == unit)
        }
    }
}

@Suite("Channels between two ends")
struct ChannelModelTests {
    @Test("SDUs arrive complete and in order in both directions", arguments: scenarios, 1...3)
    fileprivate func sdusArriveCompleteAndInOrderInBothDirections(scenario: Scenario, seed: UInt64) throws {
        var world = try World(scenario, seed: seed)
        try world.run()
    }

    @Test("A peer that sends random packets causes no trap and no unbounded memory", arguments: 1...8)
    func randomPacketsCauseNoTrapAndNoUnboundedMemory(seed: UInt64) throws {
        var peer = HostilePeer(seed: seed)
        var end = ChannelEndpoint(limit: 6)
        try end.services.register(.init(configuration: .init(mtu: 100, mps: 64, receiveByteCapacity: 500)), at: spsm)
        var isAccepted = false
        var isViolated = false
        for step in 0..<4_000 {
            switch peer.number(0...9) {
            case 0: _ = try? end.channels.connect(to: spsm)
            case 1: _ = try? end.channels.connect(to: spsm, count: peer.number(1...5))
            case 2: end.channels.disconnect(channel(UInt16(peer.number(0x3E...0x48))))
            case 3...5: _ = end.receive(peer.payload(), on: UInt16(peer.number(0x3E...0x7F)))
            case 6:
                end.now = end.now + .seconds(peer.number(0...20))
                end.channels.advance(to: end.now)
            default: _ = end.receive(command: peer.command())
            }
            // Identifiers start from 1 again, so that the peer often guesses one.
            if peer.number(0...3) == 0 { end.identifiers = SignalingIdentifiers() }
            _ = end.commands()
            _ = end.frames()
            for event in end.events() {
                if case .accepted = event { isAccepted = true }
                if case .closed(_, .violation, let unread) = event {
                    isViolated = true
                    try #require(unread.reduce(0) { $0 + $1.count + 32 } <= 32768)
                }
            }
            try #require(end.channels.count <= 6)
            guard step % 100 == 0 else { continue }
            for value in UInt16(0x40)...0x7F {
                guard let open = end.channels[channel(value)] else { continue }
                try #require((0...65535).contains(open.receiveCredits) && (0...65535).contains(open.sendCredits))
            }
        }
        #expect(isAccepted && isViolated)
        end.channels.linkEnded()
        #expect(end.channels.count == 0)
    }
}

/// Generates commands and frames that are nearly valid, so that they are processed far.
private struct HostilePeer {
    private var numbers: SeededGenerator

    init(seed: UInt64) { numbers = SeededGenerator(seed: seed) }

    mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &numbers) }

    mutating func payload() -> [UInt8] {
        let length = number(0...70)
        return [UInt8(number(0...110)), 0].prefix(length) + Array(repeating: 1, count: max(length - 2, 0))
    }

    private mutating func channelName() -> UInt16 { UInt16(number(0x3E...0x48)) }

    private mutating func length() -> UInt16 { [0, 22, 23, 64, 100, 500, 65533, 65535][number(0...7)] }

    mutating func command() -> [UInt8] {
        let code = [0x01, 0x06, 0x07, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1A][number(0...9)]
        var words: [UInt16]
        switch code {
        case 0x01: words = [UInt16(number(0...2)), channelName(), channelName()]
        case 0x06, 0x07: words = [channelName(), channelName()]
        case 0x14: words = [0x80, channelName(), length(), length(), length()]
        case 0x15: words = [channelName(), length(), length(), length(), UInt16(number(0...1))]
        case 0x16: words = [channelName(), length()]
        case 0x17: words = [0x80, length(), length(), length(), channelName(), channelName()]
        case 0x18: words = [length(), length(), length(), [0, 4, 5, 13][number(0...3)], channelName(), channelName()]
        case 0x19: words = [length(), length(), channelName(), channelName()]
        default: words = [UInt16(number(0...4))]
        }
        if number(0...9) == 0 { words = Array(words.prefix(number(0...words.count))) }
        let data = words.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] }
        return [UInt8(code), UInt8(number(0...6)), UInt8(data.count), 0] + data
    }
}
