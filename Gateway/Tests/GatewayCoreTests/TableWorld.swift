import BLE
import NIOPosix

@testable import ESPHomeProtocol
@testable import GatewayCore

/// The adapters and connections of a gateway without a server, and a device on the virtual air.
struct TableWorld: Sendable {
    let adapters: [Adapter]
    let runners: [AdapterRunner]
    let scanner: Scanner
    let table: DeviceTable
    let device: Device
    private let hub: GatewayHub

    init(_ adapters: [Adapter], device: Device) {
        let configuration = GatewayConfiguration(name: "test")
        let scanner = Scanner(
            adapterCount: adapters.count,
            mode: .active,
            eventLoop: MultiThreadedEventLoopGroup.singleton.next(),
            logger: configuration.logger
        )
        let watch = AdapterWatch(FakeKernel())
        runners = adapters.enumerated().map { index, adapter in
            AdapterRunner(
                index: index,
                name: "adapter \(index)",
                source: .adapter(adapter),
                watch: watch,
                scanner: scanner,
                events: configuration.events,
                logger: configuration.logger
            )
        }
        let set = AdapterSet(runners: runners, scanner: scanner)
        self.adapters = adapters
        self.scanner = scanner
        table = DeviceTable(limit: 20, adapters: set, logger: configuration.logger)
        hub = GatewayHub(configuration: configuration, scanner: scanner, devices: table)
        self.device = device
    }

    /// Runs `body` while the adapters are open.
    func run(_ body: (TableWorld) async throws -> Void) async throws {
        try await withThrowingDiscardingTaskGroup { tasks in
            for runner in runners { tasks.addTask { [table] in await runner.run { table.adaptersChanged() } } }
            while runners.contains(where: { $0.usableAdapter == nil }) { await Task.yield() }
            try await body(self)
            tasks.cancelAll()
        }
    }

    /// A client without a channel; what it is sent is dropped.
    func makeClient() async throws -> Client {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        return try await loop.submit { [hub] in
            let session = APISession(
                server: ServerInformation(name: "test", address: 1, version: "1"),
                key: nil,
                now: loop.now
            )
            let handler = ClientHandler(hub: hub, session: session)
            return hub.makeClient(networkAddress: "192.0.2.1", handler: handler, eventLoop: loop)
        }.get()
    }
}

/// Runs `body` with a table of connections through virtual adapters.
///
/// - Parameter prepare: is called before the gateway uses the adapters.
func withTable(
    adapterCount: Int,
    air: String = #function,
    prepare: ([Adapter], Device) async throws -> Void = { _, _ in },
    run body: (TableWorld) async throws -> Void
) async throws {
    let name = "\(air) \(UInt64.random(in: 0...UInt64.max))"
    let device = try await Device(1, air: name)
    var adapters: [Adapter] = []
    for _ in 0..<adapterCount { adapters.append(try await Adapter.open(.virtual(name: name))) }
    try await prepare(adapters, device)
    try await TableWorld(adapters, device: device).run(body)
    for adapter in adapters { await adapter.close() }
}
