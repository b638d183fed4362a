import BLE
import BluetoothTesting
import CoreBluetooth
import Foundation
import Synchronization

extension BenchmarkCase {
    /// Work of the module `CoreBluetooth`, besides scanning.
    static var coreBluetooth: [BenchmarkCase] { [notificationToDelegate] }

    /// Notifications of a host with the module `BLE` to a delegate on its queue.
    private static var notificationToDelegate: BenchmarkCase {
        BenchmarkCase("gatt/core-bluetooth-notification", operations: 50_000, budget: Budget(allocations: 5)) {
            operations,
            meter in
            let radio = NullRadio()
            try radio.run(limit: .seconds(86_400)) {
                let server = try await radio.openAdapter()
                let client = try await radio.openAdapter { $0.scanSilenceTimeout = nil }
                let service = ServiceDefinition(
                    uuid: "FFE0",
                    characteristics: [
                        CharacteristicDefinition(
                            uuid: "FFE1",
                            properties: [.read, .notify],
                            permissions: .read,
                            value: .stored([])
                        )
                    ]
                )
                let published = try await server.peripheral.publish([service])
                let handle = published[0].characteristics[0].valueHandle
                let advertising = try await server.peripheral.startAdvertising(AdvertisementConfiguration())
                let queue = DispatchQueue(label: "delegate")
                let subscriber = Subscriber()
                let manager = CBCentralManager(
                    delegate: subscriber,
                    queue: queue,
                    options: [CBCentralManagerOptionAdapterKey: client]
                )
                // The manager's queue is outside of the loop, so both take turns.
                func settle() async {
                    await radio.settle()
                    queue.sync {}
                }
                while !subscriber.isScanning { await settle() }
                await settle()
                radio.inject(([0x04] + ReportBytes.legacy(number: 1, data: ReportBytes.data)).rawSpan, toHost: 1)
                while !subscriber.isSubscribed { await settle() }
                let value = [UInt8](repeating: 7, count: 20)
                func notify(_ count: Int) async throws {
                    for number in 1...count {
                        try await server.peripheral.notify(value, of: handle)
                        if number % 512 == 0 { await settle() }
                    }
                    await settle()
                }
                try await notify(64)
                let before = subscriber.count
                meter.start()
                try await notify(operations)
                meter.stop()
                guard subscriber.count - before == operations else {
                    throw MissingResult("\(operations) values, but \(subscriber.count - before)")
                }
                withExtendedLifetime((manager, advertising)) {}
            }
            radio.close()
        }
    }
}

/// Connects to the first peripheral that it discovers, and subscribes to its first characteristic.
private final class Subscriber: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate, Sendable {
    private let peripheral = Mutex<CBPeripheral?>(nil)
    private let scanning = Atomic(false)
    private let subscribed = Atomic(false)
    private let received = Atomic(0)

    var isScanning: Bool { scanning.load(ordering: .acquiring) }
    var isSubscribed: Bool { subscribed.load(ordering: .acquiring) }
    /// The number of values.
    var count: Int { received.load(ordering: .acquiring) }

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
        central.stopScan()
        self.peripheral.withLock { $0 = peripheral }
        peripheral.delegate = self
        central.connect(peripheral)
    }

    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        peripheral.discoverServices([CBUUID(string: "FFE0")])
    }

    func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
        for service in peripheral.services ?? [] { peripheral.discoverCharacteristics(nil, for: service) }
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didDiscoverCharacteristicsFor service: CBService,
        error: (any Error)?
    ) {
        for characteristic in service.characteristics ?? [] { peripheral.setNotifyValue(true, for: characteristic) }
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didUpdateNotificationStateFor characteristic: CBCharacteristic,
        error: (any Error)?
    ) {
        subscribed.store(true, ordering: .releasing)
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didUpdateValueFor characteristic: CBCharacteristic,
        error: (any Error)?
    ) {
        received.add(1, ordering: .releasing)
    }
}
