import BLE
import BluetoothTesting
import BluetoothTypes
import Testing

@testable import BLETool
@testable import BluetoothHost

@Suite("Values and advertisements that were dropped")
struct DroppedElementsTests {
    private func value(_ octet: UInt8, droppedBefore: Int = 0) -> HandleValue {
        var value = HandleValue(handle: 6, value: [octet], isIndication: false, time: Instant(nanoseconds: 0))
        value.droppedBefore = droppedBefore
        return value
    }

    @Test("ble subscribe prints their number before the next value, and does not count them", arguments: [false, true])
    func numberOfDroppedValuesIsPrinted(asJSON: Bool) throws {
        let lines = PrintedLines()
        let printer = DeliveryPrinter(characteristic: "FFE1", format: nil, asJSON: asJSON) { lines.append($0) }
        #expect(try printer.print(value(1)) == 1)
        #expect(try printer.print(value(2, droppedBefore: 3)) == 2)
        #expect(lines.all.count == 3 && printer.count == 2)
        #expect(lines.all[1] == (asJSON ? #"{"event":"eventsDropped","count":3}"# : "3 values were dropped"))
    }

    @Test("ble scan prints their number before the next advertisement", arguments: [false, true])
    func numberOfDroppedAdvertisementsIsPrinted(asJSON: Bool) throws {
        let advertisement: Advertisement = try World.run { world in
            let tag = try await world.device("tag").openAdapter()
            let advertising = try await tag.peripheral.startAdvertising(AdvertisementConfiguration())
            defer { withExtendedLifetime(advertising) {} }
            let scanner = try await world.device("ble").openAdapter()
            for try await advertisement in scanner.central.scan() { return advertisement }
            throw BLEError.closed
        }
        let lines = PrintedLines()
        var printer = AdvertisementPrinter(reader: nil, keys: [:], asJSON: asJSON) { lines.append($0) }
        try printer.print(advertisement)
        var next = advertisement
        next.droppedBefore = 1
        try printer.print(next)
        #expect(lines.all.count == 3)
        #expect(lines.all[1] == (asJSON ? #"{"event":"eventsDropped","count":1}"# : "1 advertisement was dropped"))
    }
}
