import BluetoothTypes
import HCI
import OrderedCollections

/// The scans of a host, and their state in the controller.
struct Scanner {
    /// The controller's scan parameters for all scans together.
    struct Parameters: Equatable {
        var isActive: Bool
        var interval: UInt16
        var window: UInt16
        var filtersDuplicates: Bool
        /// The newest scan, if the controller filters duplicates. A change restarts scanning, which clears the
        /// controller's filter.
        var filteringSince: ScanIdentifier?
        /// The number of times that known advertisers were forgotten, if the controller filters duplicates. A change
        /// restarts scanning, so that the controller reports them again.
        var forgetCount: UInt64 = 0
    }

    var sessions: OrderedDictionary<ScanIdentifier, ScanSession> = [:]
    /// The scan that was started last.
    var newest: ScanIdentifier?
    /// Whether the host also scans for peers to connect to whose addresses the controller cannot resolve.
    var isSeeking = false
    var advertisers = AdvertiserTable()
    /// The positions of the scans to which the last report was new, except the first. A property so that its storage is
    /// reused.
    private var laterMatches: [Int] = []
    /// The number of times that known advertisers were forgotten.
    private var forgetCount: UInt64 = 0
    var assembler = ExtendedReportAssembler()
    var reconciliation = Reconciliation()
    /// The parameters with which the controller scans now; nil if it does not scan.
    private(set) var applied: Parameters?
    /// When the last report arrived or the scan was started. Time between the turns of a scan does not count: the
    /// instant is moved forward by it.
    private(set) var lastActivity = Instant(nanoseconds: 0)
    /// The time since the last report, when scanning last stopped.
    private var silence = Duration.zero
    var hasRestartedInSilence = false
    var silenceTimer: TimerQueue.Token?

    /// The combined parameters of the scans: active if any scan is active, with the shortest interval and the longest
    /// window.
    var wanted: Parameters? {
        guard !sessions.isEmpty || isSeeking else { return nil }
        // Without filtering, because a peer that is searched for may have been reported before.
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

    /// Whether a scan is wanted or the controller may be scanning. Otherwise a pass has nothing to do.
    var mayScan: Bool { !sessions.isEmpty || isSeeking || !isResting }

    /// Whether the controller does not scan, and no command for it is in progress.
    var isResting: Bool { applied == nil && !reconciliation.isRunning }

    // MARK: State of the controller

    /// Records that the controller has started to scan.
    mutating func begin(_ parameters: Parameters, at now: Instant) {
        applied = parameters
        lastActivity = now + (.zero - silence)
    }

    /// Records that the controller has stopped scanning. The silent time is kept if a scan is still wanted.
    mutating func pause(at now: Instant) {
        if applied != nil { silence = now - lastActivity }
        applied = nil
        forgetSilenceUnlessWanted()
    }

    /// Records that the controller has stopped scanning and will be started again because of silence.
    mutating func restart() {
        applied = nil
        silence = .zero
    }

    mutating func forgetSilenceUnlessWanted() {
        if sessions.isEmpty, !isSeeking { silence = .zero }
    }

    /// Records that the controller was reset and no longer scans. All advertisers are reported again.
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
        /// The position of the first of these scans among the sessions. ``Scanner/laterMatches`` has the others.
        fileprivate let first: Int
    }

    /// Handles a report.
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

    /// The closure of the scan that receives the event, if there is only one.
    func deliver(of matches: Matches) -> (@Sendable (ScanEvent) -> Void)? {
        matches.count == 1 ? sessions.values[matches.first].deliver : nil
    }

    /// The scans that receive the event, oldest first.
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

    /// Makes one scan report these advertisers again when they are received; for nil, all advertisers.
    ///
    /// - Returns: whether the controller may be filtering them.
    mutating func forget(_ addresses: Set<DeviceAddress>?, in scan: ScanIdentifier) -> Bool {
        guard let index = sessions.index(forKey: scan) else { return false }
        sessions.values[index].forget(addresses)
        guard sessions.values[index].options.filtersInController else { return false }
        forgetCount += 1
        return true
    }
}

/// Schedules passes that change the controller to the wanted state. One pass runs at a time; a request during a pass
/// causes another one after it.
struct Reconciliation {
    private(set) var isRunning = false
    private var isWanted = false

    /// Requests a pass.
    ///
    /// - Returns: whether the caller must start the passes now.
    mutating func request() -> Bool {
        isWanted = true
        if isRunning { return false }
        isRunning = true
        return true
    }

    /// Starts the next pass, or ends the run if none is requested.
    ///
    /// - Returns: whether there is a pass to run.
    mutating func next() -> Bool {
        if isWanted {
            isWanted = false
            return true
        }
        isRunning = false
        return false
    }
}
