import BLEHCI

/// The subrate of a link: which of its connection events are used (Vol 6, Part B, 4.5.1).
struct Subrate: Hashable {
    /// Every event with a multiple of this distance from ``baseEvent`` is used.
    var factor: UInt16 = 1
    /// The number of events that are used after one with data.
    var continuationNumber: UInt16 = 0
    var baseEvent: UInt64 = 0

    /// The first used event that is not before `event`.
    ///
    /// - Parameter lastData: the last event with data, if any.
    func firstUsed(from event: UInt64, lastData: UInt64?) -> UInt64 {
        guard factor > 1 else { return event }
        if let lastData, event <= lastData + UInt64(continuationNumber) { return event }
        let past = (event - baseEvent) % UInt64(factor)
        return past == 0 ? event : event + UInt64(factor) - past
    }
}

/// The parameters of LL_SUBRATE_REQ, or those that a central accepts.
struct SubrateRange: Hashable {
    var minimum: UInt16
    var maximum: UInt16
    var latency: UInt16
    var continuationNumber: UInt16
    var supervisionTimeout: UInt16

    /// The parameters that a central accepts until its host sets others: no subrating.
    static let initial = SubrateRange(
        minimum: 1,
        maximum: 1,
        latency: 0,
        continuationNumber: 0,
        supervisionTimeout: 0x0C80
    )

    /// Whether HCI allows the parameters (Vol 4, Part E, 7.8.123).
    var isValid: Bool {
        (1...0x01F4).contains(minimum) && (1...0x01F4).contains(maximum) && minimum <= maximum && latency <= 0x01F3
            && Int(maximum) * (Int(latency) + 1) <= 500 && continuationNumber < maximum
            && (0x000A...0x0C80).contains(supervisionTimeout)
    }

    /// Whether the timeout is longer than two of the longest times between events that the peripheral hears.
    func fits(interval: UInt16) -> Bool {
        Int(supervisionTimeout) * 4 > Int(interval) * Int(maximum) * (Int(latency) + 1)
    }

    /// The parameters that a central chooses for its peer's request; nil if the ranges have nothing in common (Vol 6,
    /// Part B, 5.1.20).
    func chosen(for request: SubrateRange, interval: UInt16) -> SubrateIndication? {
        let factor = min(maximum, request.maximum)
        guard factor >= minimum, factor >= request.minimum else { return nil }
        let chosen = SubrateIndication(
            factor: factor,
            latency: min(latency, request.latency),
            continuationNumber: min(max(continuationNumber, request.continuationNumber), factor - 1),
            supervisionTimeout: min(supervisionTimeout, request.supervisionTimeout)
        )
        return chosen.fits(interval: interval) ? chosen : nil
    }
}

/// The parameters of LL_SUBRATE_IND.
struct SubrateIndication: Hashable {
    var factor: UInt16
    var latency: UInt16
    var continuationNumber: UInt16
    var supervisionTimeout: UInt16

    func fits(interval: UInt16) -> Bool {
        Int(supervisionTimeout) * 4 > Int(interval) * Int(factor) * (Int(latency) + 1)
    }
}
