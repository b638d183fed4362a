import ArgumentParser
import BLE
import Glibc

/// A peripheral and a central in one process, on two controllers in software.
struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Let a peripheral and a central talk, without any hardware."
    )

    @Option(help: ArgumentHelp("Write the central's HCI traffic to this file (btsnoop).", valueName: "file"))
    var capture: String?

    @Flag(name: .shortAndLong, help: "Log on standard error; twice for debugging, thrice for all.")
    var verbose: Int

    func run() async throws {
        let path = capture ?? "\(environment("TMPDIR") ?? "/tmp")/ble-demo-\(getpid()).btsnoop"
        let conversation = Conversation()
        try conversation.header()
        let isDone: Void? = try await within(.seconds(15)) { try await converse(conversation, capturePath: path) }
        if isDone == nil { throw BLEError.timedOut("the demo") }
        try Output.standard.line("\nAll of the central's HCI traffic is in \(path)")
    }

    private func converse(_ conversation: Conversation, capturePath: String) async throws {
        var configuration = Adapter.Configuration()
        configuration.logger = OutputOptions.logger(verbosity: verbose)
        configuration.deviceName = "Heart"
        let specification = AdapterSpecification.virtual(name: "demo")
        let sensor = try await Adapter.open(specification, configuration: configuration)
        configuration.capturePath = capturePath
        configuration.deviceName = "Gateway"
        let gateway = try await Adapter.open(specification, configuration: configuration)

        let heart = try await HeartRatePeripheral(adapter: sensor, conversation: conversation)
        try await HeartRateCentral(adapter: gateway, conversation: conversation).meet()
        await heart.stop()
        await gateway.close()
        await sensor.close()
    }
}

/// What both sides say, each in its column, with the time since the start.
private struct Conversation: Sendable {
    private let start = ContinuousClock.now
    private static let width = 44

    func header() throws {
        try Output.standard.line("    time  " + column("peripheral") + "central")
        try Output.standard.line(
            "   -----  " + column(String(repeating: "-", count: 40)) + String(repeating: "-", count: 40)
        )
    }

    func peripheral(_ text: String) throws {
        try Output.standard.line("\(stamp)  \(text)")
    }

    func central(_ text: String) throws {
        try Output.standard.line("\(stamp)  " + column("") + text)
    }

    private func column(_ text: String) -> String {
        text + String(repeating: " ", count: max(1, Self.width - text.count))
    }

    /// Seconds and milliseconds.
    private var stamp: String {
        let milliseconds = (ContinuousClock.now - start) / .milliseconds(1)
        let whole = Int(milliseconds)
        let fraction = String(whole % 1000)
        let text = "\(whole / 1000).\(String(repeating: "0", count: 3 - fraction.count))\(fraction)"
        return String(repeating: " ", count: max(0, 8 - text.count)) + text
    }
}

/// A heart rate sensor with a body location and a control point.
private struct HeartRatePeripheral {
    private let adapter: Adapter
    private let advertisement: AdvertisingSet
    private let events: Task<Void, any Error>

    init(adapter: Adapter, conversation: Conversation) async throws {
        self.adapter = adapter
        let published = try await adapter.peripheral.publish([
            ServiceDefinition(
                uuid: "180D",
                characteristics: [
                    CharacteristicDefinition(
                        uuid: "2A37",
                        properties: .notify,
                        permissions: [],
                        value: .stored([0x00, 60])
                    ),
                    CharacteristicDefinition(
                        uuid: "2A38",
                        properties: .read,
                        permissions: .read,
                        value: .stored([0x01])
                    ),
                    CharacteristicDefinition(
                        uuid: "2A39",
                        properties: .write,
                        permissions: .write,
                        value: .stored([0x00], maximumLength: 1)
                    ),
                ]
            )
        ])
        let measurement = published[0].characteristics[0].valueHandle
        let serverEvents = await adapter.peripheral.events()
        events = Task {
            for await event in serverEvents {
                switch event {
                case .connected(_, let address): try conversation.peripheral("connected to \(address)")
                case .disconnected(_, let reason): try conversation.peripheral("disconnected: \(reason)")
                case .mtuChanged(_, let mtu): try conversation.peripheral("MTU is \(mtu)")
                case .read(_, let handle, _): try conversation.peripheral("value \(handle) was read")
                case .written(_, let handle, _, let value, _):
                    try conversation.peripheral("value \(handle) was written: \(value.hexadecimal)")
                case .unsubscribed: try conversation.peripheral("nobody listens any more")
                case .subscribed:
                    try conversation.peripheral("somebody listens; five beats follow")
                    for rate in [UInt8(61), 64, 67, 65, 62] {
                        try await adapter.peripheral.notify([0x00, rate], of: measurement)
                    }
                }
            }
        }
        let data = AdvertisingData([
            .flags([.generalDiscoverable, .brEdrNotSupported]), .serviceUUIDs(["180D"], isComplete: true),
        ])
        advertisement = try await adapter.peripheral.startAdvertising(
            AdvertisementConfiguration(
                advertisingData: data,
                scanResponseData: AdvertisingData([.completeLocalName("Heart")])
            )
        )
        try conversation.peripheral("advertising Heart Rate as \(try await adapter.information.identityAddress)")
    }

    func stop() async {
        await advertisement.stop()
        events.cancel()
    }
}

/// A gateway that finds the sensor and uses all it has.
private struct HeartRateCentral {
    let adapter: Adapter
    let conversation: Conversation

    func meet() async throws {
        let address = try await find()
        let sensor = try await adapter.central.connect(to: address, timeout: .seconds(5))
        try conversation.central("connected")
        let services = try await sensor.discoverAll()
        try conversation.central("discovered \(services.count) services, MTU \(await sensor.mtu)")
        for service in services {
            try conversation.central("  \(service.uuid.name ?? "\(service.uuid)")")
            for characteristic in service.characteristics {
                try conversation.central("    \(characteristic.uuid.name ?? "\(characteristic.uuid)")")
            }
        }
        let location = try characteristic("2A38", in: services)
        try conversation.central("body sensor location: \(try await sensor.read(location.valueHandle).hexadecimal)")
        try await sensor.write([0x01], to: try characteristic("2A39", in: services).valueHandle)
        try conversation.central("energy expended was reset")
        try await listen(sensor, try characteristic("2A37", in: services))
        await sensor.disconnect()
        try conversation.central("disconnected")
    }

    private func find() async throws -> DeviceAddress {
        try conversation.central("scanning for Heart Rate")
        for try await advertisement in adapter.central.scan(ScanOptions(serviceUUIDs: ["180D"], name: "Heart")) {
            try conversation.central(
                "found \(advertisement.localName ?? "?") at \(advertisement.address), \(advertisement.rssi ?? 0) dBm"
            )
            return advertisement.address
        }
        throw BLEError.notFound("no advertisement of the sensor")
    }

    private func listen(_ sensor: RemotePeripheral, _ measurement: RemoteCharacteristic) async throws {
        let beats = try await sensor.subscribe(to: measurement)
        var count = 0
        for try await beat in beats {
            try conversation.central("heart rate \(beat.value.last ?? 0)")
            count += 1
            if count == 5 { break }
        }
        guard count == 5 else { throw BLEError.notFound("the sensor's five notifications") }
        await beats.cancel()
    }

    private func characteristic(_ uuid: BluetoothUUID, in services: [RemoteService]) throws -> RemoteCharacteristic {
        guard let found = services.flatMap(\.characteristics).first(where: { $0.uuid == uuid }) else {
            throw BLEError.notFound("characteristic \(uuid)")
        }
        return found
    }
}
