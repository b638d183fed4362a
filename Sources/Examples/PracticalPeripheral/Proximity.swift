import Foundation

/// How near a device is, from the strength of its signals: the stronger, the nearer.
///
/// Each signal is kept with its date; in the mean, the weight of a signal halves with each half-life since then.
struct Proximity {
    struct Reading {
        let date: Date
        /// In dBm.
        let rssi: Double
    }

    private(set) var readings: [Reading] = []

    /// After how many seconds a signal counts half.
    static let halfLife: TimeInterval = 2
    /// After how many seconds without a signal a device is out of range.
    static let patience: TimeInterval = 10
    /// The weakest mean, in dBm, with which a connection is worth trying.
    static let faintest = -90.0
    /// How many readings are kept.
    static let capacity = 64

    /// Takes a signal; 127 says that its strength is not known.
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
