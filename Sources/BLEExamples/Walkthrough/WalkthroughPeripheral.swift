import CoreBluetooth
import Foundation

/// The steps of a peripheral, from its manager to the values that it sends.
class WalkthroughPeripheral: NSObject, CBPeripheralManagerDelegate, TerminalApp {
    var peripheralManager: CBPeripheralManager!
    let terminal: any Terminal

    /// Read and written. The app stores the value itself, because it changes.
    let character1 = CBMutableCharacteristic(
        type: CBUUID(string: "C22D1ECA-0F78-463B-8C21-688A517D7D2B"),
        properties: [.read, .write],
        value: nil,
        permissions: [.readable, .writeable]
    )
    /// Notified, and read if it is longer than a notification.
    let character2 = CBMutableCharacteristic(
        type: CBUUID(string: "632FB3C9-2078-419B-83AA-DBC64B5B685A"),
        properties: [.read, .notify],
        value: nil,
        permissions: .readable
    )
    /// Read-only, with a value that the system caches.
    let bodySensorLocation = CBMutableCharacteristic(
        type: CBUUID(string: "2A38"),
        properties: .read,
        value: Data([1]),
        permissions: .readable
    )
    /// A secondary service, which is found only if another service includes it.
    let heartRateService = CBMutableService(type: CBUUID(string: "180D"), primary: false)
    let service = CBMutableService(type: CBUUID(string: "3655296F-96CE-44D4-912D-CD83F06E7E7E"), primary: true)

    /// A value of the maximum length: longer than a notification on most links.
    static let longValue = Data((0..<512).map { UInt8($0 % 251) })

    init(terminal: any Terminal, options: [String: Any] = [:]) {
        self.terminal = terminal
        super.init()
        peripheralManager = CBPeripheralManager(delegate: self, queue: nil, options: options)
    }

    func viewWillDisappear() {
        peripheralManager.stopAdvertising()
    }

    func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
        print("Peripheral Manager Did Update State")
        switch peripheral.state {
        case .poweredOn:
            print("CBPeripheralManagerStatePoweredOn")
            heartRateService.characteristics = [bodySensorLocation]
            peripheralManager.add(heartRateService)
        case .poweredOff:
            print("CBPeripheralManagerStatePoweredOff")
        case .unsupported:
            print("CBPeripheralManagerStateUnsupported")
        default:
            break
        }
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: Error?) {
        if let error = error {
            print("Error publishing service: \(error.localizedDescription)")
            return
        }
        print("Add Service \(service.uuid.uuidString)")

        if service == heartRateService {
            // Included services are published first.
            self.service.includedServices = [heartRateService]
            self.service.characteristics = [character1, character2]
            peripheralManager.add(self.service)
        } else {
            character1.value = Data("character 1".utf8)
            character2.value = WalkthroughPeripheral.longValue

            // A published service cannot be changed any more.
            self.service.characteristics = []
            print("Published characteristics: \(self.service.characteristics?.count ?? 0)")

            // Of these keys the first two are supported.
            peripheralManager.startAdvertising([
                CBAdvertisementDataLocalNameKey: "Walkthrough",
                CBAdvertisementDataServiceUUIDsKey: [self.service.uuid],
                CBAdvertisementDataTxPowerLevelKey: 4,
            ])
        }
    }

    func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: Error?) {
        if let error = error {
            print("Error advertising: \(error.localizedDescription)")
            return
        }
        print("Start Advertising")
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
        print("Request character \(request.characteristic.uuid == character1.uuid ? 1 : 2) from \(request.offset)")
        guard let value = request.characteristic.value, request.offset <= value.count else {
            peripheralManager.respond(to: request, withResult: .invalidOffset)
            return
        }
        request.value = value.subdata(in: request.offset..<value.count)
        peripheralManager.respond(to: request, withResult: .success)
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
        // Either all of the requests are performed, or none.
        var written = character1.value ?? Data()
        for request in requests {
            guard request.offset <= written.count else {
                peripheralManager.respond(to: requests[0], withResult: .invalidOffset)
                return
            }
            written = written.prefix(request.offset) + (request.value ?? Data())
        }
        character1.value = written
        print("Written character 1: \(written.count) bytes")
        peripheralManager.respond(to: requests[0], withResult: .success)
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager,
        central: CBCentral,
        didSubscribeTo characteristic: CBCharacteristic
    ) {
        print("Central subscribed to characteristic \(characteristic.uuid.uuidString)")
        guard let characteristic = characteristic as? CBMutableCharacteristic, let updatedData = characteristic.value
        else { return }
        let didSendValue = peripheralManager.updateValue(
            updatedData,
            for: characteristic,
            onSubscribedCentrals: nil
        )
        print("Send Success ? \(didSendValue ? "YES" : "NO")")
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager,
        central: CBCentral,
        didUnsubscribeFrom characteristic: CBCharacteristic
    ) {
        print("Central unsubscribed from characteristic \(characteristic.uuid.uuidString)")
    }
}
