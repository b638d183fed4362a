import BluetoothTypes

/// A filter that rejects replayed reports of one device and key.
///
/// The filter keeps the highest accepted counter, and accepts higher ones. A device that loses its counter, for example
/// with its battery, sends lower values. The filter accepts such a restart only if no report was accepted for
/// `silence`, and at most once per `silence`. It keeps the highest counter and does not accept it again: the device's
/// next higher counter ends the restarted sequence. An attacker can replay old reports after a long silence. The filter
/// still accepts a device that has kept its counter.
///
/// A rejected report changes nothing.
///
/// # Limits
///
/// The filter does not remember which of the lower counters it has accepted. After a restart, an attacker can replay an
/// old report with a counter between those of the restarted sequence and the highest one. The filter then rejects the
/// restarted device until its counter is higher than the replayed one, or until the next restart is accepted. The
/// filter also rejects the one report with which the restarted device reaches the highest counter.
struct ReplayFilter {
    /// How a counter advances.
    enum Width {
        /// 32 bits that never wrap during the life of a key.
        case bits32
        /// 8 bits that wrap: the 127 values after the last are newer, and all others older. The formats with such a
        /// counter allow no better protection:
        /// - Once a device has sent 128 more reports, an old report counts as new.
        /// - If the next report that is received is the 128th to 256th after the last accepted one, it counts as old.
        ///   The filter then rejects the reports up to the 256th, unless it accepts a restart.
        case bits8
    }

    private var highest: UInt32?
    /// The last accepted counter of a sequence that restarted below `highest`.
    private var restarted: UInt32?
    private var lastAccepted: Instant
    private var lastRestart: Instant?

    init(now: Instant) {
        lastAccepted = now
    }

    /// Returns whether an authenticated report with this counter is newer than all earlier ones, and remembers it.
    mutating func accept(_ counter: UInt32, width: Width, now: Instant, silence: Duration) -> Bool {
        guard let highest else {
            self.highest = counter
            lastAccepted = now
            return true
        }
        if isNewer(counter, than: highest, width) {
            self.highest = counter
            restarted = nil
        } else if let restarted, counter != highest, isNewer(counter, than: restarted, width) {
            self.restarted = counter
        } else if counter != highest, counter != restarted, mayRestart(now, silence) {
            restarted = counter
            lastRestart = now
        } else {
            return false
        }
        lastAccepted = now
        return true
    }

    private func isNewer(_ counter: UInt32, than last: UInt32, _ width: Width) -> Bool {
        switch width {
        case .bits32: counter > last
        case .bits8: (1...127).contains(UInt8(truncatingIfNeeded: counter) &- UInt8(truncatingIfNeeded: last))
        }
    }

    private func mayRestart(_ now: Instant, _ silence: Duration) -> Bool {
        guard now - lastAccepted >= silence else { return false }
        guard let lastRestart else { return true }
        return now - lastRestart >= silence
    }
}
