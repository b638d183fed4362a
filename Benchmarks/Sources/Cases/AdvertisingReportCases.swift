import BLEByteCoding
import BLEHCI
import BluetoothTypes
import CBaseline

extension BenchmarkCase {
    /// Advertising reports, from the event's first byte to the last AD structure.
    static var advertisingReports: [BenchmarkCase] {
        let legacy = Samples { ReportBytes.legacy(number: Int($0), data: ReportBytes.data) }
        let pair = Samples { ReportBytes.legacyPair(number: Int($0)) }
        let extended = Samples { ReportBytes.extended(number: Int($0), data: ReportBytes.longData) }
        return [
            codec("hci/advertising-report/walk", legacy, budget: .report, baseline: c_walk_legacy_report) {
                $0.walkLegacy($1)
            },
            codec("hci/advertising-report-of-two/walk", pair, budget: .report, baseline: c_walk_legacy_report) {
                $0.walkLegacy($1)
            },
            codec("hci/extended-report/walk", extended, budget: .report, baseline: c_walk_extended_report) {
                $0.walkExtended($1)
            },
        ]
    }
}

/// Events with advertising reports, without the H4 indicator.
enum ReportBytes {
    /// Flags, a list of UUIDs, manufacturer data and a name, as sensors send them: 31 bytes.
    static let data: [UInt8] =
        [2, 0x01, 0x06, 5, 0x03, 0x0D, 0x18, 0x0F, 0x18, 7, 0xFF, 0x4C, 0x00, 1, 2, 3, 4]
        + [13, 0x09] + Array("thermo-00123".utf8)

    /// 120 bytes of extended advertising data.
    static let longData: [UInt8] =
        data + [17, 0x07] + (0..<16) + [3, 0x19, 0x40, 0x03] + [66, 0xFF, 0x59, 0x00] + (0..<63)

    static func address(_ number: Int) -> [UInt8] {
        [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8), 0x22, 0x33, 0x44, 0xC5]
    }

    private static func report(number: Int, data: [UInt8]) -> [UInt8] {
        [0x00, 0x01] + address(number) + [UInt8(data.count)] + data + [0xC0]
    }

    static func legacy(number: Int, data: [UInt8]) -> [UInt8] {
        let body = [0x02, 0x01] + report(number: number, data: data)
        return [0x3E, UInt8(body.count)] + body
    }

    static func legacyPair(number: Int) -> [UInt8] {
        let body = [0x02, 0x02] + report(number: number, data: data) + report(number: number + 100, data: data)
        return [0x3E, UInt8(body.count)] + body
    }

    static func extended(number: Int, data: [UInt8]) -> [UInt8] {
        let body: [UInt8] =
            [0x0D, 0x01, 0x03, 0x00, 0x01] + address(number) + [0x01, 0x02, 0x05, 0x7F, 0xC0, 0, 0]
            + [0, 0, 0, 0, 0, 0, 0, UInt8(data.count)] + data
        return [0x3E, UInt8(body.count)] + body
    }
}

extension Samples {
    fileprivate func walkLegacy(_ operations: Int) {
        forEach(operations) { bytes in
            guard case .leAdvertisingReport(let event)? = try? Event(decoding: bytes) else { return 0 }
            var sum: UInt64 = 0
            var reports = event.reports
            while let report = try? reports.next() {
                sum &+= UInt64(report.eventType.rawValue) &+ UInt64(report.address.type.rawValue)
                sum &+= report.address.value &+ structures(report.data) &+ UInt64(UInt8(bitPattern: report.rssi))
            }
            return sum
        }
    }

    fileprivate func walkExtended(_ operations: Int) {
        forEach(operations) { bytes in
            guard case .leExtendedAdvertisingReport(let event)? = try? Event(decoding: bytes) else { return 0 }
            var sum: UInt64 = 0
            var reports = event.reports
            while let report = try? reports.next() {
                sum &+= UInt64(report.eventType.rawValue) &+ UInt64(report.address.type.rawValue)
                sum &+= report.address.value &+ UInt64(report.primaryPHY.rawValue)
                sum &+= UInt64(report.secondaryPHY.rawValue) &+ UInt64(report.advertisingSID)
                sum &+= UInt64(UInt8(bitPattern: report.rssi)) &+ UInt64(report.periodicAdvertisingInterval)
                sum &+= UInt64(report.directAddress.type.rawValue) &+ report.directAddress.value
                sum &+= structures(report.data)
            }
            return sum
        }
    }
}

/// Walks the AD structures of a report.
@inline(__always)
private func structures(_ data: RawSpan) -> UInt64 {
    var sum: UInt64 = 0
    var structures = ADStructureIterator(data)
    while let structure = try? structures.next() {
        sum &+= UInt64(structure.type.rawValue) &+ trace(structure.data)
    }
    return sum
}
