import Foundation

protocol PeripheralViewControllerDelegate: AnyObject {
    func getBrightness() -> Data

    func updateDeviceName(_ value: String)
    func updateDeviceUUID(_ value: String)
    func updateStatus(_ value: PeripheralViewControllerStatus)
    func updateMessage(_ value: String)

    func showMessage(title: String, message: String)
}

enum PeripheralViewControllerStatus: String {
    case none
    case advertising
}

class PeripheralViewController: PeripheralViewControllerDelegate, TerminalApp {
    let terminal: any Terminal
    let manager: PeripheralManager

    var brightness: Float = 0.5 {
        willSet {
            if (0...1).contains(newValue) {
                print("Brightness: \(newValue)")

                if manager.isSubscribedToBrightness {
                    manager.updateBrightnessCharacteristic(with: newValue)
                }
            }
        }
    }

    init(terminal: any Terminal, options: [String: Any] = [:]) {
        self.terminal = terminal
        manager = PeripheralManager(terminal: terminal, options: options)
        manager.delegate = self

        print(manager.deviceBroadcast)
    }

    func viewWillDisappear() {
        if manager.isAdvertising {
            manager.stopAdvertising()
        }
    }

    func getBrightness() -> Data {
        return Data(from: brightness)
    }

    func updateDeviceName(_ value: String) {
        print("Device name: \(value)")
    }

    func updateDeviceUUID(_ value: String) {
        print("Device UUID: \(value)")
    }

    func updateStatus(_ value: PeripheralViewControllerStatus) {
        print("Status: \(value)")
    }

    func updateMessage(_ value: String) {
        print("Message: \(value)")
    }

    func showMessage(title: String, message: String) {
        print("\(title): \(message)")
    }
}
