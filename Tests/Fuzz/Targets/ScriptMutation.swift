import struct BLEVirtualController.SeededGenerator

/// Changes inputs by whole packets: swaps, repeats, removes, cuts and delays packets, and changes their fields.
package struct ScriptMutation {
    private var random: SeededGenerator
    /// Changes the bytes of one packet in another way.
    private let changeBytes: ([UInt8]) -> [UInt8]

    package init(seed: UInt64, changeBytes: @escaping ([UInt8]) -> [UInt8] = { $0 }) {
        random = SeededGenerator(seed: seed)
        self.changeBytes = changeBytes
    }

    /// Changes an input of a target; nil if the target's input has no packets.
    package mutating func mutate(_ input: [UInt8], of target: FuzzTarget) -> [UInt8]? {
        switch target.inputShape {
        case .octets: return nil
        case .script: return mutate(Script(input)).octets
        case .packetScript:
            var script = mutate(Script(input))
            if number(below: 8) != 0 { correctLengths(of: &script) }
            return script.octets
        case .capture:
            var capture = CaptureRecords(input)
            var packets = capture.records.map { Script.Packet(octets: $0) }
            mutate(&packets)
            capture.records = packets.map(\.octets)
            if number(below: 8) != 0 { capture.correctLengths() }
            return capture.octets
        }
    }

    package mutating func mutate(_ script: Script) -> Script {
        var packets = script.packets
        mutate(&packets)
        return Script(Array(packets.prefix(Script.limit)))
    }

    /// Writes the actual lengths into the packets, and half of the time also into their frames.
    private mutating func correctLengths(of script: inout Script) {
        let withFrames = number(below: 2) == 0
        for index in script.packets.indices {
            PacketLengths.correct(&script.packets[index].octets, withFrames: withFrames)
        }
    }

    private mutating func mutate(_ packets: inout [Script.Packet]) {
        for _ in 0...number(below: 3) { change(&packets) }
    }

    private mutating func change(_ packets: inout [Script.Packet]) {
        guard !packets.isEmpty else { return packets.append(.init(octets: [])) }
        let index = number(below: packets.count)
        switch number(below: 12) {
        case 0: packets.swapAt(index, number(below: packets.count))
        case 1: packets.insert(packets[index], at: number(below: packets.count + 1))
        case 2 where packets.count > 1: packets.remove(at: index)
        case 3: packets[index].octets.removeLast(number(below: packets[index].octets.count + 1))
        case 4: packets[index].delay = UInt8(number(below: 256))
        case 5: packets[index].choice = UInt8(number(below: 256))
        case 6 where !packets[index].octets.isEmpty:
            packets[index].octets[number(below: packets[index].octets.count)] = interesting()
        case 7: packets[index].octets.append(contentsOf: (0...number(below: 8)).map { _ in interesting() })
        case 8: splice(&packets, index)
        default: packets[index].octets = changeBytes(packets[index].octets)
        }
    }

    /// Appends the end of another packet to the beginning of this one.
    private mutating func splice(_ packets: inout [Script.Packet], _ index: Int) {
        let other = packets[number(below: packets.count)].octets
        let kept = packets[index].octets.prefix(number(below: packets[index].octets.count + 1))
        packets[index].octets = Array(kept + other.suffix(number(below: other.count + 1)))
    }

    /// Any byte; the bytes at the ends of ranges are more frequent.
    private mutating func interesting() -> UInt8 {
        number(below: 2) == 0 ? [0, 1, 0x7F, 0x80, 0xFE, 0xFF][number(below: 6)] : UInt8(number(below: 256))
    }

    private mutating func number(below limit: Int) -> Int {
        Int(random.next() % UInt64(limit))
    }
}

extension FuzzTarget {
    /// How a target reads its input.
    enum InputShape {
        case octets
        /// A ``Script``.
        case script
        /// A ``Script`` of packets with their H4 indicators.
        case packetScript
        /// A file of records.
        case capture
    }

    var inputShape: InputShape {
        switch self {
        case .event, .command, .stream, .advertising, .sensors, .profile: .octets
        case .capture, .trace: .capture
        case .host, .controller: .packetScript
        case .acl, .signaling, .server, .client, .security, .discovery, .bonds, .managers, .state: .script
        }
    }
}
