import BLE
import ProgramSupport

/// What the first operations of a process take: to open an adapter, and to connect and read a value.
struct MeasuredStart {
    let specification: AdapterSpecification
    let configuration: Adapter.Configuration

    func run() async throws {
        let clock = ContinuousClock()
        let opening = clock.now
        let adapter = try await Adapter.open(specification, configuration: configuration)
        let opened = clock.now
        let peer = try await adapter.central.connect(toAnyOf: MeasuredClient.addresses)
        let connected = clock.now
        guard let value = try await peer.discoverAll().first?.characteristics.first else {
            return writeLine("{\"services\": 0}")
        }
        let bytes = try await peer.read(value.valueHandle)
        let read = clock.now
        let times = [("poweredOn", opening, opened), ("connected", opened, connected), ("firstValue", opened, read)]
            .map { "\"\($0)\": \(($2 - $1) / .milliseconds(1))" }
        writeLine("{\"bytes\": \(bytes.count), \(times.joined(separator: ", "))}")
        await adapter.close()
    }
}
