import BLE
import BluetoothSensors
import ESPHomeProtocol
import Foundation
import GatewayCore

/// The data of the status page as a JSON object. All texts of devices and clients are without control characters.
struct StatusJSON {
    private static let textLimit = 240
    private static let timeFormat = Date.ISO8601FormatStyle(includingFractionalSeconds: true)

    let source: StatusPage.Source
    let status: GatewayStatus
    let devices: ReceivedDevices.Snapshot

    var text: String {
        let health = Health(status)
        return JSONText.object([
            ("name", JSONText.string(source.name)),
            ("version", JSONText.string(Gateway.version)),
            ("time", Self.time(Date())),
            ("health", health.json),
            ("port", status.port.map { "\($0)" } ?? "null"),
            ("servesClients", "\(status.servesClients)"),
            ("scanMode", JSONText.string(status.scanMode.rawValue)),
            (
                "advertisements",
                JSONText.object([
                    ("received", "\(status.advertisementCount)"),
                    ("forwarded", "\(status.forwardedAdvertisementCount)"),
                    ("dropped", "\(status.droppedAdvertisementCount)"),
                ])
            ),
            ("adapters", Self.array(status.adapters.map(adapter))),
            ("clients", Self.array(status.clients.map(client))),
            ("connectionLimit", "\(status.connectionLimit)"),
            ("connections", Self.array(status.connections.map(connection))),
            ("broker", status.broker.map(broker) ?? "null"),
            (
                "signal",
                JSONText.object([
                    ("slot", "\(devices.slot)"),
                    ("slotCount", "\(ReceivedDevices.slots.count)"),
                    ("slotDuration", "\(ReceivedDevices.slots.duration)"),
                ])
            ),
            ("devices", Self.array(devices.devices.map(device))),
            ("forgottenDevices", "\(devices.forgottenCount)"),
            ("events", Self.array(source.events.events.map(event))),
        ])
    }

    private static func array(_ elements: [String]) -> String { "[" + elements.joined(separator: ", ") + "]" }

    private static func time(_ time: Date) -> String { JSONText.string(time.formatted(timeFormat)) }

    private static func safe(_ text: String?) -> String {
        text.map { JSONText.string($0.printable(limit: textLimit)) } ?? "null"
    }

    /// Seconds with one decimal.
    private static func seconds(_ age: Double) -> String { JSONText.number((age * 10).rounded() / 10) }

    private func adapter(_ adapter: GatewayStatus.AdapterStatus) -> String {
        JSONText.object([
            ("name", Self.safe(adapter.name)),
            ("isOpen", "\(adapter.isOpen)"),
            ("isScanning", "\(adapter.isScanning)"),
            ("failure", Self.safe(adapter.failure)),
            ("connections", "\(adapter.connectionCount)"),
        ])
    }

    private func client(_ client: GatewayStatus.ClientStatus) -> String {
        JSONText.object([
            ("address", Self.safe(client.address)),
            ("information", JSONText.string(client.information)),
            ("receivesAdvertisements", "\(client.receivesAdvertisements)"),
            ("forwarded", "\(client.advertisementCount)"),
            ("dropped", "\(client.droppedAdvertisementCount)"),
        ])
    }

    private func connection(_ connection: GatewayStatus.ConnectionStatus) -> String {
        JSONText.object([
            ("address", Self.safe(connection.address)),
            ("isConnected", "\(connection.isConnected)"),
            ("client", Self.safe(connection.client)),
        ])
    }

    private func broker(_ broker: GatewayStatus.BrokerStatus) -> String {
        JSONText.object([
            ("address", Self.safe(broker.address)),
            ("isConnected", "\(broker.isConnected)"),
            ("waiting", "\(broker.waitingCount)"),
            ("delivered", "\(broker.deliveredCount)"),
            ("dropped", "\(broker.droppedCount)"),
        ])
    }

    private func device(_ device: ReceivedDevices.Device) -> String {
        let adapters = status.adapters
        return JSONText.object([
            ("address", JSONText.string("\(device.address)")),
            ("isRandom", "\(device.address.isRandom)"),
            ("name", device.name.map(JSONText.string) ?? "null"),
            ("rssi", device.rssi.map { "\($0)" } ?? "null"),
            ("age", Self.seconds(device.age)),
            ("adapter", Self.safe(adapters.indices.contains(device.adapter) ? adapters[device.adapter].name : nil)),
            ("advertisements", "\(device.advertisementCount)"),
            ("reports", Self.array(device.reports.map { report($0.report, $0.age) })),
            ("signal", "[" + device.signal.map { $0.map { "\($0)" } ?? "null" }.joined(separator: ",") + "]"),
        ])
    }

    private func report(_ report: SensorReport, _ age: Double) -> String {
        JSONText.object([
            ("format", Self.safe(report.format.rawValue)),
            ("model", Self.safe(report.model)),
            ("isEncrypted", "\(report.protection == .authenticated)"),
            ("age", Self.seconds(age)),
            ("readings", Self.array(report.readings.map(reading))),
        ])
    }

    private func reading(_ reading: SensorReading) -> String {
        var fields = [("name", Self.safe(reading.name))]
        switch reading.value {
        case .number(let number): fields.append(("value", JSONText.number(number)))
        case .text(let text): fields.append(("value", Self.safe(text)))
        case .boolean(let state): fields.append(("value", "\(state)"))
        case .event(let event, let count):
            fields.append(("value", Self.safe(count.map { "\(event) \($0)" } ?? event)))
        }
        if let unit = reading.unit { fields.append(("unit", Self.safe(unit))) }
        return JSONText.object(fields)
    }

    private func event(_ event: GatewayEvent) -> String {
        JSONText.object([
            ("number", "\(event.number)"),
            ("time", Self.time(event.time)),
            ("kind", JSONText.string(event.kind.rawValue)),
            ("subject", JSONText.string(event.subject)),
            ("detail", event.detail.map(JSONText.string) ?? "null"),
            ("count", "\(event.count)"),
        ])
    }
}
