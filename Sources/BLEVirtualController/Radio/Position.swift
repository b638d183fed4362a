/// A position of a device on a plane, in metres.
public struct Position: Hashable, Sendable {
    /// The first coordinate, in metres.
    public var x: Double
    /// The second coordinate, in metres.
    public var y: Double

    /// Creates a position from its coordinates in metres.
    public init(x: Double, y: Double) {
        self.x = x
        self.y = y
    }

    /// The position of a device unless another one is given.
    public static let origin = Position(x: 0, y: 0)

    /// The square of the distance, in square metres.
    func squaredDistance(to other: Position) -> Double {
        let (dx, dy) = (x - other.x, y - other.y)
        return dx * dx + dy * dy
    }
}

/// The strength of received signals.
enum Propagation {
    /// The free-space loss over the first metre at 2.4 GHz, in dB.
    private static let lossAtOneMetre = 40.0

    /// Returns the strength of a received signal in dBm, within the range of HCI: -127 to 20.
    ///
    /// The strength does not increase below a distance of a tenth of a metre.
    static func rssi(transmitPower: Int8, from sender: Position, to receiver: Position) -> Int8 {
        let squared = max(sender.squaredDistance(to: receiver), 0.01)
        // 20 log10 d = 10 log10 d²; ten times the decimal logarithm of two is 3.0103.
        let loss = lossAtOneMetre + 3.0103 * binaryLogarithm(squared)
        let level = (Double(transmitPower) - loss).rounded()
        return Int8(max(-127, min(20, level)))
    }

    /// Returns the base-2 logarithm of a positive number, within 0.001. It is computed here so that all machines get
    /// the same result.
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
