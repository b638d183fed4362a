import BLEByteCoding
import BluetoothTypes
import OrderedCollections

/// Assembles extended advertising data that a controller reports in several fragments (Vol 4, Part E, 7.7.65.13).
///
/// A controller reports the fragments of one advertisement within milliseconds. The end of it can be lost: with an
/// event, or because scanning has stopped. So fragments that are older than ``lifetime`` are not the start of what
/// follows.
struct ExtendedReportAssembler {
    /// The longest data of one advertisement in bytes (Vol 6, Part B, 2.3.4).
    static let maximumDataLength = 1650

    struct Source: Hashable {
        let address: DeviceAddress
        let advertisingSetIdentifier: UInt8
        let isScanResponse: Bool
    }

    /// The meaning of Data_Status: whether more fragments follow.
    enum Status {
        case complete
        case moreToCome
        case truncated
    }

    private struct Partial {
        var bytes: [UInt8] = []
        /// Whether bytes beyond the maximum length were left out.
        var isCut = false
        var lastFragment: Instant
    }

    /// How long the next fragment may take.
    static let lifetime = Duration.seconds(1)

    /// The incomplete advertisements, oldest first.
    private var partial: OrderedDictionary<Source, Partial> = [:]
    /// The sources whose incomplete advertisements were dropped, with the times of their last fragments, oldest first.
    /// The rest of these is left out, and reported as truncated.
    private var dropped: OrderedDictionary<Source, Instant> = [:]
    /// Maximum number of incomplete advertisements, and of dropped ones. Only a faulty controller exceeds it; the
    /// oldest is then dropped.
    private let limit: Int

    init(limit: Int = 32) {
        self.limit = limit
    }

    /// Takes one fragment. If it ends the data, returns the whole data, and whether a part is missing.
    ///
    /// - Returns: nil while more fragments follow. If the first fragment is the whole, `data` is nil: use the fragment
    ///   itself.
    mutating func receive(
        _ piece: RawSpan,
        from source: Source,
        status: Status,
        at now: @autoclosure () -> Instant
    ) -> (data: [UInt8]?, isTruncated: Bool)? {
        if status != .moreToCome, partial.isEmpty, dropped.isEmpty { return (nil, status == .truncated) }
        let now = now()
        forgetFragments(before: now)
        if dropped[source] != nil {
            dropped[source] = status == .moreToCome ? now : nil
            return status == .moreToCome ? nil : ([], true)
        }
        switch status {
        case .moreToCome:
            if partial[source] == nil, partial.count >= limit { dropOldest() }
            append(piece, to: source, at: now)
            return nil
        case .complete, .truncated:
            guard partial[source] != nil else { return (nil, status == .truncated) }
            append(piece, to: source, at: now)
            let whole = partial.removeValue(forKey: source)
            return (whole?.bytes ?? [], status == .truncated || whole?.isCut == true)
        }
    }

    /// Forgets fragments whose continuation is not expected any more.
    private mutating func forgetFragments(before now: Instant) {
        partial.removeAll { $0.value.lastFragment + Self.lifetime < now }
        dropped.removeAll { $0.value + Self.lifetime < now }
    }

    /// Forgets all fragments, because the controller has stopped or started to scan.
    mutating func removeAll() {
        partial.removeAll()
        dropped.removeAll()
    }

    private mutating func dropOldest() {
        let oldest = partial.removeFirst()
        dropped[oldest.key] = oldest.value.lastFragment
        if dropped.count > limit { dropped.removeFirst() }
    }

    private mutating func append(_ piece: RawSpan, to source: Source, at now: Instant) {
        var whole = partial[source] ?? Partial(lastFragment: now)
        // The array is not copied for the change.
        partial[source]?.bytes = []
        let room = ExtendedReportAssembler.maximumDataLength - whole.bytes.count
        if piece.byteCount > room { whole.isCut = true }
        let taken = piece.extracting(first: min(room, piece.byteCount))
        unsafe taken.withUnsafeBytes { unsafe whole.bytes.append(contentsOf: $0) }
        whole.lastFragment = now
        partial[source] = whole
    }
}
