import BLEHCI

/// The SDUs of one direction of a stream, and the PDUs that carry them (Vol 6, Part G, 2).
struct SDUTiming {
    /// The longest payload of a PDU, in bytes.
    private static let longestPDU: UInt16 = 251
    /// The bytes that framing adds: to the first segment of an SDU, and to each other one.
    private static let startHeaderLength: UInt32 = 5
    private static let continuationHeaderLength: UInt32 = 2
    /// The ISO intervals of a stream, in units of 1.25 ms.
    private static let isoIntervals: ClosedRange<UInt32> = 0x0004...0x0C80

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

    /// The longest PDU in bytes.
    var maximumPDU: UInt16 {
        guard isFramed, maximumSDU > 0 else { return min(maximumSDU, Self.longestPDU) }
        return min(maximumSDU + UInt16(Self.startHeaderLength), Self.longestPDU)
    }

    /// The number of PDUs in each ISO interval.
    ///
    /// - Parameter isoInterval: in units of 1.25 ms.
    func burst(in isoInterval: UInt16) -> UInt32 {
        guard maximumSDU > 0 else { return 0 }
        let interval = UInt32(isoInterval) * 1250
        guard isFramed else {
            return interval / sduInterval * UInt32(maximumSDU).divided(roundingUpBy: UInt32(maximumPDU))
        }
        let payload = UInt32(maximumPDU) - Self.continuationHeaderLength
        let length = UInt32(maximumSDU) + Self.startHeaderLength - Self.continuationHeaderLength
        let pdusPerSDU = length.divided(roundingUpBy: payload)
        return (pdusPerSDU * interval).divided(roundingUpBy: sduInterval)
    }

    /// The numbers of the SDUs that an event sends: those whose intervals begin between it and the next event.
    ///
    /// - Parameter isoInterval: in units of 1.25 ms.
    func numbers(inEvent counter: UInt64, of isoInterval: UInt16) -> [UInt16] {
        guard maximumSDU > 0 else { return [] }
        func first(_ event: UInt64) -> UInt64 { event * UInt64(isoInterval) * 1250 / UInt64(sduInterval) }
        return (first(counter)..<first(counter + 1)).map { UInt16(truncatingIfNeeded: $0) }
    }

    /// The ISO interval that fits all directions, in units of 1.25 ms, or nil if there is none.
    ///
    /// An event has the SDUs of at least 5 ms. With unframed PDUs, the interval is a multiple of the SDU intervals. Framed
    /// PDUs have the longest interval up to the longest SDU interval that needs no more PDUs than `burstLimit`.
    static func isoInterval(for directions: [SDUTiming], burstLimit: UInt32) -> UInt16? {
        guard let longest = directions.map(\.sduInterval).max(), let isFramed = directions.first?.isFramed else {
            return nil
        }
        let most = min(max(longest / 1250, isoIntervals.lowerBound), isoIntervals.upperBound)
        let candidates =
            isFramed
            ? Array((isoIntervals.lowerBound...most).reversed())
            : isoIntervals.filter { units in directions.allSatisfy { units * 1250 % $0.sduInterval == 0 } }
        return candidates.lazy.map { UInt16($0) }.first { units in
            directions.allSatisfy { $0.burst(in: units) <= burstLimit }
        }
    }
}

extension UInt32 {
    fileprivate func divided(roundingUpBy divisor: UInt32) -> UInt32 { (self + divisor - 1) / divisor }
}
