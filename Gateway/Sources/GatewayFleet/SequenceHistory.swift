/// The sequence numbers that came from one start of a gateway: which of the last ones are there, and how many are
/// missing.
struct SequenceHistory {
    enum Insertion: Equatable {
        /// The number is new. This many numbers before it are missing.
        case new(gap: UInt64)
        /// The number is older than the newest one, and was missing.
        case filled
        /// The number is older than all others. It was not counted as missing.
        case earlier
        /// The number was there.
        case duplicate
        /// The number is too old to tell.
        case tooOld
    }

    /// The number of sequence numbers that are remembered.
    static let capacity: UInt64 = 4096

    private var words = [UInt64](repeating: 0, count: Int(Self.capacity / 64))
    private var lowest: UInt64 = 0
    private var highest: UInt64?

    /// Remembers a number.
    mutating func insert(_ number: UInt64) -> Insertion {
        guard let highest else {
            (lowest, highest) = (number, number)
            set(number)
            return .new(gap: 0)
        }
        if number > highest {
            let distance = number - highest
            if distance >= Self.capacity {
                for index in words.indices { words[index] = 0 }
            } else {
                for skipped in highest &+ 1..<number { clear(skipped) }
            }
            self.highest = number
            set(number)
            return .new(gap: distance - 1)
        }
        guard highest - number < Self.capacity else { return .tooOld }
        guard !contains(number) else { return .duplicate }
        set(number)
        guard number < lowest else { return .filled }
        return .earlier
    }

    private func place(_ number: UInt64) -> (word: Int, bit: UInt64) {
        let index = number % Self.capacity
        return (Int(index / 64), 1 << (index % 64))
    }

    private func contains(_ number: UInt64) -> Bool {
        let (word, bit) = place(number)
        return words[word] & bit != 0
    }

    private mutating func set(_ number: UInt64) {
        let (word, bit) = place(number)
        words[word] |= bit
    }

    private mutating func clear(_ number: UInt64) {
        let (word, bit) = place(number)
        words[word] &= ~bit
    }
}
