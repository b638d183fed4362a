// swift-format-ignore-file: AlwaysUseLowerCamelCase

import CoreBluetooth
import Foundation

class TiTanCentralViewController: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate, TerminalApp {
    var centralManager: CBCentralManager!
    var peripheral: CBPeripheral?
    var scannedDevices: [(device: CBPeripheral, rssi: NSNumber)] = []
    var discovererChars: [String: CBCharacteristic] = [:]

    let terminal: any Terminal

    init(terminal: any Terminal, options: [String: Any] = [:]) {
        self.terminal = terminal
        super.init()
        // Do any additional setup after loading the view, typically from a nib.
        centralManager = CBCentralManager(delegate: self, queue: nil, options: options)
    }

    func viewWillDisappear() {
        if centralManager.isScanning {
            centralManager.stopScan()
        }
    }

    func centralManagerDidUpdateState(_ central: CBCentralManager) {
        print("peripheralManagerDidUpdateState \(central.state.rawValue)")

        if central.state == .poweredOn {
            self.centralManager.scanForPeripherals(withServices: nil, options: nil)
        }
    }

    func centralManager(
        _ central: CBCentralManager,
        didDiscover peripheral: CBPeripheral,
        advertisementData: [String: Any],
        rssi RSSI: NSNumber
    ) {
        if let name = peripheral.name {
            if !checkIfExisted(name) {
                let tupleDeviceInfo = (device: peripheral, rssi: RSSI)
                self.scannedDevices.append(tupleDeviceInfo)
                reloadData()
            }
        }
    }

    private func checkIfExisted(_ name: String) -> Bool {
        return scannedDevices.contains { $0.device.name == name }
    }

    /// Shows the newest row of the table.
    private func reloadData() {
        guard let row = scannedDevices.last else { return }
        print("Device \(row.device.name ?? ""), RSSI \(row.rssi)")
    }

    /// The user has chosen a row.
    func didSelectRow(named name: String) {
        guard let row = scannedDevices.first(where: { $0.device.name == name }) else { return }
        centralManager.connect(row.device, options: nil)
    }

    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        self.centralManager.stopScan()
        peripheral.delegate = self
        self.peripheral = peripheral
        self.peripheral?.discoverServices(nil)
        print("Connected")
    }

    func centralManager(_ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: Error?) {
        // Fail to connect peripheral
        print("didFailToConnect \(error?.localizedDescription ?? "")")
        scanAgain(for: peripheral)
    }

    func centralManager(
        _ central: CBCentralManager,
        didDisconnectPeripheral peripheral: CBPeripheral,
        error: Error?
    ) {
        print("Disconnected \(error?.localizedDescription ?? "")")
        scanAgain(for: peripheral)
    }

    /// Removes a device from the table and scans for it again.
    private func scanAgain(for peripheral: CBPeripheral) {
        scannedDevices.removeAll { $0.device == peripheral }
        if self.peripheral == peripheral {
            self.peripheral = nil
            discovererChars = [:]
        }
        if centralManager.state == .poweredOn {
            centralManager.scanForPeripherals(withServices: nil, options: nil)
        }
    }

    func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: Error?) {
        if let err = error {
            print("didDiscoverServices fail \(err.localizedDescription)")
            return
        }

        // Start discovering all chars
        for service in (peripheral.services)! {
            peripheral.discoverCharacteristics(nil, for: service)
        }
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didDiscoverCharacteristicsFor service: CBService,
        error: Error?
    ) {
        if let error = error {
            print("didDiscoverCharacteristicsFor Error \(error.localizedDescription)")
            return
        }
        for char in service.characteristics! {
            print("Characteristic \(char.uuid.uuidString)")
            discovererChars[char.uuid.uuidString] = char
            if char.properties.contains(.notify) {
                peripheral.setNotifyValue(true, for: char)
            }
        }
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didUpdateNotificationStateFor characteristic: CBCharacteristic,
        error: Error?
    ) {
        if let err = error {
            print("Notify \(characteristic.uuid.uuidString) with error \(err.localizedDescription)")
            return
        }
        print("Notify \(characteristic.uuid.uuidString) \(characteristic.isNotifying)")
    }

    func readValue() {
        guard let characteristic = discovererChars[kCharacteristicUUID] else { return }
        self.peripheral?.readValue(for: characteristic)
    }

    func writeValue(_ text: String) {
        guard let characteristic = discovererChars[kCharacteristicUUID] else { return }
        self.peripheral?.writeValue(Data(text.utf8), for: characteristic, type: .withResponse)
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didUpdateValueFor characteristic: CBCharacteristic,
        error: Error?
    ) {
        if let err = error {
            print("Did update value with error \(err.localizedDescription)")
            return
        }
        guard let data = characteristic.value, let value = String.init(data: data, encoding: .utf8) else { return }
        print("Value \(value)")
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didWriteValueFor characteristic: CBCharacteristic,
        error: Error?
    ) {
        if let err = error {
            print("Did write value with error \(err.localizedDescription)")
            return
        }
        print("Did write value")
    }
}
