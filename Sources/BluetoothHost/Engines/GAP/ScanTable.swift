import BluetoothTypes
import OrderedCollections

/// The scans of apps, and the advertisers that were reported to each.
struct ScanTable {
    private(set) var sessions: OrderedDictionary<ScanIdentifier, ScanSession> = [:]
    private var advertisers = AdvertiserTable()
    /// The positions of the scans to which the last report was new, except the first. A property so that its storage is
    /// reused.
    private var laterMatches: [Int] = []

    var isEmpty: Bool { sessions.isEmpty }

    mutating func insert(_ identifier: ScanIdentifier, _ options: ScanOptions) {
        if sessions.isEmpty { advertisers.removeAll() }
        sessions[identifier] = ScanSession(options: options)
    }

    /// - Returns: false if the scan has ended before.
    mutating func remove(_ identifier: ScanIdentifier) -> Bool {
        sessions.removeValue(forKey: identifier) != nil
    }

    /// - Returns: the removed scans, oldest first.
    mutating func removeAll() -> [ScanIdentifier] {
        defer { sessions.removeAll() }
        return Array(sessions.keys)
    }

    /// - Returns: the removed scans, oldest first.
    mutating func removeScansOnCodedAlone() -> [ScanIdentifier] {
        let removed = sessions.filter(\.value.options.isOnCodedAlone).keys
        sessions.removeAll(where: \.value.options.isOnCodedAlone)
        return Array(removed)
    }

    // MARK: Reports

    /// The scans to which a report is new. Valid until the table is changed.
    struct Matches {
        fileprivate let advertiser: AdvertiserTable.Index
        /// The number of these scans.
        fileprivate(set) var count = 1
        /// The position of the first of these scans, oldest first. ``ScanTable/laterMatches`` has the others.
        let first: Int
    }

    /// Handles a report.
    ///
    /// - Returns: nil if the report is new to no scan.
    mutating func receive(_ receipt: borrowing AdvertisingReceipt, at now: Instant) -> Matches? {
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

    /// The scans that receive the event, oldest first.
    func scans(of matches: Matches) -> [ScanIdentifier] {
        [sessions.keys[matches.first]] + (matches.count == 1 ? [] : laterMatches.map { sessions.keys[$0] })
    }

    /// Returns whether a scan has received one of these addresses on the LE Coded PHY, even if it was forgotten since.
    mutating func wasReceivedOnCodedPHY(_ addresses: Set<DeviceAddress>) -> Bool {
        advertisers.wasReceivedOnCodedPHY(addresses)
    }

    /// Returns whether the last connectable report of one of these addresses was on another secondary PHY than LE 1M,
    /// even if it was forgotten since.
    mutating func usesOtherSecondaryPHY(_ addresses: Set<DeviceAddress>) -> Bool {
        advertisers.usesOtherSecondaryPHY(addresses)
    }

    // MARK: Forgetting

    /// Forgets advertisers, so that all scans report them again when they are received.
    mutating func forget(_ addresses: Set<DeviceAddress>) {
        guard !sessions.isEmpty else { return }
        advertisers.forget(addresses)
    }

    /// Makes one scan report these advertisers again when they are received; for nil, all advertisers.
    mutating func forget(_ addresses: Set<DeviceAddress>?, in scan: ScanIdentifier) {
        guard let index = sessions.index(forKey: scan) else { return }
        sessions.values[index].forget(addresses)
    }

    /// Makes all scans report all advertisers again when they are received.
    mutating func forgetAdvertisers() {
        advertisers.removeAll()
    }
}

extension ScanTable.Matches {
    /// Whether only one scan receives the event.
    var isSingle: Bool { count == 1 }
}
