import BluetoothTypes

/// What a central asks of a connection (Vol 4, Part E, 7.8.12).
public struct ConnectionParameters: Hashable, Sendable {
    /// The shortest and the longest connection interval, 7.5 ms to 4 s, in steps of 1.25 ms.
    public var interval: ClosedRange<Duration>
    /// How many connection events the peripheral may stay silent: 0 to 499.
    public var latency: UInt16
    /// How long a silent link lives: 100 ms to 32 s, in steps of 10 ms.
    public var supervisionTimeout: Duration

    /// Fast enough for discovery and long values, slow enough for several links.
    public init(
        interval: ClosedRange<Duration> = .milliseconds(15)...(.milliseconds(30)),
        latency: UInt16 = 0,
        supervisionTimeout: Duration = .seconds(4)
    ) {
        self.interval = interval
        self.latency = latency
        self.supervisionTimeout = supervisionTimeout
    }

    var intervalMinimum: UInt16 { interval.lowerBound.inUnits(of: .microseconds(1250)) }
    var intervalMaximum: UInt16 { interval.upperBound.inUnits(of: .microseconds(1250)) }
    var timeout: UInt16 { supervisionTimeout.inUnits(of: .milliseconds(10)) }

    /// Whether every value is in its range and the timeout longer than twice the longest allowed silence.
    public var isValid: Bool {
        let longestSilence = (1 + Int(latency)) * Int(intervalMaximum) * 2
        return (6...3200).contains(intervalMinimum) && (6...3200).contains(intervalMaximum) && latency <= 499
            && (10...3200).contains(timeout) && Int(timeout) * 8 > longestSilence
    }
}

/// What a connection runs with.
public struct NegotiatedConnectionParameters: Hashable, Sendable {
    public let interval: Duration
    public let latency: UInt16
    public let supervisionTimeout: Duration

    init(interval: UInt16, latency: UInt16, supervisionTimeout: UInt16) {
        self.interval = .microseconds(1250 * Int(interval))
        self.latency = latency
        self.supervisionTimeout = .milliseconds(10 * Int(supervisionTimeout))
    }
}

extension Duration {
    /// The duration in whole units, cut to 0...65535.
    func inUnits(of unit: Duration) -> UInt16 {
        UInt16(clamping: wholeNanoseconds / unit.wholeNanoseconds)
    }
}
