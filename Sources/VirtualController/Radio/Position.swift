/// Where a device is, in metres on a plane.
public struct Position: Hashable, Sendable {
    public var x: Double
    public var y: Double

    public init(x: Double, y: Double) {
        self.x = x
        self.y = y
    }

    public static let origin = Position(x: 0, y: 0)

    /// The square of the distance, in square metres.
    func squaredDistance(to other: Position) -> Double {
        let (dx, dy) = (x - other.x, y - other.y)
        return dx * dx + dy * dy
    }
}

/// How strong a signal arrives.
enum Propagation {
    /// What is lost over the first metre at 2.4 GHz in free space, in dB.
    private static let lossAtOneMetre = 40.0

    /// What arrives of a transmission, in dBm, within the range that HCI reports: -127 to 20.
    ///
    /// Below a tenth of a metre nothing more is gained.
    static func rssi(transmitPower: Int8, from sender: Position, to receiver: Position) -> Int8 {
        let squared = max(sender.squaredDistance(to: receiver), 0.01)
        // 20 log10 d = 10 log10 d²; ten times the decimal logarithm of two is 3.0103.
        let loss = lossAtOneMetre + 3.0103 * binaryLogarithm(squared)
        let level = (Double(transmitPower) - loss).rounded()
        return Int8(max(-127, min(20, level)))
    }

    /// The base-2 logarithm of a positive number, within 0.001: computed here so that runs are alike on every machine.
    private static func binaryLogarithm(_ value: Double) -> Double {
        guard value.isFinite, value > 0 else { return 2 * Double(Double.greatestFiniteMagnitude.exponent) }
        var fraction = value.significand
        var result = Double(value.exponent)
        var weight = 0.5
        for _ in 0..<10 {
            fraction *= fraction
            if fraction >= 2 {
                fraction /= 2
                result += weight
            }
            weight /= 2
        }
        return result
    }
}
