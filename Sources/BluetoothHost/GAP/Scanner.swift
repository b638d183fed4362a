import BluetoothTypes
import HCI
import OrderedCollections

/// The scans of a host, and what of them the controller has been told.
struct Scanner {
    /// What the controller is to do for all scans together.
    struct Parameters: Equatable {
        var isActive: Bool
        var interval: UInt16
        var window: UInt16
        var filtersDuplicates: Bool
        /// The newest scan, where the controller filters duplicates: it forgets what it has reported by starting afresh.
        var filteringSince: ScanIdentifier?
        /// The number of times that known advertisers were forgotten, where the controller filters duplicates: it reports
        /// them again only after a restart.
        var forgetCount: UInt64 = 0
    }

    var sessions: OrderedDictionary<ScanIdentifier, ScanSession> = [:]
    /// The scan that was begun last.
    var newest: ScanIdentifier?
    /// Whether peers are to be met, too, that the controller would not know.
    var isSeeking = false
    var advertisers = AdvertiserTable()
    /// The positions of the scans to which the last report was new, without the first. Kept for its storage.
    private var laterMatches: [Int] = []
    /// The number of times that known advertisers were forgotten.
    private var forgetCount: UInt64 = 0
    var assembler = ExtendedReportAssembler()
    var reconciliation = Reconciliation()
    /// What the controller scans with now; nil when it does not.
    private(set) var applied: Parameters?
    /// When the last report came, or the scan was started. The time between the turns of a scan does not count: the instant
    /// is moved by that time.
    private(set) var lastActivity = Instant(nanoseconds: 0)
    /// How long nothing had been received when scanning last stopped.
    private var silence = Duration.zero
    var hasRestartedInSilence = false
    var silenceTimer: TimerQueue.Token?

    /// What the scans ask for together: active if one is, as often and as long as the most eager wants.
    var wanted: Parameters? {
        guard !sessions.isEmpty || isSeeking else { return nil }
        // A peer that is sought may have been reported before.
        var parameters = Parameters(isActive: false, interval: .max, window: 0, filtersDuplicates: !isSeeking)
        if isSeeking { (parameters.interval, parameters.window) = (0x60, 0x60) }
        for session in sessions.values {
            let options = session.options
            let interval = min(max(options.interval.inUnits(of: .microseconds(625)), 4), 0x4000)
            parameters.isActive = parameters.isActive || options.isActive
            parameters.interval = min(parameters.interval, interval)
            parameters.window = max(parameters.window, max(options.window.inUnits(of: .microseconds(625)), 4))
            parameters.filtersDuplicates =
                parameters.filtersDuplicates && options.filtersInController && !options.reportsDuplicates
        }
        parameters.window = min(parameters.window, parameters.interval)
        if parameters.filtersDuplicates {
            parameters.filteringSince = newest
            parameters.forgetCount = forgetCount
        }
        return parameters
    }

    /// Whether a scan is wanted or the controller may scan. Otherwise there is nothing to bring it to.
    var mayScan: Bool { !sessions.isEmpty || isSeeking || !isResting }

    /// Whether the controller does not scan, and is not being told to.
    var isResting: Bool { applied == nil && !reconciliation.isRunning }

    // MARK: State of the controller

    /// The controller has begun to scan.
    mutating func begin(_ parameters: Parameters, at now: Instant) {
        applied = parameters
        lastActivity = now + (.zero - silence)
    }

    /// The controller has stopped scanning. Its silence is remembered if a scan is still wanted.
    mutating func pause(at now: Instant) {
        if applied != nil { silence = now - lastActivity }
        applied = nil
        forgetSilenceUnlessWanted()
    }

    /// The controller has stopped scanning in order to begin again after a silence.
    mutating func restart() {
        applied = nil
        silence = .zero
    }

    mutating func forgetSilenceUnlessWanted() {
        if sessions.isEmpty, !isSeeking { silence = .zero }
    }

    /// The controller was reset and scans no more. All advertisers are reported again.
    mutating func forgetController() {
        applied = nil
        silence = .zero
        assembler.removeAll()
        advertisers.removeAll()
    }

    // MARK: Reports

    /// The scans to which a report is new. Valid until the scanner is changed.
    struct Matches {
        fileprivate let advertiser: AdvertiserTable.Index
        /// The number of these scans.
        fileprivate(set) var count = 1
        /// The position of the first of these scans among the sessions. The others are in ``Scanner/laterMatches``.
        fileprivate let first: Int
    }

    /// Takes a report.
    ///
    /// - Returns: nil if the report is new to no scan.
    mutating func receive(_ receipt: borrowing AdvertisingReceipt, at now: Instant) -> Matches? {
        lastActivity = now
        hasRestartedInSilence = false
        guard !sessions.isEmpty, let index = advertisers.receive(receipt, at: now) else { return nil }
        var first = -1
        var count = 0
        advertisers.withAdvertiser(at: index) { advertiser in
            for position in sessions.values.indices where sessions.values[position].receive(advertiser) {
                count += 1
                if count == 1 {
                    first = position
                } else {
                    if count == 2 { laterMatches.removeAll(keepingCapacity: true) }
                    laterMatches.append(position)
                }
            }
        }
        return count == 0 ? nil : Matches(advertiser: index, count: count, first: first)
    }

    /// The event for these scans.
    func event(of matches: Matches) -> ScanEvent { .advertisement(advertisers[matches.advertiser].advertisement) }

    /// The closure of the scan that is to be told, if there is only one.
    func deliver(of matches: Matches) -> (@Sendable (ScanEvent) -> Void)? {
        matches.count == 1 ? sessions.values[matches.first].deliver : nil
    }

    /// The scans that are to be told, the oldest first.
    func scans(of matches: Matches) -> [ScanIdentifier] {
        [sessions.keys[matches.first]] + (matches.count == 1 ? [] : laterMatches.map { sessions.keys[$0] })
    }

    /// Forgets advertisers, so that all scans report them again when they are received.
    ///
    /// - Returns: whether one of them was known.
    mutating func forget(_ addresses: Set<DeviceAddress>) -> Bool {
        guard !sessions.isEmpty, advertisers.forget(addresses) else { return false }
        forgetCount += 1
        return true
    }

    /// Makes one scan report some advertisers again when they are received, or all if `addresses` is nil.
    ///
    /// - Returns: whether the controller may filter them.
    mutating func forget(_ addresses: Set<DeviceAddress>?, in scan: ScanIdentifier) -> Bool {
        guard let index = sessions.index(forKey: scan) else { return false }
        sessions.values[index].forget(addresses)
        guard sessions.values[index].options.filtersInController else { return false }
        forgetCount += 1
        return true
    }
}

/// Keeps one pass at a time going that brings the controller to what is wanted: asked for during a pass, another follows.
struct Reconciliation {
    private(set) var isRunning = false
    private var isWanted = false

    /// Tells whether a pass must be started now.
    mutating func request() -> Bool {
        isWanted = true
        if isRunning { return false }
        isRunning = true
        return true
    }

    /// Tells whether there is something to do, and ends the run where there is not.
    mutating func next() -> Bool {
        if isWanted {
            isWanted = false
            return true
        }
        isRunning = false
        return false
    }
}
