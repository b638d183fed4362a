import BLE
import BLEATT

/// The services of the peripheral in runs.
enum Served {
    static let address = DeviceAddress(0xF123_4567_89AB, isRandom: true)

    static let service = ServiceDefinition(
        uuid: Bumble.vendor(0x50),
        handle: 0x0100,
        characteristics: [
            CharacteristicDefinition(
                uuid: Bumble.vendor(0x51),
                handle: 0x0101,
                properties: [.read, .write],
                permissions: [.read, .write],
                value: .stored(RecordedRun.octets(300)),
                descriptors: [DescriptorDefinition(uuid: "2901", value: .stored(Array("A value".utf8)))]
            ),
            CharacteristicDefinition(
                uuid: Bumble.vendor(0x52),
                handle: 0x0104,
                properties: [.notify],
                permissions: [],
                value: .stored([])
            ),
            CharacteristicDefinition(
                uuid: Bumble.vendor(0x53),
                handle: 0x0107,
                properties: [.indicate],
                permissions: [],
                value: .stored([])
            ),
            CharacteristicDefinition(
                uuid: Bumble.vendor(0x54),
                handle: 0x010A,
                properties: [.writeWithoutResponse],
                permissions: [.write],
                value: .stored([])
            ),
            CharacteristicDefinition(
                uuid: Bumble.vendor(0x55),
                handle: 0x010C,
                properties: [.read],
                permissions: [.readEncrypted],
                value: .stored(Array("secret".utf8))
            ),
            CharacteristicDefinition(
                uuid: Bumble.vendor(0x56),
                handle: 0x010E,
                properties: [.read, .write],
                permissions: [.read, .write],
                value: .handled
            ),
        ]
    )
}

extension Adapter {
    /// Serves and advertises until `connections` clients have connected and disconnected.
    ///
    /// - Parameter react: called with the clients' events.
    func serve(
        _ stage: any Stage,
        connections: Int = 1,
        _ react: @escaping @Sendable (Peripheral, PeripheralEvent) async throws -> Void
    ) async throws {
        let peripheral = peripheral
        let events = await peripheral.events()
        _ = try await peripheral.publish([Served.service]) { _, access in
            if case .read = access { throw ATTErrorCode(rawValue: 0x80) } else { throw ATTErrorCode(rawValue: 0x81) }
        }
        let advertising = try await peripheral.startAdvertising(
            AdvertisementConfiguration(
                interval: .milliseconds(20),
                advertisingData: AdvertisingData([.flags([.generalDiscoverable, .brEdrNotSupported])]),
                scanResponseData: AdvertisingData([.completeLocalName("swift-ble")]),
                address: Served.address
            )
        )
        stage.tell("ready")
        var gone = 0
        for await event in events {
            try await react(peripheral, event)
            guard case .disconnected = event else { continue }
            gone += 1
            if gone == connections { break }
        }
        // By then the host has completed its own work after a link's end.
        try await stage.sleep(for: .milliseconds(300))
        await advertising.stop()
    }
}

extension RecordedRun {
    private static func serving(_ name: String, connections: Int = 1) -> RecordedRun {
        RecordedRun(name) { adapter, stage in
            try await adapter.serve(stage, connections: connections) { peripheral, event in
                // Clients also subscribe to Service Changed, which has its own values.
                guard case .subscribed(_, let handle, let kind) = event, handle >= Served.service.handle ?? 0 else {
                    return
                }
                // The response to the subscription is sent first.
                try await stage.sleep(for: .milliseconds(100))
                for count in 0..<8 {
                    let value = [UInt8(count)] + octets(count * 20)
                    switch kind {
                    case .notify: try await peripheral.notify(value, of: handle)
                    case .indicate: try await peripheral.indicate(value, of: handle)
                    }
                }
            }
        }
    }

    /// A peripheral and its clients.
    static let served: [RecordedRun] = [
        serving("served-to-bumble"),
        serving("served-to-bluez"),
        serving("served-prepared-writes"),
        serving("served-malformed", connections: 2),
        serving("served-lost-link"),
        RecordedRun("served-parameters") { adapter, stage in
            try await adapter.serve(stage) { peripheral, event in
                if case .connected(let client, _) = event { await peripheral.disconnectLater(client, stage) }
            }
        },
    ]
}

extension Peripheral {
    /// Ends a client's link from this side, after it has existed for a while.
    fileprivate func disconnectLater(_ client: ClientID, _ stage: any Stage) async {
        try? await stage.sleep(for: .seconds(2))
        await disconnect(client)
    }
}
