import BLE
import BLEByteCoding
import BluetoothTesting
import CCounters
import CoreBluetooth
import Dispatch
import Foundation
import Synchronization

extension BenchmarkCase {
    /// The bytes of a thousand advertisers' reports in, advertisements out.
    static var scanning: [BenchmarkCase] {
        let forms: [(String, @Sendable (Int, UInt8) -> [UInt8])] = [
            ("legacy", { legacyReport($0, change: $1) }), ("extended", { extendedReport($0, change: $1) }),
        ]
        return forms.flatMap { name, report in
            [
                stream("scan/\(name)/duplicate", delivered: 0, budget: .duplicate) { number, _ in report(number, 0) },
                stream("scan/\(name)/changed", delivered: 1, budget: .delivered, report: report),
                stream(
                    "scan/\(name)/every-report",
                    options: ScanOptions(reportsDuplicates: true),
                    delivered: 1,
                    budget: .delivered
                ) { number, _ in report(number, 0) },
                stream(
                    "scan/\(name)/filtered-by-service",
                    options: ScanOptions(serviceUUIDs: ["180D"]),
                    delivered: 1,
                    budget: .delivered,
                    report: report
                ),
                stream(
                    "scan/\(name)/filtered-out",
                    options: ScanOptions(serviceUUIDs: ["FEAA"]),
                    delivered: 0,
                    report: report
                ),
            ]
        } + [crowd, memory, delegate]
    }

    static let advertisers = 1000

    private static func legacyReport(_ number: Int, change: UInt8) -> [UInt8] {
        var data = ReportBytes.data
        data[13] = change
        return [4] + ReportBytes.legacy(number: number, data: data)
    }

    private static func extendedReport(_ number: Int, change: UInt8) -> [UInt8] {
        var data = ReportBytes.longData
        data[13] = change
        return [4] + ReportBytes.extended(number: number, data: data)
    }

    /// Reports into the stream of the module BLE.
    ///
    /// - Parameters:
    ///   - advertisers: number of advertisers.
    ///   - contents: number of different contents of each advertiser.
    ///   - delivered: number of advertisements for one report: 0 or 1.
    ///   - report: the packet of an advertiser, and which of its contents.
    private static func stream(
        _ name: String,
        options: ScanOptions = ScanOptions(),
        advertisers: Int = BenchmarkCase.advertisers,
        contents: Int = 8,
        delivered: Int,
        budget: Budget = Budget(),
        report: @escaping @Sendable (Int, UInt8) -> [UInt8]
    ) -> BenchmarkCase {
        BenchmarkCase(name, operations: 200_000, countedOperations: 4000, budget: budget) { operations, meter in
            let radio = NullRadio()
            let packets = Packets(advertisers, contents: contents, report)
            try radio.run {
                let adapter = try await radio.openAdapter { $0.scanSilenceTimeout = nil }
                let taken = Taken()
                let consumer = Task(executorPreference: radio.taskExecutor) {
                    for try await _ in adapter.central.scan(options) { taken.add() }
                }
                await radio.settle()
                // The scan knows the advertisers, as many as it remembers.
                await packets.inject(2 * advertisers, into: radio)
                await radio.settle()
                let before = taken.count
                meter.start()
                await packets.inject(operations, from: 2 * advertisers, into: radio)
                await radio.settle()
                meter.stop()
                let count = taken.count - before
                guard count == operations * delivered else {
                    throw MissingResult("\(operations * delivered) advertisements, but \(count)")
                }
                consumer.cancel()
            }
            radio.close()
        }
    }

    /// Reports of many more advertisers than a scan remembers, in turn: each is reported as new.
    private static var crowd: BenchmarkCase {
        stream(
            "scan/legacy/new-of-100000",
            advertisers: 100_000,
            contents: 1,
            delivered: 1,
            budget: .delivered
        ) { number, _ in legacyReport(number, change: 0) }
    }

    /// The memory that a scan uses for an advertiser.
    private static var memory: BenchmarkCase {
        BenchmarkCase("scan/memory", operations: advertisers, countedOperations: advertisers) { operations, meter in
            let radio = NullRadio()
            let packets = Packets(operations) { legacyReport($0, change: $1) }
            try radio.run {
                let adapter = try await radio.openAdapter { $0.scanSilenceTimeout = nil }
                let consumer = Task(executorPreference: radio.taskExecutor) {
                    for try await _ in adapter.central.scan() {}
                }
                await radio.settle()
                await packets.inject(1, into: radio)
                await radio.settle()
                let before = heap_bytes_in_use()
                meter.start()
                await packets.inject(operations, from: 1, into: radio)
                await radio.settle()
                meter.stop()
                meter.tell("bytes per advertiser", (Double(heap_bytes_in_use()) - Double(before)) / Double(operations))
                consumer.cancel()
            }
            radio.close()
        }
    }

    /// Reports to a Core Bluetooth delegate on its queue.
    private static var delegate: BenchmarkCase {
        BenchmarkCase("scan/core-bluetooth-delegate", operations: 20_000, countedOperations: 1000) {
            operations,
            meter in
            let radio = NullRadio()
            let packets = Packets(advertisers) { legacyReport($0, change: $1) }
            try radio.run {
                let adapter = try await radio.openAdapter { $0.scanSilenceTimeout = nil }
                let queue = DispatchQueue(label: "delegate")
                let delegate = Delegate()
                let manager = CBCentralManager(
                    delegate: delegate,
                    queue: queue,
                    options: [CBCentralManagerOptionAdapterKey: adapter]
                )
                // The manager's queue is outside of the loop, so both take turns.
                while !delegate.isScanning { await radio.settle() }
                await radio.settle()
                // The manager drops discoveries that its queue does not take in time.
                await packets.inject(2 * advertisers, into: radio) { queue.sync {} }
                queue.sync {}
                let before = delegate.count
                meter.start()
                await packets.inject(operations, from: 2 * advertisers, into: radio) { queue.sync {} }
                queue.sync {}
                meter.stop()
                let count = delegate.count - before
                guard count == operations else {
                    throw MissingResult("\(operations) discoveries, but \(count)")
                }
                manager.stopScan()
                await radio.settle()
            }
            radio.close()
        }
    }
}

extension BenchmarkCase.Budget {
    fileprivate static let delivered = BenchmarkCase.Budget(allocations: 2, rate: 500_000)
    fileprivate static let duplicate = BenchmarkCase.Budget(allocations: 0, rate: 500_000)
}

/// The reports of advertisers, each in several contents.
private struct Packets: Sendable {
    /// Number of reports that a controller delivers at once.
    private static let batch = 64

    private let packets: [[UInt8]]
    private let advertisers: Int

    init(_ advertisers: Int, contents: Int = 8, _ report: (Int, UInt8) -> [UInt8]) {
        self.advertisers = advertisers
        packets = (0..<advertisers * contents).map { index in
            report(index % advertisers, UInt8(index / advertisers))
        }
    }

    /// Delivers the given number of reports to the host, in batches. The app runs after each batch.
    ///
    /// - Parameter pause: called after every eighth batch. An app with its own queue can use it to catch up.
    func inject(
        _ count: Int,
        from first: Int = 0,
        into radio: NullRadio,
        pausing pause: () -> Void = {}
    ) async {
        for index in first..<first + count {
            let packet = packets[index % packets.count]
            radio.inject(packet.rawSpan)
            if index % Packets.batch == 0 { await Task.yield() }
            if index % (8 * Packets.batch) == 0 { pause() }
        }
    }
}

/// Counts what an app takes from a sequence.
final class Taken: Sendable {
    private let value = Atomic(0)
    var count: Int { value.load(ordering: .relaxed) }
    func add() { value.add(1, ordering: .relaxed) }
}

private final class Delegate: NSObject, CBCentralManagerDelegate, Sendable {
    private let discovered = Atomic(0)
    private let scanning = Atomic(false)

    var count: Int { discovered.load(ordering: .relaxed) }
    var isScanning: Bool { scanning.load(ordering: .acquiring) }

    func centralManagerDidUpdateState(_ central: CBCentralManager) {
        guard central.state == .poweredOn else { return }
        central.scanForPeripherals(withServices: nil)
        scanning.store(true, ordering: .releasing)
    }

    func centralManager(
        _ central: CBCentralManager,
        didDiscover peripheral: CBPeripheral,
        advertisementData: [String: Any],
        rssi: NSNumber
    ) {
        discovered.add(1, ordering: .relaxed)
    }
}
