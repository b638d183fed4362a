import CoreBluetooth
import Foundation

let kServiceUUID = "A56E51F3-AFFE-4E14-87A2-54927B22354C"
let kCharacteristicUUID = "8204A259-E49C-4510-8ABF-68D494396946"
let kEncryptedCharacteristicUUID = "BA724148-D53B-460E-90F3-6BFFF0E183FA"

class TiTanPeripheralViewController: NSObject, CBPeripheralManagerDelegate, TerminalApp {
    var peripheralManager: CBPeripheralManager!
    var service: CBMutableService?
    var characteristic: CBMutableCharacteristic?
    var myValue = "TiTan dice hola"

    let terminal: any Terminal

    init(terminal: any Terminal, options: [String: Any] = [:]) {
        self.terminal = terminal
        super.init()
        peripheralManager = CBPeripheralManager(delegate: self, queue: nil, options: options)
    }

    func viewWillDisappear() {
        peripheralManager.stopAdvertising()
    }

    func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
        print("peripheralManagerDidUpdateState \(peripheral.state.rawValue)")

        if peripheral.state == .poweredOn {
            let serviceUUID = CBUUID(string: kServiceUUID)
            self.service = CBMutableService(type: serviceUUID, primary: true)

            let characteristic = CBMutableCharacteristic.init(
                type: CBUUID(string: kCharacteristicUUID),
                properties: [.read, .write, .notify],
                value: nil,
                permissions: [CBAttributePermissions.readable, CBAttributePermissions.writeable]
            )
            self.characteristic = characteristic

            let encryptedChar = CBMutableCharacteristic.init(
                type: CBUUID(string: kEncryptedCharacteristicUUID),
                properties: [.read, .notify, .notifyEncryptionRequired],
                value: nil,
                permissions: [.readable]
            )

            self.service?.characteristics = []
            self.service?.characteristics?.append(characteristic)
            self.service?.characteristics?.append(encryptedChar)

            self.peripheralManager.add(self.service!)
        }
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: Error?) {
        if let error = error {
            print("Add service failed: \(error.localizedDescription)")
            return
        }
        print("Add service succeeded")

        peripheralManager.startAdvertising([
            CBAdvertisementDataLocalNameKey: "TiTan",
            CBAdvertisementDataServiceUUIDsKey: [self.service!.uuid],
        ])
    }

    func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: Error?) {
        if let error = error {
            print("Start advertising failed: \(error.localizedDescription)")
            return
        }
        print("Start advertising succeeded")
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
        print("Read request")
        let value = Data(myValue.utf8)
        guard request.offset <= value.count else {
            peripheral.respond(to: request, withResult: .invalidOffset)
            return
        }
        request.value = value.subdata(in: request.offset..<value.count)
        peripheral.respond(to: request, withResult: .success)
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
        print("Write request")
        // Either all of the requests are performed, or none.
        var written = Data(myValue.utf8)
        for request in requests {
            guard request.offset <= written.count else {
                peripheral.respond(to: requests[0], withResult: .invalidOffset)
                return
            }
            written = written.prefix(request.offset) + (request.value ?? Data())
        }
        myValue = String(decoding: written, as: UTF8.self)
        peripheral.respond(to: requests[0], withResult: .success)
        peripheral.updateValue(Data(myValue.utf8), for: characteristic!, onSubscribedCentrals: nil)
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager,
        central: CBCentral,
        didSubscribeTo characteristic: CBCharacteristic
    ) {
        print("Subscribed to \(characteristic.uuid.uuidString)")
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager,
        central: CBCentral,
        didUnsubscribeFrom characteristic: CBCharacteristic
    ) {
        print("Unsubscribed from \(characteristic.uuid.uuidString)")
    }

    /// An intended error: a characteristic with a given value cannot be writable.
    func addCharacteristicWithCachedValue() {
        let service = CBMutableService(type: CBUUID(string: kServiceUUID), primary: true)
        service.characteristics = [
            CBMutableCharacteristic.init(
                type: CBUUID(string: kCharacteristicUUID),
                properties: [.read, .write, .notify],
                value: myValue.data(using: .utf8),
                permissions: [.readable, .writeable]
            )
        ]
        peripheralManager.add(service)
    }
}
