import BLE
import CoreBluetooth

// The delegates of both managers and of peripherals.
extension FuzzedApp: CBCentralManagerDelegate, CBPeripheralDelegate, CBPeripheralManagerDelegate {
    /// Performs the next action of the script, or else the next step of a usual app.
    private func react(_ usual: () -> Void = {}) {
        dispatchPrecondition(condition: .onQueue(queue))
        if !reactions.isEmpty {
            let action = reactions.removeFirst()
            perform(action & 31, [action >> 5, action >> 5, action >> 5, action >> 5])
        } else if remainingSteps > 0 {
            remainingSteps -= 1
            usual()
        }
    }

    // MARK: The central

    func centralManagerDidUpdateState(_ central: CBCentralManager) {
        require(central.state != .unknown, "the state is unknown")
        react { central.scanForPeripherals(withServices: [FuzzedApp.service]) }
    }

    func centralManager(_ central: CBCentralManager, willRestoreState dict: [String: Any]) {
        for peripheral in dict[CBCentralManagerRestoredStatePeripheralsKey] as? [CBPeripheral] ?? [] {
            keep(peripheral)
        }
    }

    func centralManager(
        _ central: CBCentralManager,
        didDiscover peripheral: CBPeripheral,
        advertisementData: [String: Any],
        rssi: NSNumber
    ) {
        require(central.isScanning && central.state == .poweredOn, "a discovery without a scan")
        keep(peripheral)
        react { central.connect(peripheral) }
    }

    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        require(peripheral.state == .connected, "a new connection is \(peripheral.state)")
        react {
            ledger.ask(.services, of: peripheral)
            peripheral.discoverServices(nil)
        }
    }

    func centralManager(_ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: (any Error)?) {
        require(peripheral.state == .disconnected, "a failed connection is \(peripheral.state)")
        react { central.connect(peripheral) }
    }

    func centralManager(
        _ central: CBCentralManager,
        didDisconnectPeripheral peripheral: CBPeripheral,
        timestamp: CFAbsoluteTime,
        isReconnecting: Bool,
        error: (any Error)?
    ) {
        let isEnded = peripheral.state == .disconnected || peripheral.state == .connecting
        require(isEnded, "an ended connection is \(peripheral.state)")
        require(!peripheral.canSendWriteWithoutResponse, "an ended connection accepts writes")
        react { central.connect(peripheral) }
    }

    func centralManager(
        _ central: CBCentralManager,
        connectionEventDidOccur event: CBConnectionEvent,
        for peripheral: CBPeripheral
    ) {
        keep(peripheral)
        react()
    }

    // MARK: A peripheral

    func peripheral(_ peripheral: CBPeripheral, didModifyServices invalidatedServices: [CBService]) {
        ledger.requireConnection(of: peripheral)
        react {
            ledger.ask(.services, of: peripheral)
            peripheral.discoverServices(nil)
        }
    }

    func peripheral(_ peripheral: CBPeripheral, didReadRSSI rssi: NSNumber, error: (any Error)?) {
        ledger.answer(.rssi, of: peripheral)
        react()
    }

    func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
        // The app may also have asked by `linux`, which calls no delegate.
        ledger.answer(.services, of: peripheral)
        react {
            for service in peripheral.services ?? [] {
                ledger.ask(.characteristics, of: peripheral)
                peripheral.discoverCharacteristics(nil, for: service)
            }
        }
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didDiscoverIncludedServicesFor service: CBService,
        error: (any Error)?
    ) {
        ledger.answer(.includedServices, of: peripheral)
        react()
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didDiscoverCharacteristicsFor service: CBService,
        error: (any Error)?
    ) {
        ledger.answer(.characteristics, of: peripheral)
        react {
            for characteristic in service.characteristics ?? [] {
                ledger.ask(.notification, of: peripheral)
                peripheral.setNotifyValue(true, for: characteristic)
                ledger.ask(.descriptors, of: peripheral)
                peripheral.discoverDescriptors(for: characteristic)
                peripheral.readValue(for: characteristic)
            }
        }
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didDiscoverDescriptorsFor characteristic: CBCharacteristic,
        error: (any Error)?
    ) {
        ledger.answer(.descriptors, of: peripheral)
        react { for descriptor in characteristic.descriptors ?? [] { peripheral.readValue(for: descriptor) } }
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didUpdateValueFor characteristic: CBCharacteristic,
        error: (any Error)?
    ) {
        ledger.requireConnection(of: peripheral)
        require((characteristic.value?.count ?? 0) <= 512, "a value of \(characteristic.value?.count ?? 0) bytes")
        react()
    }

    func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor descriptor: CBDescriptor, error: (any Error)?) {
        ledger.requireConnection(of: peripheral)
        react()
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didWriteValueFor characteristic: CBCharacteristic,
        error: (any Error)?
    ) {
        ledger.answer(.write, of: peripheral)
        react()
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didUpdateNotificationStateFor characteristic: CBCharacteristic,
        error: (any Error)?
    ) {
        ledger.answer(.notification, of: peripheral)
        react {
            ledger.ask(.write, of: peripheral)
            peripheral.writeValue(Data([1, 2, 3]), for: characteristic, type: .withResponse)
        }
    }

    func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral) {
        require(peripheral.canSendWriteWithoutResponse, "a peripheral that is ready cannot send")
        react()
    }

    func peripheral(_ peripheral: CBPeripheral, didOpen channel: CBL2CAPChannel?, error: (any Error)?) {
        ledger.answer(.channel, of: peripheral)
        require((channel == nil) == (error != nil), "a channel and an error")
        if let channel { keep(channel) }
        react()
    }

    // MARK: The server

    func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
        require(peripheral.state != .unknown, "the state is unknown")
        // A change of state ends subscriptions without further calls.
        ledger.subscriptions = []
        react { perform(20, [0]) }
    }

    func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?) {
        if error == nil { require(peripheral.isAdvertising, "advertising has begun, and is off") }
        react()
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?) {
        react { perform(22, [0]) }
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager,
        central: CBCentral,
        didSubscribeTo characteristic: CBCharacteristic
    ) {
        keep(central)
        if peripheral === server { ledger.subscribe(central, to: characteristic) }
        react { perform(24, [0, 1, 2, 3]) }
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager,
        central: CBCentral,
        didUnsubscribeFrom characteristic: CBCharacteristic
    ) {
        // A manager that the app has just replaced may still call its delegate.
        if peripheral === server { ledger.unsubscribe(central, from: characteristic) }
        react()
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
        keep(request)
        react { perform(25, [UInt8(requests.count - 1), 0, 9]) }
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
        require(!requests.isEmpty, "a write without a request")
        keep(requests[0])
        react { perform(25, [UInt8(self.requests.count - 1), 0]) }
    }

    func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) {
        react()
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager,
        didPublishL2CAPChannel psm: CBL2CAPPSM,
        error: (any Error)?
    ) {
        if error == nil { psms.append(psm) }
        react()
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager,
        didOpen channel: CBL2CAPChannel?,
        error: (any Error)?
    ) {
        if let channel { keep(channel) }
        react()
    }
}
