import BLE
import ProgramSupport

/// A client of a ``MeasuredServer`` or a compatible server.
struct MeasuredClient {
    private let adapter: Adapter

    init(_ adapter: Adapter) {
        self.adapter = adapter
    }

    func obey(_ commands: AsyncStream<Command>) async throws {
        let peer = try await adapter.central.connect(toAnyOf: MeasuredClient.addresses)
        let services = try await peer.discoverAll()
        guard let characteristics = services.first(where: { $0.uuid == "FFF0" })?.characteristics,
            characteristics.count == 3
        else {
            fail("the peer has \(services.count) services, and not the measured one")
        }
        let short = [UInt8](repeating: 0x55, count: 20)
        let long = [UInt8](repeating: 0x55, count: 244)
        let received = Counter()
        writeLine("{\"connected\": true}")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for await command in commands {
                switch command.verb {
                case "reads":
                    let handle = characteristics[0].valueHandle
                    let durations = try await Measurement.of(command.duration) { _ = try await peer.read(handle) }
                    writeLine(durations.json)
                case "writes":
                    let handle = characteristics[1].valueHandle
                    let durations = try await Measurement.of(command.duration) {
                        try await peer.write(short, to: handle)
                    }
                    writeLine(durations.json)
                case "commands":
                    let handle = characteristics[1].valueHandle
                    let throughput = try await Throughput.of(command.duration) {
                        try await peer.write(long, to: handle, kind: .withoutResponse)
                    }
                    writeLine(throughput.json)
                case "subscribe":
                    let subscription = try await peer.subscribe(to: characteristics[2])
                    group.addTask {
                        for try await _ in subscription { received.increment() }
                    }
                    writeLine("{}")
                case "count":
                    writeLine("{\"received\": \(received.take())}")
                default:
                    writeLine("{\"unknown\": \"\(command.verb)\"}")
                }
            }
            group.cancelAll()
        }
    }

    /// The addresses of the hosts on null controllers and on software controllers.
    static var addresses: [DeviceAddress] {
        [0x4E55_4C00_0001, 0x4E55_4C00_0002, 0x5642_4C45_0001, 0x5642_4C45_0002].map {
            DeviceAddress($0, isRandom: false)
        }
    }
}
