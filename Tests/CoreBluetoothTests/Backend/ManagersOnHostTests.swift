import CoreBluetooth
import Testing

/// Managers that are created as in apps, on controllers in this process, in real time.
@Suite("Both roles of an app on virtual adapters")
struct ManagersOnHostTests {
    private static let service = CBUUID(string: "1E9B1A5C-55A3-4F52-8A54-0CD1B8A7B1F0")
    private static let name = CBUUID(string: "2A00")
    private static let light = CBUUID(string: "FFE1")

    /// A lamp whose light clients can read, set and subscribe to.
    private final class Lamp: NSObject, CBPeripheralManagerDelegate {
        let told = Mailroom<String>()
        let light = CBMutableCharacteristic(
            type: ManagersOnHostTests.light,
            properties: [.read, .write, .notify],
            value: nil,
            permissions: [.readable, .writeable]
        )
        private var value = Data([1])
        private(set) var manager: CBPeripheralManager!

        init(air: String) {
            super.init()
            manager = CBPeripheralManager(
                delegate: self,
                queue: DispatchQueue(label: "lamp"),
                options: [CBPeripheralManagerOptionAdapterKey: air]
            )
        }

        func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
            guard peripheral.state == .poweredOn else { return }
            let service = CBMutableService(type: ManagersOnHostTests.service, primary: true)
            let name = CBMutableCharacteristic(
                type: ManagersOnHostTests.name,
                properties: .read,
                value: Data("lamp".utf8),
                permissions: .readable
            )
            service.characteristics = [name, light]
            peripheral.add(service)
        }

        func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?) {
            told.post("added \(error == nil)")
            peripheral.startAdvertising([
                CBAdvertisementDataLocalNameKey: "lamp", CBAdvertisementDataServiceUUIDsKey: [service.uuid],
            ])
        }

        func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?) {
            told.post("advertising \(error == nil)")
        }

        func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
            request.value = value.suffix(from: request.offset)
            peripheral.respond(to: request, withResult: .success)
        }

        func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
            value = requests[0].value ?? Data()
            peripheral.respond(to: requests[0], withResult: .success)
            peripheral.updateValue(value, for: light, onSubscribedCentrals: nil)
        }

        func peripheralManager(
            _ peripheral: CBPeripheralManager,
            central: CBCentral,
            didSubscribeTo characteristic: CBCharacteristic
        ) {
            told.post("subscribed \(central.maximumUpdateValueLength)")
        }

        func peripheralManager(
            _ peripheral: CBPeripheralManager,
            central: CBCentral,
            didUnsubscribeFrom characteristic: CBCharacteristic
        ) {
            told.post("unsubscribed")
        }
    }

    /// A phone that finds the lamp, reads all values, subscribes, sets its light and disconnects.
    private final class Phone: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate {
        let told = Mailroom<String>()
        private var manager: CBCentralManager!
        private var peripheral: CBPeripheral?

        init(air: String) {
            super.init()
            manager = CBCentralManager(
                delegate: self,
                queue: DispatchQueue(label: "phone"),
                options: [CBCentralManagerOptionAdapterKey: air]
            )
        }

        func centralManagerDidUpdateState(_ central: CBCentralManager) {
            told.post("state \(central.state)")
            central.scanForPeripherals(withServices: [ManagersOnHostTests.service])
        }

        func centralManager(
            _ central: CBCentralManager,
            didDiscover peripheral: CBPeripheral,
            advertisementData: [String: Any],
            rssi: NSNumber
        ) {
            guard self.peripheral == nil else { return }
            central.stopScan()
            self.peripheral = peripheral
            peripheral.delegate = self
            central.connect(peripheral)
        }

        func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
            told.post("connected")
            peripheral.discoverServices([ManagersOnHostTests.service])
        }

        func centralManager(
            _ central: CBCentralManager,
            didDisconnectPeripheral peripheral: CBPeripheral,
            error: (any Error)?
        ) {
            told.post("disconnected \(error == nil)")
        }

        func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
            for service in peripheral.services ?? [] { peripheral.discoverCharacteristics(nil, for: service) }
        }

        func peripheral(
            _ peripheral: CBPeripheral,
            didDiscoverCharacteristicsFor service: CBService,
            error: (any Error)?
        ) {
            for characteristic in service.characteristics ?? [] {
                peripheral.readValue(for: characteristic)
                if characteristic.properties.contains(.notify) { peripheral.setNotifyValue(true, for: characteristic) }
            }
        }

        func peripheral(
            _ peripheral: CBPeripheral,
            didUpdateValueFor characteristic: CBCharacteristic,
            error: (any Error)?
        ) {
            told.post("\(characteristic.uuid.uuidString) \(characteristic.value.map(Array.init) ?? [])")
            if characteristic.isNotifying { manager.cancelPeripheralConnection(peripheral) }
        }

        func peripheral(
            _ peripheral: CBPeripheral,
            didUpdateNotificationStateFor characteristic: CBCharacteristic,
            error: (any Error)?
        ) {
            told.post("notifying \(characteristic.isNotifying)")
            peripheral.writeValue(Data([200]), for: characteristic, type: .withResponse)
        }

        func peripheral(
            _ peripheral: CBPeripheral,
            didWriteValueFor characteristic: CBCharacteristic,
            error: (any Error)?
        ) {
            told.post("written \(error == nil)")
        }
    }

    @Test(.timeLimit(.minutes(10)))
    func managersConnectReadSubscribeWriteNotifyAndDisconnect() async {
        let lamp = Lamp(air: "virtual:managers")
        let phone = Phone(air: "virtual:managers")
        for expected in ["added true", "advertising true", "subscribed 512", "unsubscribed"] {
            #expect(await lamp.told.next { $0 } == expected)
        }
        // The lamp may answer the write first or notify the value first.
        var told: [String] = []
        while told.last != "disconnected true" { told.append(await phone.told.next { $0 }) }
        let light = [200] as [UInt8]
        #expect(told.first == "state poweredOn")
        #expect(
            told.dropFirst().prefix(4) == ["connected", "2A00 \(Array("lamp".utf8))", "FFE1 [1]", "notifying true"]
        )
        #expect(told.contains("FFE1 \(light)"))
        withExtendedLifetime((lamp, phone)) {}
    }
}
