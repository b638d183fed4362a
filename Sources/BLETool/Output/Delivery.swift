import BLEProfiles
import BluetoothSensors
import BluetoothTypes

/// A notification or an indication as `ble subscribe` shows it.
struct Delivery: Hashable, Sendable {
    var characteristic: BluetoothUUID
    var handle: AttributeHandle
    var value: [UInt8]
    /// The characteristic's presentation format, if it has one and needs it.
    var format: PresentationFormat?
    var isIndication: Bool
    /// Microseconds since the beginning of 1970, UTC.
    var time: Int64

    var json: JSON {
        let members: [JSON.Member] = [
            .init(key: "event", value: isIndication ? "indication" : "notification"),
            .init(key: "characteristic", value: .string("\(characteristic)")),
            .init(key: "handle", value: JSON(Int(handle.rawValue))),
        ]
        let time = JSON.Member(key: "time", value: .decimal(Double(time) / 1e6))
        return .object(members + .value(value, of: characteristic, format: format) + [time])
    }

    /// The time of day in UTC, and the value.
    var line: String {
        let milliseconds = time / 1000 % 86_400_000
        let fields = [milliseconds / 3_600_000, milliseconds / 60_000 % 60, milliseconds / 1000 % 60]
        let clock = fields.map { String(100 + $0).dropFirst() }.joined(separator: ":")
        return
            "\(clock).\(String(1000 + milliseconds % 1000).dropFirst())  \(readable(value, of: characteristic, format: format))"
    }
}

/// Turns the instants of a clock that only moves forward into the time of day.
struct WallClock {
    private var origin: (instant: Instant, microseconds: Int64)?

    /// - Parameters:
    ///   - instant: the instant to convert.
    ///   - now: the time of day now, in microseconds since the beginning of 1970; the first instant is taken to be now.
    mutating func microseconds(at instant: Instant, now: Int64) -> Int64 {
        guard let origin else {
            origin = (instant, now)
            return now
        }
        return origin.microseconds + (instant - origin.instant).wholeNanoseconds / 1000
    }
}
