import BluetoothTypes

/// The advertisers of a scan, the strongest first, for a terminal.
struct ScanTable {
    /// Maximum number of advertisers. Beyond it, the advertiser that was silent longest is removed.
    static let capacity = 1000

    private let showsReadings: Bool
    private var sightings: [DeviceAddress: (sighting: Sighting, order: UInt64)] = [:]
    private var order: UInt64 = 0
    private var droppedCount = 0

    /// - Parameter showsReadings: whether there is a column for the readings of sensors.
    init(showsReadings: Bool = false) {
        self.showsReadings = showsReadings
    }

    var count: Int { sightings.count }

    /// Adds an advertisement. If it has no data, the advertiser's earlier data is kept.
    mutating func note(_ sighting: Sighting) {
        order += 1
        var sighting = sighting
        if let earlier = sightings[sighting.address]?.sighting, sighting.data.length == 0 {
            sighting.data = earlier.data
            sighting.sensors = earlier.sensors
        }
        if sightings.count >= ScanTable.capacity, sightings[sighting.address] == nil,
            let silent = sightings.min(by: { $0.value.order < $1.value.order })
        {
            sightings[silent.key] = nil
        }
        sightings[sighting.address] = (sighting, order)
    }

    /// Counts advertisements that were dropped, for the last line.
    mutating func noteDropped(_ count: Int) {
        droppedCount += count
    }

    /// The table's lines, at most `height` of them, each at most `width` columns wide.
    func lines(width: Int, height: Int) -> [String] {
        let sorted = sightings.values.map(\.sighting).sorted { left, right in
            (-(left.rssi ?? -128), left.address.value) < (-(right.rssi ?? -128), right.address.value)
        }
        let visible = max(0, height - 2)
        let table = TextTable(
            header: showsReadings ? Sighting.columnsWithReadings : Sighting.columns,
            rows: sorted.prefix(visible).map { showsReadings ? $0.cellsWithReadings : $0.cells }
        )
        let hidden = sorted.count - visible
        let dropped = droppedCount > 0 ? "; \(DroppedLine(count: droppedCount, kind: .advertisement).text)" : ""
        let footer = (hidden > 0 ? "… and \(hidden) more" : "\(sorted.count) found") + dropped + "; Ctrl-C ends"
        return table.lines(width: width) + [footer.fitted(to: width)]
    }
}
