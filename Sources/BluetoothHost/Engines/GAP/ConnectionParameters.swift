import BLEHCI
import BLEL2CAP
import BluetoothTypes

/// The connection parameters that a central requests (Vol 4, Part E, 7.8.12).
public struct ConnectionParameters: Hashable, Sendable {
    /// The shortest and the longest connection interval, 7.5 ms to 4 s, in steps of 1.25 ms.
    public var interval: ClosedRange<Duration>
    /// The number of connection events that the peripheral may skip: 0 to 499.
    public var latencyInEvents: UInt16
    /// The time without received packets after which the link ends: 100 ms to 32 s, in steps of 10 ms.
    public var supervisionTimeout: Duration

    /// The defaults are fast enough for discovery and long values, and slow enough for several links.
    public init(
        interval: ClosedRange<Duration> = .milliseconds(15)...(.milliseconds(30)),
        latencyInEvents: UInt16 = 0,
        supervisionTimeout: Duration = .seconds(4)
    ) {
        self.interval = interval
        self.latencyInEvents = latencyInEvents
        self.supervisionTimeout = supervisionTimeout
    }

    var intervalMinimum: UInt16 { interval.lowerBound.inUnits(of: .microseconds(1250)) }
    var intervalMaximum: UInt16 { interval.upperBound.inUnits(of: .microseconds(1250)) }
    var timeout: UInt16 { supervisionTimeout.inUnits(of: .milliseconds(10)) }

    /// Whether every value is in its range and the timeout is longer than twice the longest time that latency allows.
    public var isValid: Bool {
        let longestSilence = (1 + Int(latencyInEvents)) * Int(intervalMaximum) * 2
        return (6...3200).contains(intervalMinimum) && (6...3200).contains(intervalMaximum) && latencyInEvents <= 499
            && (10...3200).contains(timeout) && Int(timeout) * 8 > longestSilence
    }
}

/// The parameters in use on a connection.
public struct NegotiatedConnectionParameters: Hashable, Sendable {
    /// The time between the starts of connection events, a multiple of 1.25 ms.
    public let interval: Duration
    /// The number of connection events that the peripheral may skip.
    public let latencyInEvents: UInt16
    /// The time without received packets after which the link ends.
    public let supervisionTimeout: Duration
    /// The subrate factor: without data, the devices use only every such connection event. Latency counts these events.
    public internal(set) var subrateFactor = 1
    /// The least number of connection events that are used after one with data.
    public internal(set) var continuationNumber = 0

    init(interval: UInt16, latency: UInt16, supervisionTimeout: UInt16) {
        self.interval = .microseconds(1250 * Int(interval))
        latencyInEvents = latency
        self.supervisionTimeout = .milliseconds(10 * Int(supervisionTimeout))
    }

    /// Whether these parameters satisfy a request, so that no update is needed.
    func satisfy(_ wanted: ConnectionParameters) -> Bool {
        let interval: UInt16 = interval.inUnits(of: .microseconds(1250))
        let timeout: UInt16 = supervisionTimeout.inUnits(of: .milliseconds(10))
        return subrateFactor == 1 && interval >= wanted.intervalMinimum && interval <= wanted.intervalMaximum
            && latencyInEvents == wanted.latencyInEvents && timeout == wanted.timeout
    }

    /// The time that the supervision timeout of an update must exceed (Vol 4, Part E, 7.8.18).
    ///
    /// It is twice the longest time between two connection events that the peripheral uses. The present subrate factor
    /// counts, although an update to another interval ends subrating.
    func timeoutLimit(of update: ConnectionParameterUpdateRequest) -> Duration {
        Duration.microseconds(1250 * Int(update.intervalMax)) * (2 * (Int(update.latency) + 1) * subrateFactor)
    }

    /// Whether the link can be updated to these parameters: they are valid, and the supervision timeout is long enough
    /// for the present subrate factor.
    func allow(_ update: ConnectionParameterUpdateRequest) -> Bool {
        update.isValid && update.supervisionTimeout > timeoutLimit(of: update)
    }

    /// The longest time between two connection events that the peripheral uses.
    var longestSilence: Duration { interval * (Int(latencyInEvents) + 1) * subrateFactor }

    private init(_ interval: Duration, _ event: LESubrateChange) {
        self.interval = interval
        latencyInEvents = event.peripheralLatency
        supervisionTimeout = .milliseconds(10 * Int(event.supervisionTimeout))
        subrateFactor = Int(event.subrateFactor)
        continuationNumber = Int(event.continuationNumber)
    }

    /// Returns the parameters after a change of the subrate.
    func subrated(_ event: LESubrateChange) -> NegotiatedConnectionParameters {
        NegotiatedConnectionParameters(interval, event)
    }
}

extension ConnectionParameterUpdateRequest {
    /// The time without received packets after which the link ends.
    var supervisionTimeout: Duration { .milliseconds(10 * Int(timeout)) }
}

extension Duration {
    /// The duration in whole units, clamped to 0...65535.
    func inUnits(of unit: Duration) -> UInt16 {
        UInt16(clamping: wholeNanoseconds / unit.wholeNanoseconds)
    }
}
