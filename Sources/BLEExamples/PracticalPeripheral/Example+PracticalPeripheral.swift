import Foundation

extension Example {
    /// A controller that owns its device, with its proximity and its states, and with a time limit for connecting.
    static let practicalPeripheral = Example(
        name: "practical",
        summary: "the nearest sensor is connected to, followed and left; a sensor that is off is given up",
        peripheral: Part(
            expected: ["Датчик включен", "Подписка", "Сброс", "Датчик свободен"],
            open: { HeartRateSensor(terminal: $0, options: $1) }
        ),
        central: Part(
            expected: [
                "Поиск устройств",
                "Устройство Датчик ЧСС, RSSI",
                "Ближайшее устройство Датчик ЧСС",
                "Состояние: connecting",
                "Состояние: connected",
                "Расположение 2",
                "Пульс 61", "Пульс 64", "Пульс 67",
                "Сброс выполнен",
                "Близость ",
                "Состояние: disconnecting",
                "Состояние: disconnected",
                "Состояние: connecting",
                "Состояние: disconnecting",
                "Время вышло",
                "Состояние: disconnected",
            ],
            open: { DeviceViewController(terminal: $0, options: $1) }
        )
    )
}

extension HeartRateSensor: Screen {
    func userReads(_ line: String) {}
}

extension DeviceViewController: Screen {
    func userReads(_ line: String) {}
}
