/// Steps of a target, each with an action and bytes.
///
/// A step consists of one byte for the action, 16 bits of length, and its bytes. A length beyond the end takes the
/// remaining bytes. So any bytes are a script, and most changes of a byte change one step.
public struct FuzzScript: Hashable, Sendable {
    public struct Step: Hashable, Sendable {
        public var action: UInt8
        public var octets: [UInt8]

        public init(_ action: UInt8, _ octets: [UInt8] = []) {
            self.action = action
            self.octets = octets
        }
    }

    /// The maximum number of steps: more take longer without finding more.
    public static let limit = 128

    public var steps: [Step] = []

    public init(_ steps: [Step]) {
        self.steps = steps
    }

    public init(_ octets: [UInt8]) {
        var rest = octets[...]
        while rest.count >= 3, steps.count < Self.limit {
            let header = Array(rest.prefix(3))
            rest = rest.dropFirst(3)
            let content = rest.prefix(Int(header[1]) | Int(header[2]) << 8)
            steps.append(Step(header[0], Array(content)))
            rest = rest.dropFirst(content.count)
        }
    }

    public var octets: [UInt8] {
        steps.flatMap { step in
            [step.action, UInt8(step.octets.count & 0xFF), UInt8(step.octets.count >> 8 & 0xFF)] + step.octets
        }
    }
}

/// Changes scripts by whole steps: swaps, repeats, removes, cuts and splices steps, and changes their bytes.
public struct FuzzScriptMutation {
    private var state: UInt64
    private let changeBytes: ([UInt8]) -> [UInt8]

    /// - Parameter changeBytes: changes the bytes of one step in another way.
    public init(seed: UInt64, changeBytes: @escaping ([UInt8]) -> [UInt8] = { $0 }) {
        state = seed
        self.changeBytes = changeBytes
    }

    public mutating func mutate(_ script: FuzzScript) -> FuzzScript {
        var steps = script.steps
        for _ in 0...number(below: 3) { change(&steps) }
        return FuzzScript(Array(steps.prefix(FuzzScript.limit)))
    }

    private mutating func change(_ steps: inout [FuzzScript.Step]) {
        guard !steps.isEmpty else { return steps.append(FuzzScript.Step(UInt8(number(below: 256)))) }
        let index = number(below: steps.count)
        let count = steps[index].octets.count
        switch number(below: 10) {
        case 0: steps.swapAt(index, number(below: steps.count))
        case 1: steps.insert(steps[index], at: number(below: steps.count + 1))
        case 2 where steps.count > 1: steps.remove(at: index)
        case 3: steps[index].octets.removeLast(number(below: count + 1))
        case 4: steps[index].action = UInt8(number(below: 256))
        case 5 where count > 0: steps[index].octets[number(below: count)] = UInt8(number(below: 256))
        case 6:
            let other = steps[number(below: steps.count)].octets
            let kept = steps[index].octets.prefix(number(below: count + 1))
            steps[index].octets = Array(kept + other.suffix(number(below: other.count + 1)))
        default: steps[index].octets = changeBytes(steps[index].octets)
        }
    }

    /// A number by SplitMix64.
    private mutating func number(below limit: Int) -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return Int((value ^ value >> 31) % UInt64(limit))
    }
}
