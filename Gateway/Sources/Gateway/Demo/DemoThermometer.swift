import BLE

/// A connectable sensor that notifies its temperature and its battery level.
struct DemoThermometer {
    static let environmentalSensing: BluetoothUUID = "181A"
    static let temperature: BluetoothUUID = "2A6E"
    static let battery: BluetoothUUID = "180F"
    static let batteryLevel: BluetoothUUID = "2A19"

    let adapter: Adapter
    private let temperatureHandle: AttributeHandle
    private let batteryHandle: AttributeHandle
    private let advertising: AdvertisingSet

    init(adapter: Adapter) async throws {
        self.adapter = adapter
        let services = try await adapter.peripheral.publish([
            Self.service(Self.environmentalSensing, with: Self.temperature, value: 2150.littleEndian16),
            Self.service(Self.battery, with: Self.batteryLevel, value: [90]),
        ])
        temperatureHandle = services[0].characteristics[0].valueHandle
        batteryHandle = services[1].characteristics[0].valueHandle
        advertising = try await adapter.peripheral.startAdvertising(
            AdvertisementConfiguration(
                interval: .milliseconds(500),
                advertisingData: AdvertisingData(
                    [.flags([.generalDiscoverable, .brEdrNotSupported])]
                        + AdvertisingData.Structure.lists(of: [Self.environmentalSensing, Self.battery])
                ),
                scanResponseData: AdvertisingData([.completeLocalName("Demo Thermometer")])
            )
        )
    }

    /// Changes and notifies the values until the adapter is closed or the task is cancelled.
    func run() async throws {
        // In units of 0.01 °C and of 1 %.
        var temperature = SimulatedReading(bounds: 1900...2400, step: 7)
        var battery = SimulatedReading(bounds: 20...100, step: 1)
        var count = 0
        while true {
            try await Task.sleep(for: .seconds(1))
            try await send(temperature.next().littleEndian16, of: temperatureHandle)
            count += 1
            if count.isMultiple(of: 10) { try await send([UInt8(battery.next())], of: batteryHandle) }
        }
    }

    private func send(_ value: [UInt8], of handle: AttributeHandle) async throws {
        try await adapter.peripheral.setValue(value, of: handle)
        try await adapter.peripheral.notify(value, of: handle)
    }

    private static func service(
        _ uuid: BluetoothUUID,
        with characteristic: BluetoothUUID,
        value: [UInt8]
    ) -> ServiceDefinition {
        ServiceDefinition(
            uuid: uuid,
            characteristics: [
                CharacteristicDefinition(
                    uuid: characteristic,
                    properties: [.read, .notify],
                    permissions: .read,
                    value: .stored(value)
                )
            ]
        )
    }
}
