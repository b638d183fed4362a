import BLE

/// A lamp whose state can be written and is notified: a byte for on (1) or off (0), and a byte for the brightness in
/// percent.
struct DemoLamp {
    static let service: BluetoothUUID = "B1E00100-5EED-4000-8000-C0FFEE000000"
    static let state: BluetoothUUID = "B1E00101-5EED-4000-8000-C0FFEE000000"

    let adapter: Adapter
    private let stateHandle: AttributeHandle
    private let events: Events<PeripheralEvent>
    private let advertising: AdvertisingSet

    init(adapter: Adapter) async throws {
        self.adapter = adapter
        let services = try await adapter.peripheral.publish([
            ServiceDefinition(
                uuid: Self.service,
                characteristics: [
                    CharacteristicDefinition(
                        uuid: Self.state,
                        properties: [.read, .write, .writeWithoutResponse, .notify],
                        permissions: [.read, .write],
                        value: .stored([0, 100], maximumLength: 2)
                    )
                ]
            )
        ])
        stateHandle = services[0].characteristics[0].valueHandle
        events = await adapter.peripheral.events()
        advertising = try await adapter.peripheral.startAdvertising(
            AdvertisementConfiguration(
                interval: .milliseconds(500),
                advertisingData: AdvertisingData(
                    [.flags([.generalDiscoverable, .brEdrNotSupported])]
                        + AdvertisingData.Structure.lists(of: [Self.service])
                ),
                scanResponseData: AdvertisingData([.completeLocalName("Demo Lamp")])
            )
        )
    }

    /// Notifies each written state until the adapter is closed.
    func run() async throws {
        for await event in events {
            guard case .written(_, stateHandle, let offset, let value, _) = event else { continue }
            // The value may have been written again since this event. Only a part of it was written at an offset.
            let state = offset == 0 ? value : await adapter.peripheral.value(of: stateHandle)
            if let state { try await adapter.peripheral.notify(state, of: stateHandle) }
        }
    }
}
