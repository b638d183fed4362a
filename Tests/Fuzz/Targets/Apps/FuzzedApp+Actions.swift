import BLE
import CoreBluetooth

// The actions of an app. None depends on the state of the managers, because an app may call them at any time.
extension FuzzedApp {
    func perform(_ action: UInt8, _ octets: [UInt8]) {
        var choices = Choices(octets)
        switch action {
        case 0: replaceCentral(choices.next())
        case 1: scan(choices.next())
        case 2: central?.stopScan()
        case 3: connect(&choices)
        case 4:
            if let peripheral = peripherals.chosen(choices.next()) { central?.cancelPeripheralConnection(peripheral) }
        case 5: if !peripherals.isEmpty { peripherals.remove(at: Int(choices.next()) % peripherals.count) }
        case 6: retrieve(choices.next())
        case 7: registerForConnectionEvents(choices.next())
        case 8...16, 18: if let peripheral = peripherals.chosen(choices.next()) { use(peripheral, action, &choices) }
        case 17: useChannel(&choices)
        case 19: replaceServer(choices.next())
        case 20: addService(choices.next())
        case 21: removeService(choices.next())
        case 22: advertise(choices.next())
        case 23: server?.stopAdvertising()
        case 24: update(&choices)
        case 25: respond(&choices)
        case 26: publishChannel(choices.next())
        case 27: changeCentral(choices.next())
        default: break
        }
    }

    // MARK: The central

    private func replaceCentral(_ flags: UInt8) {
        switch flags & 3 {
        case 0: central = nil
        case 1: central?.delegate = flags & 4 == 0 ? self : nil
        default: makeCentral(restores: flags & 4 != 0)
        }
    }

    private func scan(_ flags: UInt8) {
        central?.scanForPeripherals(
            withServices: flags & 1 == 0 ? nil : [FuzzedApp.service],
            options: [CBCentralManagerScanOptionAllowDuplicatesKey: flags & 2 != 0]
        )
    }

    private func connect(_ choices: inout Choices) {
        guard let peripheral = peripherals.chosen(choices.next()) else { return }
        let flags = choices.next()
        central?.connect(
            peripheral,
            options: [
                CBConnectPeripheralOptionEnableAutoReconnect: flags & 1 != 0,
                CBConnectPeripheralOptionStartDelayKey: NSNumber(value: flags >> 4 & 3),
            ]
        )
    }

    private func retrieve(_ flags: UInt8) {
        guard let central else { return }
        let found =
            flags & 1 == 0
            ? central.retrievePeripherals(withIdentifiers: identifiers)
            : central.retrieveConnectedPeripherals(withServices: [FuzzedApp.service])
        for peripheral in found { keep(peripheral) }
    }

    private func registerForConnectionEvents(_ flags: UInt8) {
        let options: [CBConnectionEventMatchingOption: Any] =
            flags & 1 == 0 ? [.serviceUUIDs: [FuzzedApp.service]] : [.peripheralUUIDs: identifiers]
        central?.registerForConnectionEvents(options: flags & 2 == 0 ? options : nil)
    }

    /// Uses a peripheral and the attributes that it has or had.
    private func use(_ peripheral: CBPeripheral, _ action: UInt8, _ choices: inout Choices) {
        let services = peripheral.services ?? []
        let service = services.chosen(choices.next())
        let characteristic = service?.characteristics?.chosen(choices.next())
        let flags = choices.next()
        switch action {
        case 8:
            ledger.ask(.services, of: peripheral)
            peripheral.discoverServices(flags & 1 == 0 ? nil : [FuzzedApp.service])
        case 9:
            guard let service else { return }
            ledger.ask(flags & 1 == 0 ? .characteristics : .includedServices, of: peripheral)
            if flags & 1 == 0 {
                peripheral.discoverCharacteristics(nil, for: service)
            } else {
                peripheral.discoverIncludedServices(nil, for: service)
            }
        case 15: changeLink(of: peripheral, flags)
        case 16: openChannel(to: peripheral, flags)
        case 18:
            calls.begin { [weak central, weak peripheral] in
                guard let central, let peripheral else { return }
                try? await central.linux.connected(peripheral, timeout: .milliseconds(100 * Int(flags)))
            }
        default: if let characteristic { use(characteristic, of: peripheral, action, flags, choices.remaining()) }
        }
    }

    private func use(
        _ characteristic: CBCharacteristic,
        of peripheral: CBPeripheral,
        _ action: UInt8,
        _ flags: UInt8,
        _ value: [UInt8]
    ) {
        switch action {
        case 10:
            ledger.ask(.descriptors, of: peripheral)
            peripheral.discoverDescriptors(for: characteristic)
        case 11: peripheral.readValue(for: characteristic)
        case 12:
            guard let descriptor = characteristic.descriptors?.chosen(flags >> 1) else { return }
            let isConfiguration = descriptor.uuid == CBUUID(string: CBUUIDClientCharacteristicConfigurationString)
            if flags & 1 == 0 || isConfiguration {
                peripheral.readValue(for: descriptor)
            } else {
                peripheral.writeValue(Data(value), for: descriptor)
            }
        case 13:
            if flags & 1 != 0 { ledger.ask(.write, of: peripheral) }
            peripheral.writeValue(
                Data(value),
                for: characteristic,
                type: flags & 1 != 0 ? .withResponse : .withoutResponse
            )
        default:
            ledger.ask(.notification, of: peripheral)
            peripheral.setNotifyValue(flags & 1 == 0, for: characteristic)
        }
    }

    private func changeLink(of peripheral: CBPeripheral, _ flags: UInt8) {
        switch flags & 3 {
        case 0:
            ledger.ask(.rssi, of: peripheral)
            peripheral.readRSSI()
        case 1: peripheral.delegate = flags & 4 == 0 ? self : nil
        case 2:
            calls.begin { [weak peripheral] in
                guard let linux = peripheral?.linux else { return }
                _ = try? await linux.link()
                _ = try? await linux.discoverServices()
            }
        default:
            calls.begin { [weak peripheral] in try? await peripheral?.linux.update(.init(latencyInEvents: 2)) }
        }
    }

    private func openChannel(to peripheral: CBPeripheral, _ flags: UInt8) {
        ledger.ask(.channel, of: peripheral)
        peripheral.openL2CAPChannel(flags & 1 == 0 ? psms.chosen(flags) ?? 0x0080 : 0x0080 + CBL2CAPPSM(flags >> 4))
    }

    private func useChannel(_ choices: inout Choices) {
        guard let channel = channels.chosen(choices.next()) else { return }
        let flags = choices.next()
        if flags & 1 != 0, channel.inputStream.hasBytesAvailable {
            var buffer = [UInt8](repeating: 0, count: 1 + Int(flags))
            let count = channel.inputStream.read(&buffer, maxLength: buffer.count)
            require(count <= buffer.count, "\(count) bytes were read into a buffer of \(buffer.count)")
        }
        let octets = choices.remaining()
        if flags & 2 != 0, !octets.isEmpty, channel.outputStream.hasSpaceAvailable {
            let count = channel.outputStream.write(octets, maxLength: octets.count)
            require(count <= octets.count, "\(count) of \(octets.count) bytes were written")
        }
        if flags & 12 == 12 { close(channel) }
        if flags & 48 == 48 { channels.removeAll { $0 === channel } }
    }

    // MARK: The server

    private func replaceServer(_ flags: UInt8) {
        switch flags & 3 {
        case 0:
            server = nil
            ledger.subscriptions = []
        case 1:
            server?.delegate = flags & 4 == 0 ? self : nil
            if flags & 4 != 0 { ledger.knowsSubscriptions = false }
        default: makeServer(restores: flags & 4 != 0)
        }
    }

    private func addService(_ flags: UInt8) {
        if flags & 1 == 0 || services.isEmpty {
            services.append(makeService(isPrimary: flags & 2 == 0, includes: flags & 4 != 0))
            if services.count > 4 { services.removeFirst() }
        }
        guard let service = services.chosen(flags >> 3) else { return }
        made.add(service)
        server?.add(service)
    }

    private func removeService(_ flags: UInt8) {
        if flags & 1 != 0 {
            ledger.subscriptions = []
            server?.removeAllServices()
        } else if let service = services.chosen(flags >> 1) {
            ledger.forgetSubscriptions(of: service)
            server?.remove(service)
        }
    }

    private func advertise(_ flags: UInt8) {
        server?.startAdvertising([
            CBAdvertisementDataLocalNameKey: flags & 1 == 0 ? "app" : String(repeating: "a", count: Int(flags)),
            CBAdvertisementDataServiceUUIDsKey: [FuzzedApp.service],
        ])
    }

    private func update(_ choices: inout Choices) {
        let flags = choices.next()
        let characteristics = services.flatMap { $0.characteristics ?? [] }.compactMap {
            $0 as? CBMutableCharacteristic
        }
        guard let characteristic = characteristics.chosen(flags) else { return }
        let value = Data(choices.remaining())
        for _ in 0...(flags >> 5) {
            server?.updateValue(value, for: characteristic, onSubscribedCentrals: flags & 16 == 0 ? nil : centrals)
        }
    }

    private func respond(_ choices: inout Choices) {
        guard let request = requests.chosen(choices.next()) else { return }
        let flags = choices.next()
        request.value = Data(choices.remaining())
        let codes: [CBATTError.Code] = [.success, .success, .invalidOffset, .insufficientEncryption]
        server?.respond(to: request, withResult: codes[Int(flags & 3)])
        if flags & 4 == 0 { requests.removeAll { $0 === request } }
    }

    private func publishChannel(_ flags: UInt8) {
        if flags & 1 == 0 {
            server?.publishL2CAPChannel(withEncryption: flags & 2 != 0)
        } else {
            server?.unpublishL2CAPChannel(psms.chosen(flags >> 1) ?? 0x0080)
        }
    }

    private func changeCentral(_ flags: UInt8) {
        guard let central = centrals.chosen(flags >> 2) else { return }
        if flags & 2 == 0 {
            server?.setDesiredConnectionLatency(flags & 1 == 0 ? .low : .high, for: central)
        } else {
            server?.linux.disconnect(central)
        }
    }
}
