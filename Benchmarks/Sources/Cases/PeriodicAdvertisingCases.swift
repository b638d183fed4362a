import BLE
import BLEByteCoding
import BluetoothTesting

extension BenchmarkCase {
    /// Reports of a periodic advertising train into the sequence of the module BLE: whole ones, and data in three
    /// fragments.
    static var periodicAdvertising: [BenchmarkCase] {
        [("20", [20]), ("240", [240]), ("600-in-fragments", [240, 240, 120])].map { name, lengths in
            BenchmarkCase("periodic/report-\(name)", operations: 100_000) { operations, meter in
                let radio = NullRadio(features: [.extendedAdvertising, .periodicAdvertising])
                try radio.run {
                    let adapter = try await radio.openAdapter { $0.scanSilenceTimeout = nil }
                    let taken = Taken()
                    let consumer = Task(executorPreference: radio.taskExecutor) {
                        for try await event in adapter.central.periodicAdvertising(request) {
                            if case .received = event { taken.add() }
                        }
                    }
                    await radio.settle()
                    radio.inject(established.rawSpan)
                    let reports = lengths.enumerated().map { report($1, isLast: $0 + 1 == lengths.count) }
                    for measured in [64, operations] {
                        if measured == operations { meter.start() }
                        for number in 1...measured {
                            for report in reports { radio.inject(report.rawSpan) }
                            // The app runs after several reports.
                            if number.isMultiple(of: 64) || number == measured { await radio.settle() }
                        }
                    }
                    meter.stop()
                    guard taken.count == 64 + operations else {
                        throw MissingResult("\(64 + operations) reports, but \(taken.count)")
                    }
                    consumer.cancel()
                }
                radio.close()
            }
        }
    }

    private static let request = PeriodicTrainRequest(
        address: DeviceAddress(0x5045_0000_0000, isRandom: false),
        sid: 1
    )

    /// LE Periodic Advertising Sync Established, with the handle 0x0001.
    private static let established: [UInt8] =
        [
            0x04, 0x3E, 0x10, 0x0E, 0x00, 0x01, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x45, 0x50, 0x01, 0x18, 0x00,
            0x05,
        ]

    /// LE Periodic Advertising Report.
    private static func report(_ length: Int, isLast: Bool) -> [UInt8] {
        let data = [UInt8(length - 1), 0xFF, 0xFF, 0xFF] + [UInt8](repeating: 7, count: length - 4)
        return [0x04, 0x3E, UInt8(8 + length), 0x0F, 0x01, 0x00, 0x7F, 0xC0, 0xFF, isLast ? 0 : 1, UInt8(length)] + data
    }
}
