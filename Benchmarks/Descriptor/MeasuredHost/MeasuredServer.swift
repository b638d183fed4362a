import BLE
import ProgramSupport

/// A server with one value to read, one to write and one to notify.
struct MeasuredServer {
    private let adapter: Adapter

    init(_ adapter: Adapter) {
        self.adapter = adapter
    }

    func obey(_ commands: AsyncStream<Command>) async throws {
        let received = Counter()
        let notified = try await publish()
        let advertisement = AdvertisementConfiguration(
            advertisingData: AdvertisingData([.flags([.generalDiscoverable, .brEdrNotSupported])])
        )
        let events = await adapter.peripheral.events()
        // This task ends with the function.
        async let _: Void = {
            for await event in events {
                if case .written = event { received.increment() }
            }
        }()
        let advertising = try await adapter.peripheral.startAdvertising(advertisement)
        writeLine("{\"advertising\": true}")
        for await command in commands {
            switch command.verb {
            case "notifications":
                let value = [UInt8](repeating: 0x55, count: 244)
                let throughput = try await Throughput.of(command.duration) {
                    try await adapter.peripheral.notify(value, of: notified)
                }
                writeLine(throughput.json)
            case "count":
                writeLine("{\"received\": \(received.take())}")
            default:
                writeLine("{\"unknown\": \"\(command.verb)\"}")
            }
        }
        await advertising.stop()
    }

    /// Publishes the service.
    ///
    /// - Returns: the handle of the value to notify.
    private func publish() async throws -> AttributeHandle {
        let value = CharacteristicDefinition.Value.stored([UInt8](repeating: 0x55, count: 20))
        let services = try await adapter.peripheral.publish([
            ServiceDefinition(
                uuid: "FFF0",
                characteristics: [
                    CharacteristicDefinition(uuid: "FFF1", properties: .read, permissions: .read, value: value),
                    CharacteristicDefinition(
                        uuid: "FFF2",
                        properties: [.write, .writeWithoutResponse],
                        permissions: .write,
                        value: value
                    ),
                    CharacteristicDefinition(uuid: "FFF3", properties: .notify, permissions: .read, value: value),
                ]
            )
        ])
        return services[0].characteristics[2].valueHandle
    }
}
