// swift-format-ignore-file: AlwaysUseLowerCamelCase

import CoreBluetooth
import Foundation

/// The steps of a central, from its manager to a peripheral's values, with the outcome of each step.
class WalkthroughCentral: NSObject, CBCentralManagerDelegate, TerminalApp {
    /// The operations on the peripheral's values, in this order.
    enum Step: String, CaseIterable {
        case readIncluded = "Read what is included"
        case read = "Read"
        case write = "Write with response"
        case writeWithoutResponse = "Write without response where that is not supported"
        case writeReadOnly = "Write what is read-only"
        case writeLong = "Write a long value"
        case readLong = "Read a long value"
        case subscribeInVain = "Subscribe to what cannot notify"
        case subscribe = "Subscribe"
        case receive = "Receive a notification"
        case readInFull = "Read it in full"
        case unsubscribe = "Unsubscribe"
    }

    var centralManager: CBCentralManager!
    var peripheral: CBPeripheral?
    let terminal: any Terminal

    var step: Step?
    /// The outcome of each step.
    var outcomes: [Step: String] = [:]

    let serviceUUID = CBUUID(string: "3655296F-96CE-44D4-912D-CD83F06E7E7E")
    let characteristicUUID1 = CBUUID(string: "C22D1ECA-0F78-463B-8C21-688A517D7D2B")
    let characteristicUUID2 = CBUUID(string: "632FB3C9-2078-419B-83AA-DBC64B5B685A")
    let heartRateServiceUUID = CBUUID(string: "180D")
    let longValue = Data((0..<300).map { UInt8($0 % 256) })

    init(terminal: any Terminal, options: [String: Any] = [:]) {
        self.terminal = terminal
        super.init()
        centralManager = CBCentralManager(delegate: self, queue: nil, options: options)
    }

    func viewWillDisappear() {
        if centralManager.isScanning {
            centralManager.stopScan()
        }
    }

    func centralManagerDidUpdateState(_ central: CBCentralManager) {
        print("Central Update State")
        switch central.state {
        case .poweredOn:
            print("CBCentralManagerStatePoweredOn")
            beginAgain()
        case .poweredOff:
            print("CBCentralManagerStatePoweredOff")
        case .unsupported:
            print("CBCentralManagerStateUnsupported")
        default:
            break
        }
    }

    func centralManager(
        _ central: CBCentralManager,
        didDiscover peripheral: CBPeripheral,
        advertisementData: [String: Any],
        rssi RSSI: NSNumber
    ) {
        // Only one of the advertisers is wanted. Its name may arrive later than its services.
        let services = advertisementData[CBAdvertisementDataServiceUUIDsKey] as? [CBUUID] ?? []
        guard self.peripheral == nil, services.contains(serviceUUID),
            advertisementData[CBAdvertisementDataLocalNameKey] != nil
        else { return }
        print("Discover name : \(peripheral.name ?? "(null)")")
        print("Advertised transmit power: \(advertisementData[CBAdvertisementDataTxPowerLevelKey] ?? "(null)")")

        centralManager.stopScan()
        print("Scanning stop")

        self.peripheral = peripheral
        centralManager.connect(peripheral, options: nil)
    }

    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        print("Peripheral Connected")
        peripheral.delegate = self
        peripheral.discoverServices(nil)
    }

    func centralManager(_ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: Error?) {
        print("Fail to connect: \(error?.localizedDescription ?? "(null)")")
        beginAgain()
    }

    func centralManager(
        _ central: CBCentralManager,
        didDisconnectPeripheral peripheral: CBPeripheral,
        error: Error?
    ) {
        print("Peripheral Disconnected: \(error?.localizedDescription ?? "(null)")")
        // Without an error, it was disconnected after the last step.
        if error != nil { beginAgain() }
    }

    /// Scans for a peripheral, to perform all steps with it.
    private func beginAgain() {
        guard centralManager.state == .poweredOn else { return }
        peripheral = nil
        step = nil
        outcomes = [:]
        centralManager.scanForPeripherals(withServices: nil, options: nil)
    }
}

// MARK: - What is there
extension WalkthroughCentral: CBPeripheralDelegate {
    func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: Error?) {
        print("Discover Service")
        for service in peripheral.services ?? [] {
            print("Discovered service \(service.uuid.uuidString)")
            if service.uuid == serviceUUID {
                peripheral.discoverIncludedServices(nil, for: service)
            }
        }
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didDiscoverIncludedServicesFor service: CBService,
        error: Error?
    ) {
        for included in service.includedServices ?? [] {
            // "180D" and "0000180D-0000-1000-8000-00805F9B34FB" are one UUID.
            let isHeartRate = included.uuid == CBUUID(string: "0000180D-0000-1000-8000-00805F9B34FB")
            print("Included service \(included.uuid.uuidString), heart rate ? \(isHeartRate ? "YES" : "NO")")
            peripheral.discoverCharacteristics(nil, for: included)
        }
        print("Discovering characteristics for service \(service.uuid.uuidString)")
        peripheral.discoverCharacteristics(nil, for: service)
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didDiscoverCharacteristicsFor service: CBService,
        error: Error?
    ) {
        print("Discover Characteristics")
        for characteristic in service.characteristics ?? [] {
            print("Discovered characteristic \(characteristic.uuid.uuidString)")
        }
        if service.uuid == serviceUUID {
            begin(.readIncluded)
        }
    }

    // MARK: - What it does

    func begin(_ step: Step) {
        guard let peripheral, let character1 = characteristic(characteristicUUID1),
            let character2 = characteristic(characteristicUUID2)
        else { return print("Not all characteristics are there") }
        self.step = step
        switch step {
        case .readIncluded:
            let included = peripheral.services?.first { $0.uuid == serviceUUID }?.includedServices ?? []
            guard let location = included.first?.characteristics?.first else {
                return print("Nothing is included")
            }
            peripheral.readValue(for: location)
        case .read, .readLong:
            peripheral.readValue(for: character1)
        case .write:
            peripheral.writeValue(Data("test".utf8), for: character1, type: .withResponse)
        case .writeWithoutResponse:
            // The write is dropped without an error; the value read afterwards shows it.
            peripheral.writeValue(Data("dropped".utf8), for: character1, type: .withoutResponse)
            peripheral.readValue(for: character1)
        case .writeReadOnly:
            peripheral.writeValue(Data("test".utf8), for: character2, type: .withResponse)
        case .writeLong:
            peripheral.writeValue(longValue, for: character1, type: .withResponse)
        case .subscribeInVain:
            peripheral.setNotifyValue(true, for: character1)
        case .subscribe:
            peripheral.setNotifyValue(true, for: character2)
        case .receive:
            break
        case .readInFull:
            peripheral.readValue(for: character2)
        case .unsubscribe:
            peripheral.setNotifyValue(false, for: character2)
        }
    }

    func end(_ step: Step, _ outcome: String) {
        guard self.step == step, let index = Step.allCases.firstIndex(of: step) else { return }
        outcomes[step] = outcome
        print("\(step.rawValue): \(outcome)")
        if index + 1 < Step.allCases.count {
            begin(Step.allCases[index + 1])
        } else if let peripheral {
            centralManager.cancelPeripheralConnection(peripheral)
        }
    }

    private func characteristic(_ uuid: CBUUID) -> CBCharacteristic? {
        let service = peripheral?.services?.first { $0.uuid == serviceUUID }
        return service?.characteristics?.first { $0.uuid == uuid }
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didUpdateValueFor characteristic: CBCharacteristic,
        error: Error?
    ) {
        if let error = error {
            print("Error reading value: \(error.localizedDescription)")
            return
        }
        let data = characteristic.value ?? Data()
        switch step {
        case .read, .writeWithoutResponse:
            if let step { end(step, "Data = \(String(decoding: data, as: UTF8.self))") }
        case .readLong:
            end(.readLong, "\(data.count) bytes, \(data == longValue ? "as written" : "others")")
        case .receive:
            end(.receive, "\(data.count > 0 ? "some" : "no") bytes")
        case .readInFull:
            end(.readInFull, "\(data.count) bytes")
        case .readIncluded:
            end(.readIncluded, "Data = \(data.map { String($0) }.joined(separator: " "))")
        default:
            break
        }
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didWriteValueFor characteristic: CBCharacteristic,
        error: Error?
    ) {
        guard let step else { return }
        end(step, error.map { "Error writing value: \($0.localizedDescription)" } ?? "done")
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didUpdateNotificationStateFor characteristic: CBCharacteristic,
        error: Error?
    ) {
        guard let step else { return }
        if let error = error {
            end(step, "Error changing notification state: \(error.localizedDescription)")
        } else {
            end(step, "notifying ? \(characteristic.isNotifying ? "YES" : "NO")")
        }
    }
}
