import BLEHCI
import BluetoothTypes

/// The times at which a scanner or an initiator listens: a window at the start of each interval.
struct ListeningWindow {
    /// In units of 0.625 ms.
    let interval: UInt16
    /// In units of 0.625 ms.
    let window: UInt16

    /// Whether interval and window are in their ranges (Vol 4, Part E, 7.8.10 and 7.8.64).
    func isValid(upTo limit: UInt16) -> Bool {
        interval >= 0x0004 && window >= 0x0004 && interval <= limit && window <= interval
    }

    func isOpen(at instant: Instant, since start: Instant) -> Bool {
        guard interval > window else { return true }
        let elapsed = instant.nanoseconds &- start.nanoseconds
        return elapsed % (UInt64(interval) * 625_000) < UInt64(window) * 625_000
    }
}

/// The host's scan settings, and the reports already sent.
struct Scanner {
    typealias PHYParameters = LESetExtendedScanParameters.PHYParameters

    /// The state of enabled scanning.
    struct Run {
        let number: UInt64
        /// The start of the first scan window.
        var start: Instant
        let filter: DuplicateFilter
        /// Whether scanning pauses until the next period.
        var isPaused = false
        var reported: Set<Reported> = []
    }

    /// The properties that identify duplicate reports.
    struct Reported: Hashable {
        let address: PeerAddress
        let eventType: UInt16
        let sid: UInt8
        let dataIdentifier: UInt16
    }

    /// Maximum number of remembered reports. When it is reached, all are removed.
    static let maximumReported = 65_536

    var isExtended = false
    var ownAddressType = OwnAddressType.public
    var filterPolicy = ScanningFilterPolicy.basicUnfiltered
    var le1M: PHYParameters? = PHYParameters()
    var leCoded: PHYParameters?
    var run: Run?
    var lastRun: UInt64 = 0
    /// Fires when a scan ends, or when the next one begins.
    let timer = Air.Timer()
    /// When the last delayed report about each device reaches the host. Reports of an earlier run may still be on the
    /// way.
    private var deliveries: [ObjectIdentifier: Instant] = [:]

    var isEnabled: Bool { run != nil }
    var isListening: Bool { run?.isPaused == false }

    /// Returns the parameters if the scanner listens on a PHY at an instant, or nil otherwise.
    func listens(to phy: PHY, at instant: Instant) -> PHYParameters? {
        guard let run, !run.isPaused, let parameters = phy == .leCoded ? leCoded : le1M else { return nil }
        return parameters.listening.isOpen(at: instant, since: run.start) ? parameters : nil
    }

    /// Returns the delay of a report about a device, behind the reports before it.
    ///
    /// - Parameter delay: the delay on the air.
    mutating func delayInOrder(_ delay: Duration, from sender: VirtualController, at now: Instant) -> Duration {
        guard delay > .zero || !deliveries.isEmpty else { return delay }
        let delivery = max(deliveries[ObjectIdentifier(sender)] ?? now, now + delay)
        deliveries[ObjectIdentifier(sender)] = delivery
        return delivery - now
    }

    /// Whether this report has been sent before and duplicates are filtered.
    func hasReported(_ reported: Reported) -> Bool {
        guard let run, run.filter != .disabled else { return false }
        return run.reported.contains(reported)
    }

    mutating func remember(_ reported: Reported) {
        guard var run, run.filter != .disabled else { return }
        self.run = nil
        if run.reported.count >= Self.maximumReported { run.reported = [] }
        run.reported.insert(reported)
        self.run = run
    }
}

extension Scanner.PHYParameters {
    var listening: ListeningWindow { ListeningWindow(interval: scanInterval, window: scanWindow) }
}

extension ScanningFilterPolicy {
    /// Whether only advertisers on the filter accept list are reported.
    var isFiltered: Bool { self == .basicFiltered || self == .extendedFiltered }
    /// Whether advertisements directed to unresolved private addresses are reported.
    var isExtended: Bool { self == .extendedUnfiltered || self == .extendedFiltered }
}
