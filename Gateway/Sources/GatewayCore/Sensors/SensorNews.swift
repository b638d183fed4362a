import BLE
import BluetoothSensors
import DequeModule
import NIOCore

/// Tells which reports are worth passing on: those that say something new, and otherwise one a minute.
struct SensorNews {
    private struct Source: Hashable {
        let address: DeviceAddress
        let format: SensorFormat
    }

    private struct Last {
        var readings: [SensorReading]
        var time: NIODeadline
    }

    /// The greatest number of sensors that are remembered. If there are more, the sensor that came first is forgotten.
    static let limit = 8192
    /// After this time, a report is passed on again though nothing has changed.
    static let repetition = TimeAmount.seconds(60)

    private var last: [Source: Last] = [:]
    private var order: Deque<Source> = []

    /// Returns whether a report is to be passed on, and remembers it if so.
    mutating func isNews(_ report: SensorReport, from address: DeviceAddress, at time: NIODeadline) -> Bool {
        guard !report.isRepeat, !report.readings.isEmpty else { return false }
        let source = Source(address: address, format: report.format)
        if let known = last[source] {
            guard known.readings != report.readings || time - known.time >= Self.repetition else { return false }
        } else {
            if order.count >= Self.limit, let first = order.popFirst() { last[first] = nil }
            order.append(source)
        }
        last[source] = Last(readings: report.readings, time: time)
        return true
    }
}
