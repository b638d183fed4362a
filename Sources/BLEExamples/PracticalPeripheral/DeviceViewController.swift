import CoreBluetooth
import Foundation

/// The screen that shows the nearest sensor.
class DeviceViewController: DeviceCentralObserver, TerminalApp {
    let terminal: any Terminal
    let central: DeviceCentral
    private(set) var device: DeviceController?
    private var sightings = 0
    private var heartRates = 0
    private var wasConnected = false

    /// Seconds.
    static let timeout = 10.0
    /// For a device that is known to be off.
    static let shortTimeout = 0.25

    init(terminal: any Terminal, options: [String: Any] = [:]) {
        self.terminal = terminal
        central = DeviceCentral(queue: .main, options: options)
        central.observer = self
    }

    func viewWillDisappear() {
        central.stopScan()
    }

    func centralIsReady(_ central: DeviceCentral) {
        print("Поиск устройств")
        central.scan()
    }

    func central(_ central: DeviceCentral, didSee device: DeviceController) {
        sightings += 1
        print("Устройство \(device.peripheral.name ?? "?"), RSSI \(device.proximity.readings.last?.rssi ?? 127)")
        // A single sighting does not show how near a device is.
        guard sightings >= 3, self.device == nil, let nearest = central.nearestDevice() else { return }
        central.stopScan()
        self.device = nearest
        print("Ближайшее устройство \(nearest.peripheral.name ?? "?")")
        central.connect(nearest, timeout: DeviceViewController.timeout)
    }

    func central(_ central: DeviceCentral, didTimeOutConnectingTo device: DeviceController) {
        print("Время вышло")
    }

    func central(_ central: DeviceCentral, didFailWith error: Error?) {
        print("Ошибка: \(error?.localizedDescription ?? "")")
    }

    func device(_ device: DeviceController, didChangeTo state: CBPeripheralState) {
        switch state {
        case .connecting:
            print("Состояние: connecting")
        case .connected:
            print("Состояние: connected")
            wasConnected = true
        case .disconnecting:
            print("Состояние: disconnecting")
        case .disconnected:
            print("Состояние: disconnected")
            if wasConnected {
                // The device has had its turn: how long is it waited for?
                wasConnected = false
                central.connect(device, timeout: DeviceViewController.shortTimeout)
            }
        @unknown default:
            break
        }
    }

    func device(_ device: DeviceController, didReceiveHeartRate rate: Int) {
        print("Пульс \(rate)")
        heartRates += 1
        if heartRates == 3 { device.reset() }
    }

    func device(_ device: DeviceController, didReadLocation location: Int) {
        print("Расположение \(location)")
    }

    func device(_ device: DeviceController, didReset error: Error?) {
        print("Сброс \(error?.localizedDescription ?? "выполнен")")
        device.measureProximity()
    }

    func device(_ device: DeviceController, didMeasure proximity: Proximity) {
        print("Близость \(Int(proximity.weightedMean(at: Date()) ?? 127)), рядом: \(proximity.isInRange(at: Date()))")
        central.disconnect(device)
    }
}
