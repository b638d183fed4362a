import NIOCore

/// How strongly each adapter receives each device.
struct ReceptionTable {
    private struct Reception {
        let adapter: Int
        /// The average of the last advertisements, in dBm.
        var rssi: Int
        var time: NIODeadline
    }

    /// The greatest number of devices. Beyond it, all are forgotten and learned again.
    private static let limit = 8192
    /// How long a reception counts.
    private static let lifetime = TimeAmount.seconds(30)

    private var receptions: [UInt64: [Reception]] = [:]

    /// Records that an adapter received a device.
    mutating func record(_ address: UInt64, rssi: Int, at time: NIODeadline, by adapter: Int) {
        if receptions.count >= Self.limit, receptions[address] == nil { receptions.removeAll(keepingCapacity: true) }
        Self.record(rssi, at: time, by: adapter, in: &receptions[address, default: []])
    }

    private static func record(_ rssi: Int, at time: NIODeadline, by adapter: Int, in receptions: inout [Reception]) {
        guard let position = receptions.firstIndex(where: { $0.adapter == adapter }) else {
            return receptions.append(Reception(adapter: adapter, rssi: rssi, time: time))
        }
        let known = receptions[position]
        let isRecent = time - known.time < lifetime
        receptions[position].rssi = isRecent ? (3 * known.rssi + rssi) / 4 : rssi
        receptions[position].time = time
    }

    /// The signal of a device at an adapter, in dBm; nil if the adapter has not received the device lately.
    func rssi(of address: UInt64, by adapter: Int, at time: NIODeadline) -> Int? {
        receptions[address]?.first { $0.adapter == adapter && time - $0.time < Self.lifetime }?.rssi
    }
}
