import BLEByteCoding

/// Decides how long a transport may wait before it reads again, so that several advertising reports are read together.
///
/// To wake up for a report costs several times as much as to handle it. While the controller sends only advertising
/// reports and the host sends nothing, nobody waits for an answer. So after the quiet time of this, reads may wait for
/// the delay. Another packet, in either direction, ends the waiting.
///
/// The kernel keeps only some hundred packets for a socket. So reads wait for a shorter time if the delay would gather
/// more than 64 packets.
///
/// Times are in nanoseconds of a clock that only moves forward.
package struct AdvertisingReportPacing: Sendable {
    /// The longest delay for which an app may ask.
    static let longestDelay = Duration.milliseconds(50)

    private let delay: UInt64
    /// The greatest number of packets with reports that are read together, if they continue to arrive at the same rate.
    private let gatheredCount: UInt64
    /// The time without other packets after which reads may wait.
    private let quietTime: UInt64
    /// The number of packets with reports since the last decision.
    private var reportCount: UInt64 = 0
    /// Whether another packet was sent or received since the last decision.
    private var hasOtherPacket = true
    private var quietSince: UInt64 = 0
    private var lastDecision: UInt64 = 0

    /// Nil if the delay is shorter than a millisecond.
    package init?(delay: Duration, quietTime: Duration = .seconds(1), gatheredCount: UInt64 = 64) {
        guard delay >= .milliseconds(1) else { return nil }
        self.delay = UInt64(delay / .milliseconds(1)) * 1_000_000
        self.gatheredCount = gatheredCount
        self.quietTime = UInt64(quietTime / .nanoseconds(1))
    }

    mutating func received(_ packet: RawSpan) {
        if AdvertisingReportPacing.isAdvertisingReport(packet) { reportCount += 1 } else { hasOtherPacket = true }
    }

    mutating func sent() { hasOtherPacket = true }

    /// Whether nothing ended the waiting since the last decision.
    var mayWait: Bool { !hasOtherPacket }

    /// Decides how long the next read waits from now on. Zero if it must not wait, or if there was no report since the
    /// last decision, or if the wait would be shorter than a millisecond.
    mutating func decide(at now: UInt64) -> UInt64 {
        if hasOtherPacket {
            hasOtherPacket = false
            quietSince = now
        }
        defer {
            reportCount = 0
            lastDecision = now
        }
        guard reportCount > 0, now >= quietSince + quietTime else { return 0 }
        let interval = (now - lastDecision) / reportCount
        guard interval < delay / gatheredCount else { return delay }
        let shorter = interval * gatheredCount
        return shorter < 1_000_000 ? 0 : shorter
    }

    /// Whether a packet is an event with advertising reports (Vol 4, Part E, 7.7.65.2, 11, 13 and 15).
    private static func isAdvertisingReport(_ packet: RawSpan) -> Bool {
        guard packet[checked: 0] == 0x04, packet[checked: 1] == 0x3E else { return false }
        return switch packet[checked: 3] {
        case 0x02, 0x0B, 0x0D, 0x0F: true
        default: false
        }
    }
}
