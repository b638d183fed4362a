/// A random number generator with a seed. A seed gives the same numbers in each run, on each machine.
///
/// SplitMix64 (Steele, Lea and Flood, 2014). Not for keys.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Creates a generator.
    public init(seed: UInt64) { state = seed }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    /// Returns a separate generator for one part of a simulation. Its use does not affect the other parts.
    public mutating func split() -> SeededGenerator {
        SeededGenerator(seed: next())
    }

    /// Returns true with the given probability, 0 to 1. A certain outcome consumes no number.
    mutating func happens(_ probability: Double) -> Bool {
        if probability <= 0 { return false }
        if probability >= 1 { return true }
        return Double(next() >> 11) * 0x1p-53 < probability
    }

    /// Returns a number from 0 to `limit`.
    mutating func next(upTo limit: UInt64) -> UInt64 {
        limit == .max ? next() : next() % (limit + 1)
    }
}
