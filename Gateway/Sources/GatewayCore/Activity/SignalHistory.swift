/// The signal strength of a device over time: the mean of each of the last ``slotCount`` slots.
struct SignalHistory {
    /// The number of slots.
    static let slotCount = 120
    /// The length of a slot in seconds.
    static let slotDuration = 5

    private static let missing = Int8.max

    /// A ring: the slot with number `n` is at `n % slotCount`.
    private var means = [Int8](repeating: missing, count: slotCount)
    /// The number of the last slot with a value.
    private(set) var lastSlot: Int
    private var sum = 0
    private var count = 0

    init(slot: Int) {
        lastSlot = slot
    }

    /// Adds a value to a slot. A slot before the last one counts as the last one.
    ///
    /// - Parameter rssi: in dBm.
    mutating func record(_ rssi: Int, slot: Int) {
        if slot > lastSlot {
            for skipped in (max(lastSlot, slot - Self.slotCount) + 1)...slot {
                means[skipped % Self.slotCount] = Self.missing
            }
            lastSlot = slot
            (sum, count) = (0, 0)
        }
        sum += min(max(rssi, -127), 20)
        count += 1
        means[lastSlot % Self.slotCount] = Int8(sum / count)
    }

    /// The means of the last `count` slots up to a slot; nil for a slot without values.
    func means(count: Int, upTo slot: Int) -> [Int?] {
        let first = slot - min(count, Self.slotCount) + 1
        guard first <= slot else { return [] }
        return (first...slot).map { slot in
            guard slot >= 0, slot <= lastSlot, slot > lastSlot - Self.slotCount else { return nil }
            let mean = means[slot % Self.slotCount]
            return mean == Self.missing ? nil : Int(mean)
        }
    }
}
