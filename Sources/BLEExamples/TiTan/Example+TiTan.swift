import Foundation

extension Example {
    /// A tablet and a phone that read, write and notify, including values for trusted devices only.
    static let tiTan = Example(
        name: "titan",
        summary: "a tablet's value is read, written and followed; another one asks for encryption",
        peripheral: Part(
            expected: [
                "peripheralManagerDidUpdateState 5",
                "Add service succeeded",
                "Start advertising succeeded",
                "Subscribed to \(kCharacteristicUUID)",
                "Subscribed to \(kEncryptedCharacteristicUUID)",
                "Read request",
                "Write request",
                "Unsubscribed from \(kCharacteristicUUID)",
            ],
            open: { TiTanPeripheralViewController(terminal: $0, options: $1) }
        ),
        central: Part(
            expected: [
                "peripheralManagerDidUpdateState 5",
                "Device TiTan, RSSI",
                "Connected",
                "Characteristic \(kCharacteristicUUID)",
                "Characteristic \(kEncryptedCharacteristicUUID)",
                "Notify \(kCharacteristicUUID) true",
                "Notify \(kEncryptedCharacteristicUUID) true",
                "Value TiTan dice hola",
                "Did write value",
                "Value Hola, TiTan",
            ],
            open: { TiTanCentralViewController(terminal: $0, options: $1) }
        )
    )
}

extension TiTanPeripheralViewController: Screen {
    func userReads(_ line: String) {}
}

extension TiTanCentralViewController: Screen {
    /// Chooses the device, reads its value, and answers.
    func userReads(_ line: String) {
        if line.hasPrefix("Device TiTan,") { didSelectRow(named: "TiTan") }
        if line.hasPrefix("Notify \(kEncryptedCharacteristicUUID)") { readValue() }
        if line == "Value TiTan dice hola" { writeValue("Hola, TiTan") }
    }
}
