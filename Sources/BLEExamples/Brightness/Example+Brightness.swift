import Foundation

extension Example {
    /// A phone reads another phone's name, sends it a message and follows the brightness of its screen.
    static let brightness = Example(
        name: "brightness",
        summary: "a phone names itself, takes a message and tells the brightness of its screen",
        peripheral: Part(
            expected: [
                "PeripheralManagerState: poweredOn",
                "Added service \(DEVICE_INFORMATION_SERVICE_UUID)",
                "Added service \(DEVICE_BRIGHTNESS_SERVICE_UUID)",
                "Status: advertising",
                "Central subscribed to characteristic \(DEVICE_BRIGHTNESS_VALUE_CHARACTERISTIC_UUID)",
                "Message: Olá, periférico!",
                "Brightness: 0.8",
                "Central unsubscribed to characteristic \(DEVICE_BRIGHTNESS_VALUE_CHARACTERISTIC_UUID)",
            ],
            open: { PeripheralViewController(terminal: $0, options: $1) }
        ),
        central: Part(
            expected: [
                "poweredOn",
                "Discovered: Peripheral Device",
                "Connected: ",
                "Status: connected",
                "Device name: ",
                "Brightness: 0.5",
                "Brightness: 0.8",
            ],
            open: { CentralViewController(terminal: $0, options: $1) }
        )
    )
}

extension PeripheralViewController: Screen {
    /// Moves the slider when a message requests it.
    func userReads(_ line: String) {
        if line == "Message: Olá, periférico!" { brightness = 0.8 }
    }
}

extension CentralViewController: Screen {
    /// Writes a message to the phone that shows this brightness.
    func userReads(_ line: String) {
        if line == "Brightness: 0.5" { message = "Olá, periférico!" }
    }
}
