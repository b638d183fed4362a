// swift-format-ignore-file: AlwaysUseLowerCamelCase

import CoreBluetooth
import Foundation

protocol DeviceCentralObserver: DeviceControllerObserver {
    func centralIsReady(_ central: DeviceCentral)
    func central(_ central: DeviceCentral, didSee device: DeviceController)
    func central(_ central: DeviceCentral, didTimeOutConnectingTo device: DeviceController)
    func central(_ central: DeviceCentral, didFailWith error: Error?)
}

/// Finds devices and connects to them. It has a controller for each device, all on its queue.
class DeviceCentral: NSObject {
    private var manager: CBCentralManager!
    private let queue: DispatchQueue
    private(set) var devices: [UUID: DeviceController] = [:]
    private var timeouts: [UUID: DispatchWorkItem] = [:]
    weak var observer: DeviceCentralObserver?

    init(queue: DispatchQueue, options: [String: Any] = [:]) {
        self.queue = queue
        super.init()
        manager = CBCentralManager(delegate: self, queue: queue, options: options)
    }

    func scan() {
        manager.scanForPeripherals(
            withServices: [CBUUID(string: DeviceController.heartRateService)],
            options: [CBCentralManagerScanOptionAllowDuplicatesKey: true]
        )
    }

    func stopScan() {
        manager.stopScan()
    }

    /// The device with the strongest signal among those in range.
    func nearestDevice(at date: Date = Date()) -> DeviceController? {
        return devices.values.filter { $0.proximity.isInRange(at: date) }.max {
            ($0.proximity.weightedMean(at: date) ?? -.infinity) < ($1.proximity.weightedMean(at: date) ?? -.infinity)
        }
    }

    /// Connects. The system would keep trying indefinitely, so `timeout` limits it, in seconds.
    func connect(_ device: DeviceController, timeout: TimeInterval) {
        let work = DispatchWorkItem { [weak self, weak device] in
            guard let self, let device else { return }
            self.timeOut(device)
        }
        timeouts[device.peripheral.identifier]?.cancel()
        timeouts[device.peripheral.identifier] = work
        queue.asyncAfter(deadline: .now() + timeout, execute: work)

        manager.connect(device.peripheral, options: nil)
        device.updateState()
    }

    // called to cancel and/or disconnect
    func disconnect(_ device: DeviceController) {
        cancelTimeout(for: device.peripheral)
        manager.cancelPeripheralConnection(device.peripheral)
        device.updateState()
    }

    /// Releases a device. The system disconnects a device without an owner.
    func forget(_ device: DeviceController) {
        cancelTimeout(for: device.peripheral)
        devices[device.peripheral.identifier] = nil
    }

    private func timeOut(_ device: DeviceController) {
        guard device.state == .connecting else { return }
        disconnect(device)
        observer?.central(self, didTimeOutConnectingTo: device)
    }

    private func cancelTimeout(for peripheral: CBPeripheral) {
        timeouts.removeValue(forKey: peripheral.identifier)?.cancel()
    }
}

extension DeviceCentral: CBCentralManagerDelegate {
    func centralManagerDidUpdateState(_ central: CBCentralManager) {
        dispatchPrecondition(condition: .onQueue(queue))
        if central.state == .poweredOn {
            observer?.centralIsReady(self)
        }
    }

    func centralManager(
        _ central: CBCentralManager,
        didDiscover peripheral: CBPeripheral,
        advertisementData: [String: Any],
        rssi RSSI: NSNumber
    ) {
        // The controller owns the device, and this object owns the controller. The system releases a device without an
        // owner.
        let device = devices[peripheral.identifier] ?? DeviceController(peripheral: peripheral)
        devices[peripheral.identifier] = device
        device.observer = observer
        device.didSee(rssi: RSSI.intValue, at: Date())
        observer?.central(self, didSee: device)
    }

    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        cancelTimeout(for: peripheral)
        devices[peripheral.identifier]?.updateState()
    }

    func centralManager(_ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: Error?) {
        cancelTimeout(for: peripheral)
        devices[peripheral.identifier]?.updateState()
        observer?.central(self, didFailWith: error)
    }

    func centralManager(
        _ central: CBCentralManager,
        didDisconnectPeripheral peripheral: CBPeripheral,
        error: Error?
    ) {
        cancelTimeout(for: peripheral)
        devices[peripheral.identifier]?.updateState()
    }
}
