import BLEByteCoding
import BluetoothTypes

/// Assembles extended advertising data that a controller reports in several fragments (Vol 4, Part E, 7.7.65.13).
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

    private var partial: [Source: [UInt8]] = [:]
    /// Maximum number of incomplete advertisements. Only a faulty controller exceeds it; the oldest is then dropped.
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
        status: Status
    ) -> (data: [UInt8]?, isTruncated: Bool)? {
        switch status {
        case .moreToCome:
            if partial[source] == nil, partial.count >= limit { partial.removeAll() }
            append(piece, to: source)
            return nil
        case .complete, .truncated:
            guard partial[source] != nil else { return (nil, status == .truncated) }
            append(piece, to: source)
            let data = partial.removeValue(forKey: source) ?? []
            return (data, status == .truncated || data.count >= ExtendedReportAssembler.maximumDataLength)
        }
    }

    mutating func removeAll() {
        partial.removeAll()
    }

    private mutating func append(_ piece: RawSpan, to source: Source) {
        let room = ExtendedReportAssembler.maximumDataLength - (partial[source]?.count ?? 0)
        let taken = piece.extracting(first: min(room, piece.byteCount))
        unsafe taken.withUnsafeBytes { unsafe partial[source, default: []].append(contentsOf: $0) }
    }
}
