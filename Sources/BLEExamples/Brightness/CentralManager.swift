// swift-format-ignore-file: AlwaysUseLowerCamelCase

import CoreBluetooth
import Foundation

class CentralManager: NSObject, TerminalApp {
    // MARK: - Properties
    var manager: CBCentralManager!
    var discoveredPeripheral: CBPeripheral?
    var messageCharacteristic: CBCharacteristic?

    weak var delegate: CentralViewControllerDelegate?
    let terminal: any Terminal

    var deviceBroadcast: String {
        return "Central Device"
    }

    var isScanning: Bool {
        return manager.isScanning
    }

    // MARK: - Initializer
    init(terminal: any Terminal, options: [String: Any]) {
        self.terminal = terminal
        super.init()

        var options = options
        options[CBCentralManagerOptionShowPowerAlertKey] = true
        manager = CBCentralManager(delegate: self, queue: nil, options: options)
    }

    // MARK: - Methods
    private func scan() {
        manager.scanForPeripherals(withServices: [CBUUID.init(string: DEVICE_UUID)], options: nil)

        delegate?.updateStatus(.searching)
    }

    /// Forgets a peripheral that is not connected any more, and scans for it again. A new scan reports it even if an
    /// earlier one has.
    private func scanAgain(for peripheral: CBPeripheral) {
        guard peripheral.identifier == discoveredPeripheral?.identifier else {
            return
        }

        discoveredPeripheral = nil
        messageCharacteristic = nil

        if manager.state == .poweredOn {
            scan()
        } else {
            delegate?.updateStatus(.disconnected)
        }
    }

    func stopScan() {
        manager.stopScan()
    }

    func sendMessage(_ message: String) {
        if let messageCharacteristic = messageCharacteristic, let discoveredPeripheral = discoveredPeripheral,
            let value = message.data(using: .utf8), manager.state == .poweredOn
        {
            discoveredPeripheral.writeValue(value, for: messageCharacteristic, type: .withoutResponse)

            print("Send update message \(value)")
        }
    }
}

// MARK: -
extension CentralManager: CBCentralManagerDelegate {
    // MARK: - CBCentralManagerDelegate
    func centralManagerDidUpdateState(_ central: CBCentralManager) {
        // The connections of the time before have ended.
        discoveredPeripheral = nil
        messageCharacteristic = nil

        switch central.state {
        case .poweredOff:
            print("poweredOff")
        case .poweredOn:
            print("poweredOn")

            scan()
        case .resetting:
            print("resetting")
        case .unauthorized:
            print("unauthorized")
        case .unknown:
            print("unknown")
        case .unsupported:
            print("unsupported")

            let title = NSLocalizedString(
                "PeripheralManagerState.unsupported.Title",
                value: "Unsupported",
                comment: ""
            )
            let message = NSLocalizedString(
                "PeripheralManagerState.unsupported.Message",
                value: "Your device does not support Bluetooth.",
                comment: ""
            )

            delegate?.showMessage(title: title, message: message)
        }
    }

    func centralManager(
        _ central: CBCentralManager,
        didDiscover peripheral: CBPeripheral,
        advertisementData: [String: Any],
        rssi RSSI: NSNumber
    ) {
        print("Discovered: \(peripheral.name ?? "nil") (\(peripheral.identifier))")

        discoveredPeripheral = peripheral
        discoveredPeripheral?.delegate = self

        manager.connect(discoveredPeripheral!, options: nil)
    }

    func centralManager(_ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: Error?) {
        if let error = error {
            print("Error on didFailToConnect: \(error.localizedDescription)")
        } else {
            print("Erro on connect to: \(peripheral.name ?? "nil") (\(peripheral.identifier))")
        }

        scanAgain(for: peripheral)
    }

    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        manager.stopScan()

        if let name = peripheral.name {
            delegate?.updateConnected(name)
        }

        discoveredPeripheral?.discoverServices(nil)

        delegate?.updateStatus(.connected)
    }

    func centralManager(
        _ central: CBCentralManager,
        didDisconnectPeripheral peripheral: CBPeripheral,
        error: Error?
    ) {
        if let error = error {
            print("Error on didDisconnectPeripheral: \(error.localizedDescription)")
        }

        scanAgain(for: peripheral)
    }
}

// MARK: -
extension CentralManager: CBPeripheralDelegate {
    // MARK: - CBPeripheralDelegate
    func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: Error?) {
        if let error = error {
            print("Error on didDiscoverServices: \(error.localizedDescription)")

            return
        }

        if let services = peripheral.services {
            for service in services {
                print("Discovered service \(service.uuid)")

                peripheral.discoverCharacteristics(nil, for: service)
            }
        }
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didDiscoverCharacteristicsFor service: CBService,
        error: Error?
    ) {
        if let error = error {
            print("Error on didDiscoverCharacteristicsFor: \(error.localizedDescription)")

            return
        }

        if let characteristics = service.characteristics {
            for characteristic in characteristics {
                print("Discovered characteristic \(characteristic.getUserDescription()) for service \(service.uuid)")

                if characteristic.uuid.uuidString == DEVICE_BRIGHTNESS_VALUE_CHARACTERISTIC_UUID {
                    peripheral.setNotifyValue(true, for: characteristic)
                }

                if characteristic.uuid.uuidString == DEVICE_INFORMATION_NAME_CHARACTERISTIC_UUID {
                    peripheral.readValue(for: characteristic)
                }

                if characteristic.uuid.uuidString == DEVICE_INFORMATION_MESSAGE_CHARACTERISTIC_UUID {
                    if let message = delegate?.getMessage(), let value = message.data(using: .utf8) {
                        peripheral.writeValue(value, for: characteristic, type: .withoutResponse)

                        messageCharacteristic = characteristic
                    }
                }
            }
        }
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didUpdateNotificationStateFor characteristic: CBCharacteristic,
        error: Error?
    ) {
        if let error = error {
            print("Error on didUpdateNotificationStateFor: \(error.localizedDescription)")

            return
        }

        print("Updated notification state for characteristic \(characteristic.uuid)")

        if characteristic.uuid.uuidString == DEVICE_BRIGHTNESS_VALUE_CHARACTERISTIC_UUID {
            if let value = characteristic.value?.to(type: Float.self) {
                delegate?.updateBrightness(value)
            }
        }
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didUpdateValueFor characteristic: CBCharacteristic,
        error: Error?
    ) {
        if let error = error {
            print(
                "Error on didUpdateValueFor: \(error.localizedDescription) Characteristic: \(characteristic.uuid)"
            )

            return
        }

        print("Updated value for characteristic \(characteristic.uuid)")

        if characteristic.uuid.uuidString == DEVICE_INFORMATION_NAME_CHARACTERISTIC_UUID {
            if let value = characteristic.value, let name = String(data: value, encoding: .utf8) {
                delegate?.updateDeviceName(name)
            }
        }

        if characteristic.uuid.uuidString == DEVICE_BRIGHTNESS_VALUE_CHARACTERISTIC_UUID {
            if let value = characteristic.value?.to(type: Float.self) {
                delegate?.updateBrightness(value)
            }
        }
    }
}
