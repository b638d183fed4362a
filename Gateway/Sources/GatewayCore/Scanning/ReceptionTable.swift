import NIOCore

/// Which adapter receives each device best.
struct ReceptionTable {
    private struct Reception {
        var adapter: Int
        var rssi: Int
        var time: NIODeadline
    }

    /// The greatest number of devices. Beyond it, all are forgotten and learned again.
    private static let limit = 8192
    /// By how much another adapter must be stronger to replace the present one, in dB.
    private static let hysteresis = 6
    /// How long a reception counts.
    private static let lifetime = TimeAmount.seconds(30)

    private var receptions: [UInt64: Reception] = [:]

    /// Records that an adapter received a device.
    mutating func record(_ address: UInt64, rssi: Int, at time: NIODeadline, by adapter: Int) {
        if let known = receptions[address], known.adapter != adapter, rssi < known.rssi + Self.hysteresis,
            time - known.time < Self.lifetime
        {
            return
        }
        if receptions.count >= Self.limit { receptions.removeAll(keepingCapacity: true) }
        receptions[address] = Reception(adapter: adapter, rssi: rssi, time: time)
    }

    /// The adapter that receives a device best; nil if none has lately.
    func bestAdapter(for address: UInt64, at time: NIODeadline) -> Int? {
        guard let known = receptions[address], time - known.time < Self.lifetime else { return nil }
        return known.adapter
    }
}
