/// A pattern with the values of its variables.
struct Pattern {
    private struct Slot {
        let value: UInt8
        let mask: UInt8

        var description: String {
            switch mask {
            case 0xFF: value.hexadecimal
            case 0xF0: "\(value.hexadecimal.prefix(1))?"
            case 0x0F: "?\(value.hexadecimal.suffix(1))"
            default: "??"
            }
        }
    }

    private var slots: [Slot] = []
    private var captures: [(name: String, range: Range<Int>)] = []
    private var hasRest = false
    private var restName: String?

    init(_ octets: Octets, _ variables: [String: [UInt8]]) throws(Complaint) {
        for item in octets.items {
            switch item {
            case .octet(let value, let mask): slots.append(Slot(value: value, mask: mask))
            case .variable(let name):
                guard let value = variables[name] else { throw Complaint("$\(name) has no value yet") }
                slots += value.map { Slot(value: $0, mask: 0xFF) }
            case .capture(let name, let count):
                captures.append((name, slots.count..<slots.count + count))
                slots += Array(repeating: Slot(value: 0, mask: 0), count: count)
            case .rest(let name):
                hasRest = true
                restName = name
            }
        }
    }

    /// The position of the first byte that differs from the pattern; nil if there is no difference.
    func difference(to octets: [UInt8]) -> Int? {
        for (index, (slot, octet)) in zip(slots, octets).enumerated() where slot.mask & (slot.value ^ octet) != 0 {
            return index
        }
        if octets.count < slots.count || octets.count > slots.count && !hasRest {
            return min(octets.count, slots.count)
        }
        return nil
    }

    /// The values of the captured names, in bytes that match.
    func captures(in octets: [UInt8]) -> [String: [UInt8]] {
        var values: [String: [UInt8]] = [:]
        for (name, range) in captures { values[name] = Array(octets[range]) }
        if let restName { values[restName] = Array(octets.dropFirst(slots.count)) }
        return values
    }

    /// The pattern in the notation of scripts.
    var description: String {
        (slots.map(\.description) + (hasRest ? ["*"] : [])).joined(separator: " ")
    }

    /// The first byte, if it is fixed.
    var first: UInt8? { slots.first.flatMap { $0.mask == 0xFF ? $0.value : nil } }

    /// Creates a pattern of fixed bytes, except for wildcards.
    static func exact(_ octets: [UInt8], wildcards: Range<Int> = 0..<0) -> Pattern {
        var pattern = Pattern()
        pattern.slots = octets.enumerated().map { index, octet in
            Slot(value: octet, mask: wildcards.contains(index) ? 0 : 0xFF)
        }
        return pattern
    }

    private init() {}
}

extension Octets {
    /// The bytes, with the values of the variables.
    func filled(_ variables: [String: [UInt8]]) throws(Complaint) -> [UInt8] {
        var octets: [UInt8] = []
        for item in items {
            switch item {
            case .octet(let value, _): octets.append(value)
            case .variable(let name):
                guard let value = variables[name] else { throw Complaint("$\(name) has no value yet") }
                octets += value
            case .capture, .rest: throw Complaint("a packet to send has no wildcards")
            }
        }
        return octets
    }
}
