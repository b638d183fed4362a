// swift-format-ignore-file: AlwaysUseLowerCamelCase

import CoreBluetooth
import Foundation

class CBCentralManagerViewController: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate, TerminalApp {
    var centralManager: CBCentralManager!
    var discoveredPeripheral: CBPeripheral?
    var data = Data()

    let terminal: any Terminal
    /// The contents of the text view.
    var text = "" {
        didSet { print("Texte: \(text)") }
    }

    init(terminal: any Terminal, options: [String: Any] = [:]) {
        self.terminal = terminal
        super.init()
        centralManager = CBCentralManager(delegate: self, queue: nil, options: options)
    }

    func viewWillDisappear() {
        centralManager.stopScan()
    }

    func centralManagerDidUpdateState(_ central: CBCentralManager) {
        // Vous devez tester tous les scénarios
        if central.state != .poweredOn {
            // Il n'y a plus de connexion
            discoveredPeripheral = nil
            return
        }

        scan()
    }

    func scan() {
        // Rechercher des périphériques
        centralManager.scanForPeripherals(
            withServices: [CBUUID(string: TRANSFER_SERVICE_UUID)],
            options: [CBCentralManagerScanOptionAllowDuplicatesKey: true]
        )
        print("La numérisation a commencé")
    }

    func centralManager(
        _ central: CBCentralManager,
        didDiscover peripheral: CBPeripheral,
        advertisementData: [String: Any],
        rssi RSSI: NSNumber
    ) {
        if discoveredPeripheral != peripheral {
            print("Découvert \(peripheral.name ?? "(null)") at \(RSSI)")

            // Enregistrez une copie locale du périphérique pour que CoreBluetooth ne s'en débarrasse pas
            discoveredPeripheral = peripheral

            // Et connectez
            print("Connexion au périphérique \(peripheral.identifier)")
            centralManager.connect(peripheral, options: nil)
        }
    }

    func centralManager(_ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: Error?) {
        print("Echec de la connexion")
        cleanup()

        // La recherche continue: le périphérique peut être découvert à nouveau
        discoveredPeripheral = nil
    }

    func cleanup() {
        // Voyons si nous sommes abonnés à une caractéristique du périphérique
        guard let discoveredPeripheral else { return }

        for service in discoveredPeripheral.services ?? [] {
            for characteristic in service.characteristics ?? [] {
                if characteristic.uuid == CBUUID(string: TRANSFER_CHARACTERISTIC_UUID), characteristic.isNotifying {
                    discoveredPeripheral.setNotifyValue(false, for: characteristic)
                    return
                }
            }
        }

        centralManager.cancelPeripheralConnection(discoveredPeripheral)
    }

    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        print("Connected")

        centralManager.stopScan()
        print("Numérisation arrêtée")

        data.removeAll()

        peripheral.delegate = self
        peripheral.discoverServices([CBUUID(string: TRANSFER_SERVICE_UUID)])
    }

    func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: Error?) {
        if error != nil {
            cleanup()
            return
        }

        for service in peripheral.services ?? [] {
            peripheral.discoverCharacteristics([CBUUID(string: TRANSFER_CHARACTERISTIC_UUID)], for: service)
        }
        // Découvrir d'autres caractéristiques
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didDiscoverCharacteristicsFor service: CBService,
        error: Error?
    ) {
        if error != nil {
            cleanup()
            return
        }

        for characteristic in service.characteristics ?? [] {
            if characteristic.uuid == CBUUID(string: TRANSFER_CHARACTERISTIC_UUID) {
                peripheral.setNotifyValue(true, for: characteristic)
            }
        }
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didUpdateValueFor characteristic: CBCharacteristic,
        error: Error?
    ) {
        if error != nil {
            print("Erreur")
            return
        }

        guard let value = characteristic.value else { return }

        // Avons-nous tout ce dont nous avons besoin?
        if String(data: value, encoding: .utf8) == "EOM" {
            text = String(decoding: data, as: UTF8.self)

            peripheral.setNotifyValue(false, for: characteristic)
            centralManager.cancelPeripheralConnection(peripheral)
        }

        data.append(value)
    }

    func peripheral(
        _ peripheral: CBPeripheral,
        didUpdateNotificationStateFor characteristic: CBCharacteristic,
        error: Error?
    ) {
        if characteristic.uuid != CBUUID(string: TRANSFER_CHARACTERISTIC_UUID) {
            return
        }

        if characteristic.isNotifying {
            print("La notification a commencé le \(characteristic.uuid)")
        } else {
            // La notification a été arrêtée
            centralManager.cancelPeripheralConnection(peripheral)
        }
    }

    func centralManager(
        _ central: CBCentralManager,
        didDisconnectPeripheral peripheral: CBPeripheral,
        error: Error?
    ) {
        print("Disconnected")
        discoveredPeripheral = nil

        scan()
    }
}
