import BLEByteCoding
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The assembly of extended advertising data from fragments")
struct ExtendedReportAssemblerTests {
    private static let start = Instant(nanoseconds: 0)

    private static func source(_ number: UInt64 = 1) -> ExtendedReportAssembler.Source {
        .init(address: GAPSample.address(number), advertisingSetIdentifier: 1, isScanResponse: false)
    }

    private struct Whole: Equatable {
        var data: [UInt8]?
        var isTruncated = false
    }

    private static func take(
        _ bytes: [UInt8],
        _ status: ExtendedReportAssembler.Status,
        of number: UInt64 = 1,
        after delay: Duration = .zero,
        _ assembler: inout ExtendedReportAssembler
    ) -> Whole? {
        assembler.receive(bytes.span.bytes, from: source(number), status: status, at: start + delay)
            .map { Whole(data: $0.data, isTruncated: $0.isTruncated) }
    }

    @Test("Fragments of several advertisers are joined in their order")
    func fragmentsAreJoined() {
        var assembler = ExtendedReportAssembler()
        #expect(Self.take([1], .moreToCome, &assembler) == nil)
        #expect(Self.take([7], .moreToCome, of: 2, &assembler) == nil)
        #expect(Self.take([2], .moreToCome, &assembler) == nil)
        #expect(Self.take([3], .complete, &assembler) == Whole(data: [1, 2, 3]))
        #expect(Self.take([8], .truncated, of: 2, &assembler) == Whole(data: [7, 8], isTruncated: true))
        #expect(Self.take([9], .complete, &assembler) == Whole())
    }

    @Test("Fragments whose end was lost are not the start of a later advertisement")
    func fragmentsWithoutAnEndAreForgotten() {
        var assembler = ExtendedReportAssembler()
        _ = Self.take([1], .moreToCome, &assembler)
        _ = Self.take([2], .moreToCome, after: .milliseconds(1001), &assembler)
        #expect(Self.take([3], .complete, after: .milliseconds(2001), &assembler) == Whole(data: [2, 3]))
        _ = Self.take([1], .moreToCome, &assembler)
        #expect(Self.take([4], .complete, after: .seconds(2), &assembler) == Whole(), "it is whole by itself")
        _ = Self.take([1], .moreToCome, &assembler)
        assembler.removeAll()
        #expect(Self.take([5], .complete, &assembler) == Whole())
    }

    @Test("Beyond the limit, the oldest advertisement is dropped, and its rest is left out and reported as truncated")
    func oldestIsDroppedBeyondTheLimit() {
        var assembler = ExtendedReportAssembler(limit: 2)
        for number in 1...3 as ClosedRange<UInt64> { _ = Self.take([1], .moreToCome, of: number, &assembler) }
        #expect(Self.take([2], .complete, of: 2, &assembler) == Whole(data: [1, 2]))
        #expect(Self.take([2], .moreToCome, of: 1, &assembler) == nil)
        #expect(Self.take([3], .complete, of: 1, &assembler) == Whole(data: [], isTruncated: true))
        #expect(Self.take([2], .complete, of: 3, &assembler) == Whole(data: [1, 2]))
        #expect(Self.take([2], .complete, of: 1, &assembler) == Whole(), "the next one is whole")
    }

    @Test("Fragments without an end take no places from later ones, and a dropped advertisement is soon forgotten")
    func oldFragmentsAreForgotten() {
        var assembler = ExtendedReportAssembler(limit: 2)
        for number in 1...2 as ClosedRange<UInt64> { _ = Self.take([1], .moreToCome, of: number, &assembler) }
        let later = Duration.seconds(2)
        for number in 3...4 as ClosedRange<UInt64> {
            _ = Self.take([1], .moreToCome, of: number, after: later, &assembler)
        }
        #expect(Self.take([2], .complete, of: 3, after: later, &assembler) == Whole(data: [1, 2]))
        for number in 5...6 as ClosedRange<UInt64> {
            _ = Self.take([1], .moreToCome, of: number, after: later, &assembler)
        }
        #expect(Self.take([9], .complete, of: 4, after: .seconds(4), &assembler) == Whole(), "4 was dropped long ago")
    }

    @Test("Data of the maximum length is complete, and longer data is cut", arguments: [false, true])
    func longestDataIsComplete(isLonger: Bool) {
        var assembler = ExtendedReportAssembler()
        let maximum = ExtendedReportAssembler.maximumDataLength
        _ = Self.take([UInt8](repeating: 1, count: maximum - 10), .moreToCome, &assembler)
        let whole = Self.take([UInt8](repeating: 2, count: isLonger ? 11 : 10), .complete, &assembler)
        #expect(whole?.data?.count == maximum && whole?.isTruncated == isLonger)
    }
}
