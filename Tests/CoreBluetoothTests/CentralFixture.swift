import BLEATT
import BluetoothTypes
import Foundation

@testable import BLEGATT
@testable import CoreBluetooth

/// A central manager with a scripted host, and the calls that its delegates received.
final class CentralFixture: ManagerFixture {
    /// Records every call of both delegates.
    final class Recorder: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate, DelegateRecorder {
        var told: [String] = []
        var errors: [any Error] = []
        var advertisements: [[String: Any]] = []
        var restored: [String: Any] = [:]
        var invalidated: [CBService] = []
        /// Called within each call of the peripheral's delegate.
        var probe: (() -> String)?

        private func note(_ text: String, _ error: (any Error)? = nil) {
            told.append(text + (probe.map { " " + $0() } ?? ""))
            if let error { errors.append(error) }
        }

        func centralManagerDidUpdateState(_ central: CBCentralManager) { note("state \(central.state)") }
        func centralManager(_ central: CBCentralManager, willRestoreState dict: [String: Any]) {
            restored = dict
            note("restore")
        }
        func centralManager(
            _ central: CBCentralManager,
            didDiscover peripheral: CBPeripheral,
            advertisementData: [String: Any],
            rssi: NSNumber
        ) {
            advertisements.append(advertisementData)
            note("discovered \(rssi)")
        }
        func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) { note("connected") }
        func centralManager(
            _ central: CBCentralManager,
            didFailToConnect peripheral: CBPeripheral,
            error: (any Error)?
        ) {
            note("failed", error)
        }
        func centralManager(
            _ central: CBCentralManager,
            didDisconnectPeripheral peripheral: CBPeripheral,
            timestamp: CFAbsoluteTime,
            isReconnecting: Bool,
            error: (any Error)?
        ) {
            note("disconnected \(peripheral.state) \(isReconnecting)", error)
        }
        func centralManager(
            _ central: CBCentralManager,
            connectionEventDidOccur event: CBConnectionEvent,
            for peripheral: CBPeripheral
        ) {
            note("event \(event)")
        }
        func peripheralDidUpdateName(_ peripheral: CBPeripheral) { note("name \(peripheral.name ?? "none")") }
        func peripheral(_ peripheral: CBPeripheral, didModifyServices invalidatedServices: [CBService]) {
            invalidated = invalidatedServices
            note("modified \(invalidatedServices.count)")
        }
        func peripheral(_ peripheral: CBPeripheral, didReadRSSI rssi: NSNumber, error: (any Error)?) {
            note("rssi \(rssi)", error)
        }
        func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) { note("services", error) }
        func peripheral(
            _ peripheral: CBPeripheral,
            didDiscoverIncludedServicesFor service: CBService,
            error: (any Error)?
        ) {
            note("included", error)
        }
        func peripheral(
            _ peripheral: CBPeripheral,
            didDiscoverCharacteristicsFor service: CBService,
            error: (any Error)?
        ) {
            note("characteristics", error)
        }
        func peripheral(
            _ peripheral: CBPeripheral,
            didDiscoverDescriptorsFor characteristic: CBCharacteristic,
            error: (any Error)?
        ) {
            note("descriptors", error)
        }
        func peripheral(
            _ peripheral: CBPeripheral,
            didUpdateValueFor characteristic: CBCharacteristic,
            error: (any Error)?
        ) {
            note("value \(characteristic.value.map { "\([UInt8]($0))" } ?? "nil")", error)
        }
        func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor descriptor: CBDescriptor, error: (any Error)?) {
            note("descriptor \(descriptor.value ?? "nil")", error)
        }
        func peripheral(
            _ peripheral: CBPeripheral,
            didWriteValueFor characteristic: CBCharacteristic,
            error: (any Error)?
        ) {
            note("written", error)
        }
        func peripheral(_ peripheral: CBPeripheral, didWriteValueFor descriptor: CBDescriptor, error: (any Error)?) {
            note("descriptor written", error)
        }
        func peripheral(
            _ peripheral: CBPeripheral,
            didUpdateNotificationStateFor characteristic: CBCharacteristic,
            error: (any Error)?
        ) {
            note("notifying \(characteristic.isNotifying)", error)
        }
        func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral) { note("ready") }
        func peripheral(
            _ peripheral: CBPeripheral,
            didReceive results: CBChannelSoundingProcedureResults?,
            error: (any Error)?
        ) {
            note("distance \(results.map { "\($0.distance)" } ?? "none")", error)
        }

        func peripheral(_ peripheral: CBPeripheral, didCompleteChannelSoundingSession error: (any Error)?) {
            note("sounding complete", error)
        }

        func peripheral(_ peripheral: CBPeripheral, didOpen channel: CBL2CAPChannel?, error: (any Error)?) {
            note("channel \(channel?.psm ?? 0)", error)
        }
    }

    let backend = ScriptedCentralBackend()
    let recorder = Recorder()
    let manager: CBCentralManager

    init(state: CBManagerState? = .poweredOn) {
        manager = CBCentralManager(
            delegate: recorder,
            queue: DispatchQueue(label: "test", attributes: .concurrent),
            backend: backend
        )
        if let state {
            deliver(.stateChanged(state))
            recorder.told = []
        }
    }

    // MARK: A peripheral

    static let range = HandleRange(start: 0x0010, end: 0x001F)
    static let service = DiscoveredService(uuid: "180D", isPrimary: true, handle: 0x0010, endHandle: 0x001F)
    static let measurement = DiscoveredCharacteristic(
        uuid: "2A37",
        handle: 0x0011,
        valueHandle: 0x0012,
        endHandle: 0x0013,
        properties: [.notify, .indicate, .read]
    )
    static let location = DiscoveredCharacteristic(
        uuid: "2A38",
        handle: 0x0014,
        valueHandle: 0x0015,
        endHandle: 0x0015,
        properties: [.read, .write, .writeWithoutResponse]
    )

    /// A peripheral that the manager knows.
    func makePeripheral() -> CBPeripheral {
        let known = KnownPeripheral(identifier: UUID(), name: "Polar")
        backend.known = [known]
        let peripheral = manager.retrievePeripherals(withIdentifiers: [known.identifier])[0]
        peripheral.delegate = recorder
        return peripheral
    }

    /// A peripheral that is connected.
    func connectedPeripheral(mtu: Int = 185) -> CBPeripheral {
        let peripheral = makePeripheral()
        connect(peripheral, mtu: mtu)
        return peripheral
    }

    func connect(_ peripheral: CBPeripheral, mtu: Int = 185) {
        manager.connect(peripheral)
        deliver(.connected(peripheral.connection, mtu: mtu, on: .placeholder(1)))
        _ = takeCalls()
        recorder.told = []
    }

    /// The service and characteristics that were discovered.
    func discover(
        _ peripheral: CBPeripheral
    ) -> (service: CBService, measurement: CBCharacteristic, location: CBCharacteristic) {
        peripheral.discoverServices(nil)
        answer(.discoverServices(nil), .success([CentralFixture.service]))
        let service = peripheral.services![0]
        peripheral.discoverCharacteristics(nil, for: service)
        answer(
            .discoverCharacteristics(CentralFixture.range),
            .success([CentralFixture.measurement, CentralFixture.location])
        )
        _ = takeCalls()
        recorder.told = []
        return (service, service.characteristics![0], service.characteristics![1])
    }
}
