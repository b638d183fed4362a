import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@Suite("An advertising report")
struct AdvertisingReportTests {
    static let data = bytes("02010603030d18050953776966")

    @Test func eventWithTwoReportsGivesBothWithTheirOwnFields() throws {
        let packet = bytes("3e23020200019a78563412f00d02010603030d18050953776966ce0400ef3207dc1b00007f")
        guard case .leAdvertisingReport(let event) = try Event(decoding: packet.span.bytes) else {
            Issue.record("not recognised")
            return
        }
        #expect(event.numReports == 2)
        var reports = event.reports
        guard let first = try reports.next() else {
            Issue.record("no first report")
            return
        }
        #expect(first.eventType == .connectableScannableUndirected)
        #expect(first.address.deviceAddress == DeviceAddress(0xF012_3456_789A, isRandom: true))
        #expect([UInt8](copying: first.data) == Self.data)
        #expect(first.rssi == -50)
        guard let second = try reports.next() else {
            Issue.record("no second report")
            return
        }
        #expect(second.eventType == .scanResponse)
        #expect(second.address == PeerAddress(DeviceAddress(0x001B_DC07_32EF, isRandom: false)))
        #expect([UInt8](copying: second.data) == [])
        #expect(second.rssi == 127)
        let end = try reports.next() == nil
        #expect(end)
    }

    @Test func eventThatEndsInItsSecondReportGivesTheFirstThenAnError() throws {
        let packet = bytes("3e22020200019a78563412f00d02010603030d18050953776966ce0400ef3207dc1b0000")
        guard case .leAdvertisingReport(let event) = try Event(decoding: packet.span.bytes) else {
            Issue.record("not recognised")
            return
        }
        var reports = event.reports
        guard let first = try reports.next() else {
            Issue.record("no first report")
            return
        }
        #expect(first.rssi == -50)
        do throws(PacketDecodingError) {
            _ = try reports.next()
            Issue.record("a cut report was decoded")
        } catch {
            #expect(error == .truncated(needed: 1, available: 0))
        }
        let end = try reports.next() == nil
        #expect(end)
    }

    @Test func bytesAfterTheLastReportGiveAnErrorOnce() throws {
        let packet = bytes("3e0e02010400ef3207dc1b00007fffff")
        guard case .leAdvertisingReport(let event) = try Event(decoding: packet.span.bytes) else {
            Issue.record("not recognised")
            return
        }
        var reports = event.reports
        guard try reports.next() != nil else {
            Issue.record("no report")
            return
        }
        do throws(PacketDecodingError) {
            _ = try reports.next()
            Issue.record("trailing bytes were accepted")
        } catch {
            #expect(error == .trailingBytes(count: 2))
        }
        let end = try reports.next() == nil
        #expect(end)
    }

    @Test func legacyReportIsWrittenAloneAsAnEvent() {
        let data = Self.data
        let packet = PacketBuffer.bytes {
            LEAdvertisingReport.Report(
                eventType: .connectableScannableUndirected,
                address: PeerAddress(DeviceAddress(0xF012_3456_789A, isRandom: true)),
                data: data.span.bytes,
                rssi: -50
            ).encodePacket(into: &$0)
        }
        #expect(packet.hexadecimal == "3e19020100019a78563412f00d02010603030d18050953776966ce")
    }

    @Test func extendedReportsGiveAllTheirFields() throws {
        let packet = bytes(
            "3e410d021300019a78563412f00100ff7fce0000000000000000000d02010603030d180509537769"
                + "66240000ef3207dc1b00030209f9b050000155443322114a020102"
        )
        guard case .leExtendedAdvertisingReport(let event) = try Event(decoding: packet.span.bytes) else {
            Issue.record("not recognised")
            return
        }
        var reports = event.reports
        guard let first = try reports.next() else {
            Issue.record("no first report")
            return
        }
        #expect(first.eventType == [.connectable, .scannable, .legacyPDU])
        #expect(first.eventType.dataStatus == .complete)
        #expect(first.address == PeerAddress(type: .random, value: 0xF012_3456_789A))
        #expect(first.primaryPHY == .le1M)
        #expect(first.secondaryPHY == .none)
        #expect(first.advertisingSID == 0xFF)
        #expect(first.txPower == 127)
        #expect(first.rssi == -50)
        #expect(first.periodicAdvertisingInterval == 0)
        #expect([UInt8](copying: first.data) == Self.data)
        guard let second = try reports.next() else {
            Issue.record("no second report")
            return
        }
        #expect(second.eventType.contains(.directed))
        #expect(second.eventType.dataStatus == .incompleteMoreToCome)
        #expect(second.eventType.with(.truncated).dataStatus == .truncated)
        #expect(second.address == PeerAddress(type: .public, value: 0x001B_DC07_32EF))
        #expect(second.primaryPHY == .leCoded)
        #expect(second.secondaryPHY == .le2M)
        #expect(second.advertisingSID == 9)
        #expect(second.txPower == -7)
        #expect(second.rssi == -80)
        #expect(second.periodicAdvertisingInterval == 0x0050)
        #expect(second.directAddress == PeerAddress(type: .random, value: 0x4A11_2233_4455))
        #expect([UInt8](copying: second.data) == [1, 2])
        let end = try reports.next() == nil
        #expect(end)
    }

    @Test func extendedReportIsWrittenAloneAsAnEvent() throws {
        let data = [UInt8](repeating: 0xAB, count: 229)
        let packet = PacketBuffer.bytes {
            LEExtendedAdvertisingReport.Report(
                eventType: EventType().with(.incompleteMoreToCome),
                address: .anonymous,
                secondaryPHY: .le2M,
                advertisingSID: 3,
                rssi: -1,
                data: data.span.bytes
            ).encodePacket(into: &$0)
        }
        #expect(packet.count == 2 + 255)
        #expect(
            Array(packet.prefix(28))
                == bytes("3eff0d012000ff000000000000010203" + "7fff0000" + "00000000000000" + "e5")
        )
        #expect(try walk(packet) == packet)
    }

    /// An event with too much data, the offset of the length of the data, and the length that fits.
    static let overlong: [([UInt8], Int, UInt8)] = {
        let data = [UInt8](repeating: 0xAB, count: 250)
        let address = PeerAddress(type: .random, value: 0xF012_3456_789A)
        return [
            (
                PacketBuffer.bytes {
                    LEAdvertisingReport.Report(
                        eventType: .scanResponse,
                        address: address,
                        data: data.span.bytes,
                        rssi: -50
                    ).encodePacket(into: &$0)
                },
                12,
                31
            ),
            (
                PacketBuffer.bytes {
                    LEExtendedAdvertisingReport.Report(
                        eventType: .scannable,
                        address: address,
                        rssi: -50,
                        data: data.span.bytes
                    ).encodePacket(into: &$0)
                },
                27,
                229
            ),
            (
                PacketBuffer.bytes {
                    LEPeriodicAdvertisingReport(
                        syncHandle: 1,
                        txPower: 127,
                        rssi: -50,
                        dataStatus: .complete,
                        data: data.span.bytes
                    ).encodePacket(into: &$0)
                },
                9,
                247
            ),
            (
                PacketBuffer.bytes {
                    LEPeriodicAdvertisingReportV2(
                        syncHandle: 1,
                        txPower: 127,
                        rssi: -50,
                        periodicEventCounter: 2,
                        subevent: 3,
                        dataStatus: .complete,
                        data: data.span.bytes
                    ).encodePacket(into: &$0)
                },
                12,
                244
            ),
        ]
    }()

    @Test(arguments: overlong)
    func dataThatDoesNotFitIsCutAndItsLengthFits(_ packet: [UInt8], _ offset: Int, _ length: UInt8) throws {
        #expect(packet[offset] == length)
        #expect(Int(packet[1]) == packet.count - 2)
        #expect(packet.count(where: { $0 == 0xAB }) == Int(length))
        #expect(try walk(packet) == packet)
    }

    private typealias EventType = LEExtendedAdvertisingReport.EventType

    @Test func directedReportGivesBothAddresses() throws {
        let packet = bytes("3e120b0101019a78563412f0fe55443322114ab0")
        guard case .leDirectedAdvertisingReport(let event) = try Event(decoding: packet.span.bytes) else {
            Issue.record("not recognised")
            return
        }
        var reports = event.reports
        let report = LEDirectedAdvertisingReport.Report(
            address: PeerAddress(type: .random, value: 0xF012_3456_789A),
            directAddress: PeerAddress(type: .unresolved, value: 0x4A11_2233_4455),
            rssi: -80
        )
        #expect(reports.next() == report)
        #expect(reports.next() == nil)
        #expect(PacketBuffer.bytes { report.encodePacket(into: &$0) } == packet)
    }

    @Test(
        arguments: [
            (0x00, false, false), (0x01, true, false), (0x02, false, true), (0x03, true, true), (0xFE, true, false),
        ] as [(UInt8, Bool, Bool)]
    )
    func everyAddressTypeIsKept(_ type: UInt8, _ isRandom: Bool, _ isResolved: Bool) throws {
        let packet = [0x3E, 0x0C, 0x02, 0x01, 0x00, type, 0x06, 0x05, 0x04, 0x03, 0x02, 0x41, 0x00, 0xC4] as [UInt8]
        guard case .leAdvertisingReport(let event) = try Event(decoding: packet.span.bytes) else {
            Issue.record("not recognised")
            return
        }
        var reports = event.reports
        guard let report = try reports.next() else {
            Issue.record("no report")
            return
        }
        #expect(report.address.type.rawValue == type)
        #expect(report.address.deviceAddress == DeviceAddress(0x4102_0304_0506, isRandom: isRandom))
        #expect(report.address.isResolvedIdentity == isResolved)
        #expect(try walk(packet) == packet)
    }

    @Test func anonymousAdvertiserHasNoAddress() {
        #expect(PeerAddress.anonymous.deviceAddress == nil)
        #expect(PeerAddress(type: AddressType(rawValue: 0x04), value: 1).deviceAddress == nil)
    }
}
