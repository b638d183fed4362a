// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The names of parameters are those of typical apps.

import CoreBluetooth

// A central as apps write it: nothing here depends on this not being Apple's framework. Compiled in both language
// modes.

let heartRateService = CBUUID(string: "180D")
let heartRateMeasurement = CBUUID(string: "2A37")

/// Owns its manager and is the delegate of everything.
final class CentralApp: NSObject {
    var manager: CBCentralManager!
    var discovered: CBPeripheral?
    var measurement: CBCharacteristic?
    var states: [String] = []
    var onState: ((CBManagerState) -> Void)?

    override init() {
        super.init()
        manager = CBCentralManager(
            delegate: self,
            queue: DispatchQueue(label: "central"),
            options: [CBCentralManagerOptionShowPowerAlertKey: true]
        )
    }

    init(queue: DispatchQueue?) {
        super.init()
        manager = CBCentralManager(delegate: self, queue: queue)
    }

    func write(_ text: String) {
        guard let measurement = measurement, let discovered = discovered, let value = text.data(using: .utf8),
            manager.state == .poweredOn
        else { return }
        discovered.writeValue(value, for: measurement, type: .withoutResponse)
    }
}

extension CentralApp: CBCentralManagerDelegate {
    func centralManagerDidUpdateState(_ central: CBCentralManager) {
        switch central.state {
        case .poweredOff: states.append("poweredOff")
        case .poweredOn:
            states.append("poweredOn")
            central.scanForPeripherals(
                withServices: [heartRateService],
                options: [CBCentralManagerScanOptionAllowDuplicatesKey: NSNumber(value: true)]
            )
        case .resetting: states.append("resetting")
        case .unauthorized: states.append("unauthorized")
        case .unknown: states.append("unknown")
        case .unsupported: states.append("unsupported")
        }
        onState?(central.state)
    }

    func centralManager(
        _ central: CBCentralManager,
        didDiscover peripheral: CBPeripheral,
        advertisementData: [String: Any],
        rssi RSSI: NSNumber
    ) {
        guard RSSI.intValue > -90, RSSI.intValue != 127 else { return }
        discovered = peripheral
        discovered?.delegate = self
        central.connect(peripheral)
    }

    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        central.stopScan()
        peripheral.discoverServices(nil)
    }

    func centralManager(_ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: Error?) {
        if let error = error { print("failed: \(error.localizedDescription)") }
    }

    func centralManager(_ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: Error?) {
        if peripheral.identifier == discovered?.identifier { discovered = nil }
        if let error = error as? CBError, error.code == .connectionTimeout { central.connect(peripheral, options: nil) }
    }
}

extension CentralApp: CBPeripheralDelegate {
    func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: Error?) {
        for service in peripheral.services ?? [] {
            peripheral.discoverCharacteristics([heartRateMeasurement], for: service)
        }
    }

    func peripheral(_ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: Error?) {
        for characteristic in service.characteristics! {
            if characteristic.uuid == heartRateMeasurement { measurement = characteristic }
            if characteristic.properties.contains(.notify) { peripheral.setNotifyValue(true, for: characteristic) }
            if characteristic.properties.contains(.read) { peripheral.readValue(for: characteristic) }
        }
    }

    func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: Error?) {
        guard error == nil, let value = characteristic.value else { return }
        print("\(characteristic.uuid): \([UInt8](value))")
    }
}

/// A delegate with only the required method.
final class StateObserver: NSObject, CBCentralManagerDelegate {
    func centralManagerDidUpdateState(_ central: CBCentralManager) {}
}

/// The usual view model of Swift 6: isolated to the main actor, its manager on the main queue.
@MainActor
final class ViewModel: NSObject, @preconcurrency CBCentralManagerDelegate {
    var states: [CBManagerState] = []
    var names: [UUID: String] = [:]

    func centralManagerDidUpdateState(_ central: CBCentralManager) {
        states.append(central.state)
    }

    func centralManager(
        _ central: CBCentralManager,
        didDiscover peripheral: CBPeripheral,
        advertisementData: [String: Any],
        rssi: NSNumber
    ) {
        names[peripheral.identifier] =
            peripheral.name ?? advertisementData[CBAdvertisementDataLocalNameKey] as? String ?? "?"
    }
}

/// A wrapper with continuations, as async apps write it.
final class Scanner: NSObject, CBCentralManagerDelegate, @unchecked Sendable {
    // @unchecked: the manager is created before its queue calls, and only these calls follow.

    private var manager: CBCentralManager!
    private var continuation: CheckedContinuation<CBManagerState, Never>?

    /// Returns the first state that is reported.
    func state(of adapter: String) async -> CBManagerState {
        await withCheckedContinuation { continuation in
            self.continuation = continuation
            manager = CBCentralManager(
                delegate: self,
                queue: .global(qos: .userInitiated),
                options: [CBCentralManagerOptionAdapterKey: adapter]
            )
        }
    }

    func centralManagerDidUpdateState(_ central: CBCentralManager) {
        continuation?.resume(returning: central.state)
        continuation = nil
    }
}

/// Counts the calls that it receives, as test doubles do.
final class CountingManager: CBCentralManager, @unchecked Sendable {
    // @unchecked: inherited from the manager; the count is used on one thread only.

    var scans = 0

    override func scanForPeripherals(withServices serviceUUIDs: [CBUUID]?, options: [String: Any]? = nil) {
        scans += 1
        super.scanForPeripherals(withServices: serviceUUIDs, options: options)
    }
}

/// Retries by a timer without keeping itself alive.
final class Reconnector: NSObject, CBCentralManagerDelegate {
    private lazy var manager = CBCentralManager(delegate: self, queue: nil)
    private var pending: [UUID: DispatchWorkItem] = [:]

    func centralManagerDidUpdateState(_ central: CBCentralManager) {}

    func connect(_ peripheral: CBPeripheral) {
        manager.connect(peripheral, options: [CBConnectPeripheralOptionNotifyOnDisconnectionKey: true])
        let timeout = DispatchWorkItem { [weak self] in
            guard let self = self, peripheral.state != .connected else { return }
            self.manager.cancelPeripheralConnection(peripheral)
        }
        pending[peripheral.identifier] = timeout
        DispatchQueue.main.asyncAfter(deadline: .now() + 5, execute: timeout)
    }

    func centralManager(
        _ central: CBCentralManager,
        didDisconnectPeripheral peripheral: CBPeripheral,
        timestamp: CFAbsoluteTime,
        isReconnecting: Bool,
        error: Error?
    ) {
        if !isReconnecting, timestamp <= CFAbsoluteTimeGetCurrent() { pending[peripheral.identifier]?.cancel() }
    }
}
