import Foundation

/// The proximity of a device, estimated from the strength of its signals.
///
/// Each signal is stored with its date. In the mean, its weight halves with each half-life.
struct Proximity {
    struct Reading {
        let date: Date
        /// In dBm.
        let rssi: Double
    }

    private(set) var readings: [Reading] = []

    /// The time in seconds after which a signal counts half.
    static let halfLife: TimeInterval = 2
    /// The time in seconds without a signal after which a device is out of range.
    static let patience: TimeInterval = 10
    /// The weakest mean, in dBm, with which the app tries to connect.
    static let faintest = -90.0
    /// Maximum number of stored readings.
    static let capacity = 64

    /// Adds a signal; the value 127 means that its strength is not known.
    mutating func add(rssi: Int, at date: Date) {
        guard rssi != 127 else { return }
        readings.append(Reading(date: date, rssi: Double(rssi)))
        if readings.count > Proximity.capacity {
            readings.removeFirst()
        }
    }

    /// The weighted mean in dBm; nil if there is no signal.
    func weightedMean(at date: Date) -> Double? {
        let weights = readings.map { pow(0.5, max(0, date.timeIntervalSince($0.date)) / Proximity.halfLife) }
        let sum = weights.reduce(0, +)
        guard sum > 0 else { return nil }
        return zip(weights, readings).reduce(0) { $0 + $1.0 * $1.1.rssi } / sum
    }

    func isInRange(at date: Date) -> Bool {
        guard let last = readings.last, let mean = weightedMean(at: date) else { return false }
        return date.timeIntervalSince(last.date) < Proximity.patience && mean > Proximity.faintest
    }
}
