// swift-format-ignore-file: AlwaysUseLowerCamelCase

import CoreBluetooth
import Foundation

protocol DeviceControllerObserver: AnyObject {
    func device(_ device: DeviceController, didChangeTo state: CBPeripheralState)
    func device(_ device: DeviceController, didReceiveHeartRate rate: Int)
    func device(_ device: DeviceController, didReadLocation location: Int)
    func device(_ device: DeviceController, didReset error: Error?)
    func device(_ device: DeviceController, didMeasure proximity: Proximity)
}

/// Controls one heart rate sensor. It owns the `CBPeripheral`, whose connection would end without an owner, and is its
/// delegate.
class DeviceController: NSObject {
    let peripheral: CBPeripheral
    weak var observer: DeviceControllerObserver?

    private(set) var proximity = Proximity()
    private var controlPoint: CBCharacteristic?
    private var lastState = CBPeripheralState.disconnected

    static let heartRateService = "180D"
    static let heartRateMeasurement = "2A37"
    static let bodySensorLocation = "2A38"
    static let heartRateControlPoint = "2A39"

    init(peripheral: CBPeripheral) {
        self.peripheral = peripheral
        super.init()
        peripheral.delegate = self
    }

    /// The state of the connection; it is stored nowhere else.
    var state: CBPeripheralState {
        return peripheral.state
    }

    /// Called when the state may have changed.
    func updateState() {
        guard state != lastState else { return }
        lastState = state
        observer?.device(self, didChangeTo: state)
        if state == .connected {
            peripheral.discoverServices([CBUUID(string: DeviceController.heartRateService)])
        } else {
            controlPoint = nil
        }
    }

    func didSee(rssi: Int, at date: Date) {
        proximity.add(rssi: rssi, at: date)
    }

    /// Requests the signal strength. While the device is connected, it is not reported otherwise.
    func measureProximity() {
        peripheral.readRSSI()
    }

    /// Resets the energy expended to zero.
    func reset() {
        guard let controlPoint else { return }
        peripheral.writeValue(Data([1]), for: controlPoint, type: .withResponse)
    }
}

extension DeviceController: CBPeripheralDelegate {
    func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: Error?) {
        for service in peripheral.services ?? [] {
            peripheral.discoverCharacteristics(nil, for: service)
        }
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didDiscoverCharacteristicsFor service: CBService,
        error: Error?
    ) {
        for characteristic in service.characteristics ?? [] {
            if characteristic.properties.contains(.read) {
                peripheral.readValue(for: characteristic)
            }
            if characteristic.properties.contains(.notify) {
                peripheral.setNotifyValue(true, for: characteristic)
            }
            if characteristic.uuid.uuidString == DeviceController.heartRateControlPoint {
                controlPoint = characteristic
            }
        }
    }

    /// Handles a value that was read or notified; the two are not distinguished.
    func peripheral(
        _ peripheral: CBPeripheral,
        didUpdateValueFor characteristic: CBCharacteristic,
        error: Error?
    ) {
        guard error == nil, let value = characteristic.value else { return }
        switch characteristic.uuid.uuidString {
        case DeviceController.heartRateMeasurement where value.count >= 2:
            observer?.device(self, didReceiveHeartRate: Int(value[value.startIndex + 1]))
        case DeviceController.bodySensorLocation where value.count >= 1:
            observer?.device(self, didReadLocation: Int(value[value.startIndex]))
        default:
            break
        }
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didWriteValueFor characteristic: CBCharacteristic,
        error: Error?
    ) {
        observer?.device(self, didReset: error)
    }

    func peripheral(_ peripheral: CBPeripheral, didReadRSSI RSSI: NSNumber, error: Error?) {
        guard error == nil else { return }
        proximity.add(rssi: RSSI.intValue, at: Date())
        observer?.device(self, didMeasure: proximity)
    }
}
