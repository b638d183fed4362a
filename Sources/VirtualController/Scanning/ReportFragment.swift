import HCI

/// A part of an advertiser's data that one report has room for.
struct ReportFragment: Equatable {
    let range: Range<Int>
    let status: DataStatus

    /// All that is reported of data; one empty fragment where there are none.
    ///
    /// - Parameters:
    ///   - received: how many octets got through. Where that is not all, the last fragment says so.
    ///   - perReport: how many octets one report has room for.
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
