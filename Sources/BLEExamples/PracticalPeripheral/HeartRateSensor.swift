import CoreBluetooth
import Foundation

/// The sensor for the controller. It serves one central, and stops advertising when that connects.
class HeartRateSensor: NSObject, CBPeripheralManagerDelegate, TerminalApp {
    private var manager: CBPeripheralManager!
    private let measurement = CBMutableCharacteristic(
        type: CBUUID(string: DeviceController.heartRateMeasurement),
        properties: .notify,
        value: nil,
        permissions: .readable
    )
    let terminal: any Terminal

    init(terminal: any Terminal, options: [String: Any] = [:]) {
        self.terminal = terminal
        super.init()
        manager = CBPeripheralManager(delegate: self, queue: nil, options: options)
    }

    func viewWillDisappear() {
        manager.stopAdvertising()
    }

    func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
        guard peripheral.state == .poweredOn else { return }
        let service = CBMutableService(type: CBUUID(string: DeviceController.heartRateService), primary: true)
        let location = CBMutableCharacteristic(
            type: CBUUID(string: DeviceController.bodySensorLocation),
            properties: .read,
            value: Data([2]),
            permissions: .readable
        )
        let controlPoint = CBMutableCharacteristic(
            type: CBUUID(string: DeviceController.heartRateControlPoint),
            properties: .write,
            value: nil,
            permissions: .writeable
        )
        service.characteristics = [measurement, location, controlPoint]
        manager.add(service)
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: Error?) {
        if let error {
            print("Ошибка: \(error.localizedDescription)")
            return
        }
        manager.startAdvertising([
            CBAdvertisementDataLocalNameKey: "Датчик ЧСС",
            CBAdvertisementDataServiceUUIDsKey: [CBUUID(string: DeviceController.heartRateService)],
        ])
    }

    func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: Error?) {
        print(error.map { "Ошибка: \($0.localizedDescription)" } ?? "Датчик включен")
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
        print("Сброс")
        manager.respond(to: requests[0], withResult: .success)
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager,
        central: CBCentral,
        didSubscribeTo characteristic: CBCharacteristic
    ) {
        print("Подписка")
        manager.stopAdvertising()
        for rate: UInt8 in [61, 64, 67] {
            manager.updateValue(Data([0, rate]), for: measurement, onSubscribedCentrals: [central])
        }
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager,
        central: CBCentral,
        didUnsubscribeFrom characteristic: CBCharacteristic
    ) {
        print("Датчик свободен")
    }
}
