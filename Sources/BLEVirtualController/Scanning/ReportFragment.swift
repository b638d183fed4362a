import BLEHCI

/// A part of an advertiser's data that fits one report.
struct ReportFragment: Equatable {
    let range: Range<Int>
    let status: DataStatus

    /// Splits data into fragments. Without data, returns one empty fragment.
    ///
    /// - Parameters:
    ///   - received: the number of bytes received. If data is missing, the last fragment is marked as truncated.
    ///   - perReport: maximum number of data bytes in one report.
    static func all(of data: [UInt8], received: Int, perReport: Int) -> [ReportFragment] {
        var fragments: [ReportFragment] = []
        var start = 0
        repeat {
            let end = min(start + perReport, received)
            let last: DataStatus = received < data.count ? .truncated : .complete
            fragments.append(
                ReportFragment(range: start..<end, status: end == received ? last : .incompleteMoreToCome)
            )
            start = end
        } while start < received
        return fragments
    }
}
