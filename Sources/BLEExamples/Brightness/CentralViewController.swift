import Foundation

protocol CentralViewControllerDelegate: AnyObject {
    func getMessage() -> String

    func updateConnected(_ value: String)
    func updateStatus(_ value: CentralViewControllerStatus)
    func updateBrightness(_ value: Float)
    func updateDeviceName(_ value: String)

    func showMessage(title: String, message: String)
}

enum CentralViewControllerStatus: String {
    case none
    case searching
    case connected
    case disconnected
}

class CentralViewController: CentralViewControllerDelegate, TerminalApp {
    let terminal: any Terminal
    let manager: CentralManager

    /// The contents of the text field.
    var message = "" {
        didSet { manager.sendMessage(message) }
    }

    init(terminal: any Terminal, options: [String: Any] = [:]) {
        self.terminal = terminal
        manager = CentralManager(terminal: terminal, options: options)
        manager.delegate = self

        print(manager.deviceBroadcast)
    }

    func viewWillDisappear() {
        if manager.isScanning {
            manager.stopScan()
        }
    }

    func getMessage() -> String {
        return message
    }

    func updateConnected(_ value: String) {
        print("Connected: \(value)")
    }

    func updateStatus(_ value: CentralViewControllerStatus) {
        print("Status: \(value)")
    }

    func updateBrightness(_ value: Float) {
        print("Brightness: \(value)")
    }

    func updateDeviceName(_ value: String) {
        print("Device name: \(value)")
    }

    func showMessage(title: String, message: String) {
        print("\(title): \(message)")
    }
}
