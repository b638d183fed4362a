import BLE
import BluetoothSensors
import DequeModule
import NIOCore

/// Tells which reports are worth passing on: those with an event, those that say something new, and otherwise one a
/// minute.
///
/// Each reading is compared with the last one of its name, because some devices say different things in turn.
struct SensorNews {
    private struct Source: Hashable {
        let address: DeviceAddress
        let format: SensorFormat
    }

    private struct Last {
        let reading: SensorReading
        var time: NIODeadline
    }

    /// The greatest number of sensors that are remembered. If there are more, the sensor that came first is forgotten.
    static let limit = 8192
    /// The greatest number of readings of a sensor that are remembered. If there are more, all but the last ones are
    /// forgotten.
    static let readingLimit = 64
    /// After this time, a reading is passed on again though it has not changed.
    static let repetition = TimeAmount.seconds(60)

    private var last: [Source: [Last]] = [:]
    private var order: Deque<Source> = []

    /// Returns whether a report is to be passed on, and remembers it if so.
    mutating func isNews(_ report: SensorReport, from address: DeviceAddress, at time: NIODeadline) -> Bool {
        guard !report.readings.isEmpty else { return false }
        let source = Source(address: address, format: report.format)
        if let known = last[source] {
            guard report.readings.contains(where: { Self.isNews($0, known, at: time) }) else { return false }
        } else {
            if order.count >= Self.limit, let first = order.popFirst() { last[first] = nil }
            order.append(source)
        }
        remember(report.readings, of: source, at: time)
        return true
    }

    /// An event is always news: its repetitions have been removed.
    private static func isNews(_ reading: SensorReading, _ known: [Last], at time: NIODeadline) -> Bool {
        guard !reading.isEvent, let last = known.first(where: { $0.reading.name == reading.name }) else { return true }
        return last.reading != reading || time - last.time >= Self.repetition
    }

    private mutating func remember(_ readings: [SensorReading], of source: Source, at time: NIODeadline) {
        let new = readings.lazy.filter { !$0.isEvent }.map { Last(reading: $0, time: time) }
        var all = last[source] ?? []
        for one in new {
            if let index = all.firstIndex(where: { $0.reading.name == one.reading.name }) {
                all[index] = one
            } else {
                all.append(one)
            }
        }
        last[source] = all.count > Self.readingLimit ? Array(new) : all
    }
}
