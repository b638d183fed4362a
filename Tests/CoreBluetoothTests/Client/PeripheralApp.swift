import CoreBluetooth

// A peripheral as apps write it. Compiled in both language modes.

final class PeripheralApp: NSObject, CBPeripheralManagerDelegate {
    var manager: CBPeripheralManager!
    var message: CBMutableCharacteristic!
    var subscriber: CBCentral?
    var pending: [Data] = []

    override init() {
        super.init()
        manager = CBPeripheralManager(delegate: self, queue: nil)
    }

    static func makeService() -> CBMutableService {
        let service = CBMutableService(type: CBUUID(string: "908D66AF-2751-4483-BD8E-8E99A92CC2F3"), primary: true)
        let name = CBMutableCharacteristic(
            type: CBUUID(string: "06BBE1E1-100E-430D-A62B-7B2421810813"),
            properties: .read,
            value: "Linux".data(using: .utf8),
            permissions: .readable
        )
        let message = CBMutableCharacteristic(
            type: CBUUID(string: "B53D35B6-ADA0-42F7-8A75-C4433D81E729"),
            properties: [.read, .writeWithoutResponse, .write, .notify],
            value: nil,
            permissions: [CBAttributePermissions.readable, CBAttributePermissions.writeable]
        )
        // This does nothing, because there are no descriptors yet.
        message.descriptors?.append(
            CBMutableDescriptor(type: CBUUID(string: CBUUIDCharacteristicFormatString), value: "no format")
        )
        service.characteristics = [CBMutableCharacteristic]()
        service.characteristics?.append(name)
        service.characteristics?.append(message)
        return service
    }

    func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
        guard peripheral.state == .poweredOn else { return }
        let service = PeripheralApp.makeService()
        message = service.characteristics!.last as? CBMutableCharacteristic
        manager.add(service)
        manager.startAdvertising([
            CBAdvertisementDataLocalNameKey: "TiTan",
            CBAdvertisementDataServiceUUIDsKey: [service.uuid],
        ])
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: Error?) {
        print("added \(service.uuid): \(error?.localizedDescription ?? "well")")
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
        guard let value = message.value, request.offset <= value.count else {
            return peripheral.respond(to: request, withResult: .invalidOffset)
        }
        request.value = value.subdata(in: request.offset..<value.count)
        peripheral.respond(to: request, withResult: .success)
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
        for request in requests {
            if let value = request.value {
                message.value = value
                peripheral.respond(to: request, withResult: .success)
            } else {
                peripheral.respond(to: request, withResult: CBATTError.Code(rawValue: 0x80)!)
            }
        }
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager,
        central: CBCentral,
        didSubscribeTo characteristic: CBCharacteristic
    ) {
        subscriber = central
        let chunk = Data(repeating: 0x5A, count: min(20, central.maximumUpdateValueLength))
        if !manager.updateValue(chunk, for: message, onSubscribedCentrals: [central]) { pending.append(chunk) }
        // The result may be ignored.
        manager.updateValue(chunk, for: message, onSubscribedCentrals: nil)
        manager.setDesiredConnectionLatency(.low, for: central)
    }

    func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) {
        while let chunk = pending.first, peripheral.updateValue(chunk, for: message, onSubscribedCentrals: nil) {
            pending.removeFirst()
        }
    }
}
