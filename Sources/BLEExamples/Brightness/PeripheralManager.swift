import CoreBluetooth
import Foundation

class PeripheralManager: NSObject, TerminalApp {
    // MARK: - Properties
    var manager: CBPeripheralManager!

    var brightnessCharacteristic: CBMutableCharacteristic!
    var subscribedCentralToBrightness: CBCentral?

    weak var delegate: PeripheralViewControllerDelegate?
    let terminal: any Terminal

    var isSubscribedToBrightness: Bool {
        return subscribedCentralToBrightness != nil
    }

    var deviceBroadcast: String {
        return "Peripheral Device"
    }

    var deviceName: Data? {
        return Device.current.name.data(using: .utf8)
    }

    var isAdvertising: Bool {
        return manager.isAdvertising
    }

    // MARK: - Initializer
    init(terminal: any Terminal, options: [String: Any]) {
        self.terminal = terminal
        super.init()

        var options = options
        options[CBPeripheralManagerOptionShowPowerAlertKey] = true
        self.manager = CBPeripheralManager(delegate: self, queue: nil, options: options)
    }

    // MARK: - Methods
    func stopAdvertising() {
        manager.stopAdvertising()
    }

    func updateBrightnessCharacteristic(with value: Float) {
        if isSubscribedToBrightness {
            manager.updateValue(
                Data(from: value),
                for: brightnessCharacteristic!,
                onSubscribedCentrals: [subscribedCentralToBrightness!]
            )
        }
    }
}

// MARK: -
extension PeripheralManager: CBPeripheralManagerDelegate {
    // MARK: - PeripheralManagerDelegate
    func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
        switch peripheral.state {
        case .poweredOff:
            print("PeripheralManagerState: poweredOff")
        case .poweredOn:
            print("PeripheralManagerState: poweredOn")

            manager.add(Services.getDeviceInformationService())

            let service = Services.getDeviceBrightnessService()
            brightnessCharacteristic = service.characteristics!.first as? CBMutableCharacteristic
            manager.add(service)

            manager.startAdvertising([
                CBAdvertisementDataLocalNameKey: deviceBroadcast,
                CBAdvertisementDataServiceUUIDsKey: [CBUUID.init(string: DEVICE_UUID)],
            ])

            delegate?.updateDeviceName(deviceBroadcast)
            delegate?.updateDeviceUUID(DEVICE_UUID)
        case .resetting:
            print("PeripheralManagerState: resetting")
        case .unauthorized:
            print("PeripheralManagerState: unauthorized")
        case .unknown:
            print("PeripheralManagerState: unknown")
        case .unsupported:
            print("PeripheralManagerState: unsupported")

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

    func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: Error?) {
        if let error = error {
            print("Error publishing service: \(error.localizedDescription)")

            return
        }

        print("Added service \(service.uuid)")
    }

    func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: Error?) {
        if let error = error {
            print("Error advertising: \(error.localizedDescription)")

            return
        }

        delegate?.updateStatus(.advertising)
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
        print("Received read request \(request.characteristic.getUserDescription())")

        // The device name characteristic was sent automatically because it was defined on CBMutableCharacteristic init

        guard request.characteristic.uuid.uuidString == DEVICE_BRIGHTNESS_VALUE_CHARACTERISTIC_UUID,
            let brightness = delegate?.getBrightness()
        else {
            manager.respond(to: request, withResult: .requestNotSupported)

            return
        }

        guard request.offset <= brightness.count else {
            manager.respond(to: request, withResult: .invalidOffset)

            return
        }

        request.value = brightness.subdata(in: request.offset..<brightness.count)
        manager.respond(to: request, withResult: .success)
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
        // All of the requests are performed or none, and the answer to the first one is the answer to all.
        manager.respond(to: requests[0], withResult: takeMessage(from: requests))
    }

    private func takeMessage(from requests: [CBATTRequest]) -> CBATTError.Code {
        var written = Data()

        for request in requests {
            print("Received write request \(request.characteristic.getUserDescription())")

            guard request.characteristic.uuid.uuidString == DEVICE_INFORMATION_MESSAGE_CHARACTERISTIC_UUID else {
                return .requestNotSupported
            }

            guard request.offset <= written.count else {
                return .invalidOffset
            }

            written = written.prefix(request.offset) + (request.value ?? Data())
        }

        guard let message = String(data: written, encoding: .utf8) else {
            return .unlikelyError
        }

        delegate?.updateMessage(message)

        return .success
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager,
        central: CBCentral,
        didSubscribeTo characteristic: CBCharacteristic
    ) {
        print("Central subscribed to characteristic \(characteristic.getUserDescription())")

        if characteristic.uuid.uuidString == DEVICE_BRIGHTNESS_VALUE_CHARACTERISTIC_UUID {
            subscribedCentralToBrightness = central

            manager.updateValue(
                delegate!.getBrightness(),
                for: brightnessCharacteristic,
                onSubscribedCentrals: [subscribedCentralToBrightness!]
            )
        }
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager,
        central: CBCentral,
        didUnsubscribeFrom characteristic: CBCharacteristic
    ) {
        print("Central unsubscribed to characteristic \(characteristic.getUserDescription())")

        if characteristic.uuid.uuidString == DEVICE_BRIGHTNESS_VALUE_CHARACTERISTIC_UUID {
            subscribedCentralToBrightness = nil
        }
    }
}
