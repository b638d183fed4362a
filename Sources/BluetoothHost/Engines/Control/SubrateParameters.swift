import BLEHCI
import BluetoothTypes

/// The subrate parameters that a device requests or accepts for a connection (Vol 4, Part E, 7.8.124).
///
/// With a subrate factor of n, the devices use only every n-th connection event while they have no data. After an event
/// with data, they use the next events too. So a connection can have a short interval and still cost little.
public struct SubrateParameters: Hashable, Sendable {
    /// The least and the greatest subrate factor: 1 to 500.
    public var factor: ClosedRange<Int>
    /// The number of used events that the peripheral may skip: 0 to 499. With the greatest factor `f`,
    /// `f * (latency + 1)` is at most 500.
    public var maximumLatency: Int
    /// The least number of events that are used after an event with data: 0 to 499, and less than the greatest factor.
    public var continuationNumber: Int
    /// The time without received packets after which the link ends: 100 ms to 32 s, in steps of 10 ms.
    public var supervisionTimeout: Duration

    public init(
        factor: ClosedRange<Int>,
        maximumLatency: Int = 0,
        continuationNumber: Int = 0,
        supervisionTimeout: Duration = .seconds(4)
    ) {
        self.factor = factor
        self.maximumLatency = maximumLatency
        self.continuationNumber = continuationNumber
        self.supervisionTimeout = supervisionTimeout
    }

    var timeout: UInt16 { supervisionTimeout.inUnits(of: .milliseconds(10)) }

    /// Whether every value is in its range.
    public var isValid: Bool {
        (1...500).contains(factor.lowerBound) && factor.upperBound <= 500 && (0...499).contains(maximumLatency)
            && factor.upperBound * (maximumLatency + 1) <= 500 && (0..<factor.upperBound).contains(continuationNumber)
            && (10...3200).contains(timeout)
    }

    /// Whether the timeout is longer than twice the longest time between the events of a peripheral on a connection
    /// with this interval.
    func areValid(interval: Duration) -> Bool {
        isValid && supervisionTimeout > interval * (2 * factor.upperBound * (maximumLatency + 1))
    }
}

extension LESubrateRequest {
    /// - Parameter parameters: valid parameters.
    init(_ handle: ConnectionHandle, _ parameters: SubrateParameters) {
        self.init(
            connectionHandle: handle,
            subrateMin: UInt16(clamping: parameters.factor.lowerBound),
            subrateMax: UInt16(clamping: parameters.factor.upperBound),
            maxLatency: UInt16(clamping: parameters.maximumLatency),
            continuationNumber: UInt16(clamping: parameters.continuationNumber),
            supervisionTimeout: parameters.timeout
        )
    }
}

extension LESetDefaultSubrate {
    /// - Parameter parameters: valid parameters.
    init(_ parameters: SubrateParameters) {
        self.init(
            subrateMin: UInt16(clamping: parameters.factor.lowerBound),
            subrateMax: UInt16(clamping: parameters.factor.upperBound),
            maxLatency: UInt16(clamping: parameters.maximumLatency),
            continuationNumber: UInt16(clamping: parameters.continuationNumber),
            supervisionTimeout: parameters.timeout
        )
    }
}
