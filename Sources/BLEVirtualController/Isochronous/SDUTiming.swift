import BLEHCI

/// The SDUs of one direction of a stream, and the PDUs that carry them (Vol 6, Part G, 2).
struct SDUTiming {
    /// The longest payload of a PDU, in bytes.
    private static let longestPDU: UInt64 = 251
    /// The bytes that framing adds: to the first segment of an SDU, and to one that continues an SDU of the PDU before.
    private static let startHeaderLength: UInt64 = 5
    private static let continuationHeaderLength: UInt64 = 2
    /// The ISO intervals of a stream, in units of 1.25 ms.
    private static let isoIntervals: ClosedRange<UInt16> = 0x0004...0x0C80

    /// The time between two SDUs, in microseconds.
    let sduInterval: UInt32
    /// The longest SDU in bytes; 0 if there are none.
    let maximumSDU: UInt16
    let isFramed: Bool

    init(_ sduInterval: UInt32, _ maximumSDU: UInt16, isFramed: Bool) {
        self.sduInterval = sduInterval
        self.maximumSDU = maximumSDU
        self.isFramed = isFramed
    }

    /// The number of PDUs in each ISO interval.
    ///
    /// - Parameter isoInterval: in units of 1.25 ms.
    func burst(in isoInterval: UInt16) -> UInt64 {
        guard maximumSDU > 0 else { return 0 }
        guard isFramed else {
            let pdusPerSDU = UInt64(maximumSDU).divided(roundingUpBy: Self.longestPDU)
            return SDUTiming.microseconds(isoInterval) / UInt64(sduInterval) * pdusPerSDU
        }
        return framedLength(in: isoInterval).divided(roundingUpBy: Self.longestPDU - Self.continuationHeaderLength)
    }

    /// The longest PDU in bytes.
    ///
    /// - Parameter isoInterval: in units of 1.25 ms.
    func maximumPDU(in isoInterval: UInt16) -> UInt16 {
        guard isFramed, maximumSDU > 0 else { return min(maximumSDU, UInt16(Self.longestPDU)) }
        let share = framedLength(in: isoInterval).divided(roundingUpBy: burst(in: isoInterval))
        return UInt16(min(share + Self.continuationHeaderLength, Self.longestPDU))
    }

    /// The bytes of an ISO interval in framed PDUs, but the headers of continued segments.
    private func framedLength(in isoInterval: UInt16) -> UInt64 {
        let interval = SDUTiming.microseconds(isoInterval)
        return interval.divided(roundingUpBy: UInt64(sduInterval)) * Self.startHeaderLength
            + (interval * UInt64(maximumSDU)).divided(roundingUpBy: UInt64(sduInterval))
    }

    /// The numbers of the SDUs that an event sends: those whose intervals begin between it and the next event.
    ///
    /// - Parameter isoInterval: in units of 1.25 ms.
    func numbers(inEvent counter: UInt64, of isoInterval: UInt16) -> [UInt16] {
        guard maximumSDU > 0 else { return [] }
        func first(_ event: UInt64) -> UInt64 { event * SDUTiming.microseconds(isoInterval) / UInt64(sduInterval) }
        return (first(counter)..<first(counter + 1)).map { UInt16(truncatingIfNeeded: $0) }
    }

    private static func microseconds(_ isoInterval: UInt16) -> UInt64 { UInt64(isoInterval) * 1250 }

    /// The ISO interval that fits all directions, in units of 1.25 ms, or nil if there is none. Directions without SDUs
    /// do not count.
    ///
    /// An event has the SDUs of at least 5 ms. With unframed PDUs, the interval is a multiple of the SDU intervals.
    /// Framed PDUs have the longest interval up to the longest SDU interval that needs no more PDUs than `burstLimit`.
    static func isoInterval(for directions: [SDUTiming], burstLimit: UInt64) -> UInt16? {
        let used = directions.filter { $0.maximumSDU > 0 }
        guard let longest = used.map(\.sduInterval).max(), let isFramed = used.first?.isFramed else {
            return isoIntervals.lowerBound
        }
        let most = min(max(longest / 1250, UInt32(isoIntervals.lowerBound)), UInt32(isoIntervals.upperBound))
        let candidates =
            isFramed
            ? Array((isoIntervals.lowerBound...UInt16(most)).reversed())
            : isoIntervals.filter { units in used.allSatisfy { microseconds(units) % UInt64($0.sduInterval) == 0 } }
        return candidates.first { units in used.allSatisfy { $0.burst(in: units) <= burstLimit } }
    }
}

extension UInt64 {
    fileprivate func divided(roundingUpBy divisor: UInt64) -> UInt64 { (self + divisor - 1) / divisor }
}
