import BLE
import BluetoothSensors
import Foundation
import NIOCore
import Testing

@testable import GatewayCore

struct EventLogTests {
    @Test func repeatedEventIsCounted() {
        let log = EventLog()
        log.record(.adapterFailed, "hci0", "no device")
        log.record(.adapterFailed, "hci1", "no device")
        log.record(.adapterFailed, "hci0", "no device")
        #expect(log.events.map(\.subject) == ["hci1", "hci0"])
        #expect(log.events.map(\.count) == [1, 2])
        #expect(log.events.map(\.number) == [2, 3])
        #expect(log.count(of: .adapterFailed) == 3)
        #expect(log.count(of: .adapterFailed, adapter: "hci0") == 2)
    }

    @Test func numberOfEventsIsLimited() {
        let log = EventLog()
        for number in 0..<1000 { log.record(.clientDisconnected, "10.0.0.\(number)") }
        #expect(log.events.count == EventLog.limit)
        #expect(log.events.last?.subject == "10.0.0.999")
        #expect(log.count(of: .clientDisconnected) == 1000)
    }

    @Test func textsAreShortAndPrintable() {
        let log = EventLog()
        log.record(.deviceFailed, "a\u{1B}[2J", String(repeating: "x", count: 5000))
        #expect(log.events[0].subject == "a\\u{1B}[2J")
        #expect(log.events[0].detail?.count == EventLog.textLimit)
    }
}

struct RecencyTableTests {
    @Test func leastRecentlyUsedEntryIsRemoved() {
        var table = RecencyTable<String, Int>(limit: 3)
        for (value, key) in ["a", "b", "c"].enumerated() { table.insert(value, for: key) }
        #expect(table.use("a") { $0 += 10 } != nil)
        table.insert(3, for: "d")
        #expect(table.values == [3, 10, 2])
        #expect(table.use("b") { _ in } == nil)
        #expect(table.evictedCount == 1)
    }

    @Test func tableAgreesWithASimpleOne() {
        var table = RecencyTable<Int, Int>(limit: 8)
        var simple: [(key: Int, value: Int)] = []
        var generator = SystemRandomNumberGenerator()
        for step in 0..<20_000 {
            let key = Int.random(in: 0..<12, using: &generator)
            let index = simple.firstIndex { $0.key == key }
            switch Int.random(in: 0..<3, using: &generator) {
            case 0 where index == nil:
                if simple.count == 8 { simple.removeLast() }
                simple.insert((key, step), at: 0)
                table.insert(step, for: key)
            case 1:
                #expect(table.remove(key) == index.map { simple.remove(at: $0).value })
            default:
                #expect(table.use(key) { $0 } == index.map { simple[$0].value })
                if let index { simple.insert(simple.remove(at: index), at: 0) }
            }
            guard table.values == simple.map(\.value) else {
                Issue.record("step \(step): \(table.values) instead of \(simple)")
                return
            }
        }
    }
}

struct SignalHistoryTests {
    @Test func slotHasTheMean() {
        var history = SignalHistory(slot: 7)
        for rssi in [-60, -70] { history.record(rssi, slot: 7) }
        history.record(-80, slot: 9)
        #expect(history.means(count: 4, upTo: 10) == [-65, nil, -80, nil])
    }

    @Test func oldSlotsAreForgotten() {
        var history = SignalHistory(slot: 0)
        history.record(-50, slot: 0)
        #expect(history.means(count: 500, upTo: 119).first == -50)
        #expect(history.means(count: 500, upTo: 120).allSatisfy { $0 == nil })
        history.record(-60, slot: 100_000)
        let means = history.means(count: 120, upTo: 100_000)
        #expect(means.count == 120 && means.last == -60 && means.dropLast().allSatisfy { $0 == nil })
    }

    @Test func valuesOutOfRangeAreClamped() {
        var history = SignalHistory(slot: 0)
        history.record(127, slot: 0)
        history.record(-1000, slot: 1)
        history.record(-50, slot: 0)
        #expect(history.means(count: 2, upTo: 1) == [20, -88])
    }
}

struct ReceivedDevicesTests {
    private static let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    private let devices = ReceivedDevices()

    private func receive(_ number: UInt64, after seconds: Int64 = 0, name: String? = nil) {
        let address = DeviceAddress(number, isRandom: false)
        devices.receive(address, rssi: -50, by: 0, at: Self.start + .seconds(seconds)) { name }
    }

    private func observe(_ number: UInt64, _ format: SensorFormat = .bthome, value: Double = 1) {
        devices.observe(
            SensorObservation(
                time: Date(timeIntervalSince1970: 0),
                gateway: "test",
                address: DeviceAddress(number, isRandom: false),
                report: SensorReport(
                    format: format,
                    readings: [SensorReading(.temperature, .number(value), unit: "°C")]
                )
            ),
            at: Self.start
        )
    }

    @Test func deviceHasItsNameSignalAndReadings() {
        receive(1, name: "Hall\u{202E}")
        receive(1, after: 5)
        observe(1, value: 20)
        observe(1, value: 21)
        let snapshot = devices.snapshot(slotCount: 3, at: Self.start + .seconds(7))
        let device = snapshot.devices[0]
        #expect(device.name == "Hall\\u{202E}")
        #expect(device.age == 2 && device.advertisementCount == 2 && device.rssi == -50)
        #expect(device.signal == [nil, -50, -50])
        #expect(device.reports.map(\.report.readings) == [[SensorReading(.temperature, .number(21), unit: "°C")]])
        #expect(snapshot.reportCounts == [.bthome: 2])
    }

    /// Devices with random addresses are received in a crowd; sensors keep their places.
    @Test func crowdDoesNotDisplaceSensors() {
        for number in 0..<10 {
            receive(UInt64(number))
            observe(UInt64(number))
        }
        for number in 1000..<5000 { receive(UInt64(number)) }
        let snapshot = devices.snapshot(slotCount: 0, at: Self.start)
        #expect(devices.counts == (10, ReceivedDevices.otherLimit))
        #expect(snapshot.devices.prefix(10).map(\.address.value).sorted() == Array(0..<10))
        #expect(snapshot.forgottenCount == UInt64(4000 - ReceivedDevices.otherLimit))
    }

    @Test func numberOfSensorsAndFormatsIsLimited() {
        for number in 0..<1000 {
            receive(UInt64(number))
            observe(UInt64(number), SensorFormat(rawValue: "format \(number)"))
        }
        #expect(devices.counts == (ReceivedDevices.sensorLimit, 0))
        for format in 0..<20 { observe(999, SensorFormat(rawValue: "other \(format)")) }
        let snapshot = devices.snapshot(slotCount: 0, at: Self.start)
        #expect(snapshot.devices.first { $0.address.value == 999 }?.reports.count == ReceivedDevices.formatLimit)
        #expect(snapshot.reportCounts.count == 64)
    }

    @Test func reportOfAnUnknownDeviceIsOnlyCounted() {
        observe(1)
        #expect(devices.counts == (0, 0))
        #expect(devices.snapshot(slotCount: 0, at: Self.start).reportCounts == [.bthome: 1])
    }
}
