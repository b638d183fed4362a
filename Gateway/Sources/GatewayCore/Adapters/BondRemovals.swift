import BLE
import DequeModule

/// The bonds that were removed while their adapters were absent, until the adapters are open again.
struct BondRemovals {
    private struct Entry: Hashable {
        /// The address of the adapter; nil if it is not known.
        let adapter: DeviceAddress?
        let device: UInt64
    }

    /// Maximum number of bonds. Beyond it, the oldest removal is forgotten.
    static let limit = 1024

    /// The removals, the oldest first.
    private var entries: Deque<Entry> = []

    /// The devices whose bonds with an adapter are to be removed, in the order of the removals.
    func devices(of adapter: DeviceAddress?) -> [UInt64] {
        entries.filter { $0.adapter == adapter }.map(\.device)
    }

    /// Adds the removal of a bond.
    mutating func insert(_ device: UInt64, of adapter: DeviceAddress?) {
        let entry = Entry(adapter: adapter, device: device)
        guard !entries.contains(entry) else { return }
        if entries.count >= Self.limit { entries.removeFirst() }
        entries.append(entry)
    }

    /// Forgets the removal of a bond, because it was performed.
    mutating func remove(_ device: UInt64, of adapter: DeviceAddress?) {
        entries.removeAll { $0 == Entry(adapter: adapter, device: device) }
    }
}
