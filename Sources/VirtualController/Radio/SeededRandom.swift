/// Chance from a seed (SplitMix64): the same numbers on every machine, and no secret.
public struct SeededRandom: RandomNumberGenerator, Sendable {
    private var state: UInt64

    public init(seed: UInt64) { state = seed }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }

    /// Whether something happens whose probability is given, 0 to 1. Costs no number where it is certain.
    mutating func happens(_ probability: Double) -> Bool {
        if probability <= 0 { return false }
        if probability >= 1 { return true }
        return Double(next() >> 11) * 0x1p-53 < probability
    }

    /// A number from 0 to `limit`.
    mutating func next(upTo limit: UInt64) -> UInt64 {
        limit == .max ? next() : next() % (limit + 1)
    }
}
