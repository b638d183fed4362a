import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The table of advertisers")
struct AdvertiserTableTests {
    /// The properties of a report.
    struct Report: Sendable {
        var isConnectable = true
        var isScannable = false
        var isLegacy = false
        var primaryPHY = PHY.le1M
        var secondaryPHY = PHY.le2M
        var isTruncated = false
        var identifier: UInt8? = 1
        var data: [UInt8] = [2, 1, 6]

        init(_ change: (inout Report) -> Void = { _ in }) {
            change(&self)
        }
    }

    /// Returns the advertiser after a report.
    private func receive(_ report: Report, in table: inout AdvertiserTable) -> AdvertiserTable.Advertiser? {
        let receipt = AdvertisingReceipt(
            address: GAPSample.address(1),
            privateAddress: nil,
            rssi: -40,
            isConnectable: report.isConnectable,
            isScannable: report.isScannable,
            isLegacy: report.isLegacy,
            primaryPHY: report.primaryPHY,
            secondaryPHY: report.secondaryPHY,
            isScanResponse: false,
            isTruncated: report.isTruncated,
            advertisingSetIdentifier: report.identifier,
            data: report.data.rawSpan
        )
        return table.receive(receipt, at: GAPSample.start).map { table[$0] }
    }

    private static let news: [Report] = [Report { $0.isConnectable = false }, Report { $0.data = [] }]

    /// Changes of how the same data is sent.
    private static let changes: [Report] = [
        Report { $0.isScannable = true }, Report { $0.isLegacy = true }, Report { $0.primaryPHY = .leCoded },
        Report { $0.secondaryPHY = .leCoded }, Report { $0.isTruncated = true }, Report { $0.identifier = 2 },
    ]

    @Test(arguments: news.map { ($0, true) } + changes.map { ($0, false) })
    func eachChangeIsStoredAndNewContentIsReported(change: Report, isNew: Bool) throws {
        var table = AdvertiserTable()
        let first = try #require(receive(Report(), in: &table))
        #expect(receive(Report(), in: &table)?.revision == first.revision)
        let changed = try #require(receive(change, in: &table))
        #expect((changed.revision > first.revision) == isNew)
        let advertisement = changed.advertisement
        #expect(advertisement.isConnectable == change.isConnectable && advertisement.isScannable == change.isScannable)
        #expect(advertisement.isLegacy == change.isLegacy && advertisement.isTruncated == change.isTruncated)
        #expect(advertisement.primaryPHY == change.primaryPHY && advertisement.secondaryPHY == change.secondaryPHY)
        #expect(advertisement.advertisingSetIdentifier == change.identifier)
        #expect(advertisement.advertisingData == change.data)
        #expect(receive(change, in: &table)?.revision == changed.revision)
    }

    @Test func receptionOnTheCodedPHYIsRememberedWhenTheStateIsForgotten() {
        var table = AdvertiserTable()
        let addresses: Set = [GAPSample.address(1), GAPSample.address(2)]
        _ = receive(Report(), in: &table)
        let before = table.wasReceivedOnCodedPHY(addresses)
        _ = receive(Report { $0.primaryPHY = .leCoded }, in: &table)
        table.removeAll()
        let (after, other) = (
            table.wasReceivedOnCodedPHY(addresses), table.wasReceivedOnCodedPHY([GAPSample.address(2)])
        )
        #expect(!before && after && !other && table.count == 0)
    }

    @Test func otherSecondaryPHYIsRememberedWhenTheStateIsForgotten() {
        var table = AdvertiserTable()
        let addresses: Set = [GAPSample.address(1), GAPSample.address(2)]
        let before = table.usesOtherSecondaryPHY(addresses)
        _ = receive(Report(), in: &table)
        table.forget(addresses)
        let isForgotten = table.count == 0
        let afterForgetting = table.usesOtherSecondaryPHY(addresses)
        _ = receive(Report(), in: &table)
        table.removeAll()
        let (afterRemoval, other) = (
            table.usesOtherSecondaryPHY(addresses), table.usesOtherSecondaryPHY([GAPSample.address(2)])
        )
        #expect(!before && isForgotten && afterForgetting && afterRemoval && !other)
    }

    @Test(arguments: [PHY.none, .le1M, .leCoded]) func lastConnectableReportDecidesAboutTheSecondaryPHY(phy: PHY) {
        var table = AdvertiserTable()
        let addresses: Set = [GAPSample.address(1)]
        _ = receive(Report(), in: &table)
        _ = receive(Report { ($0.isConnectable, $0.secondaryPHY) = (false, .le1M) }, in: &table)
        let afterOther = table.usesOtherSecondaryPHY(addresses)
        _ = receive(Report { $0.secondaryPHY = phy }, in: &table)
        let afterLast = table.usesOtherSecondaryPHY(addresses)
        #expect(afterOther && afterLast == (phy == .leCoded))
    }
}
