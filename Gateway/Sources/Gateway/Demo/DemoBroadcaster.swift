import BLE

/// A sensor that broadcasts temperature and humidity in the BTHome v2 format, and accepts no connections.
struct DemoBroadcaster {
    let adapter: Adapter

    /// Broadcasts changing values until the adapter is closed or the task is cancelled.
    func run() async throws {
        // In units of 0.01 °C and of 0.01 %.
        var temperature = SimulatedReading(bounds: 1800...2300, step: 5)
        var humidity = SimulatedReading(bounds: 4000...6000, step: 25)
        var packet: UInt8 = 0
        while true {
            let advertising = try await adapter.peripheral.startAdvertising(
                AdvertisementConfiguration(
                    isConnectable: false,
                    isScannable: false,
                    interval: .milliseconds(500),
                    advertisingData: Self.data(
                        packet: packet,
                        temperature: temperature.next(),
                        humidity: humidity.next()
                    )
                )
            )
            try await Task.sleep(for: .seconds(5))
            await advertising.stop()
            packet &+= 1
        }
    }

    /// Service data of BTHome v2 without encryption: a device-information byte, then objects by increasing identifier.
    ///
    /// - Parameters:
    ///   - temperature: in units of 0.01 °C.
    ///   - humidity: in units of 0.01 %.
    static func data(packet: UInt8, temperature: Int, humidity: Int) -> AdvertisingData {
        let version2: UInt8 = 0x40
        let objects: [UInt8] = [0x00, packet, 0x02] + temperature.littleEndian16 + [0x03] + humidity.littleEndian16
        return AdvertisingData([
            .flags([.generalDiscoverable, .brEdrNotSupported]),
            .serviceData("FCD2", [version2] + objects),
            .completeLocalName("Demo Hygro"),
        ])
    }
}
