import BLE
import BluetoothHost
import Dispatch
import Glibc

/// A gateway for the endurance run, with a controller at a UNIX socket.
///
/// It keeps links to `COUNT` peripherals, and scans now and then. On each link it reads and writes a value and receives
/// notifications.
///
/// It answers each line on standard input with a line of JSON, which has the counts of ``HostInspection`` and the
/// number of received values:
///
///     report      the counts now
///     close       the counts after everything was closed; the program then ends
@main
struct EnduranceHost {
    /// The public addresses of the controller's peripherals begin here.
    private static let firstAddress: UInt64 = 0x4E55_4C00_1000

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3, let count = UInt64(arguments[2]) else {
            return print("usage: endurance-host ADAPTER COUNT")
        }
        var configuration = Adapter.Configuration()
        configuration.stateLocation = .nowhere
        let adapter = try await Adapter.open(AdapterSpecification(parsing: arguments[1]), configuration: configuration)
        let values = ValueCounter()
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<count {
                let address = DeviceAddress(firstAddress + index, isRandom: false)
                group.addTask { await keep(address, on: adapter.central, values) }
            }
            group.addTask { await scan(adapter.central) }
            for await line in lines() where line == "report" { await report(adapter.host, values) }
            group.cancelAll()
        }
        await adapter.close()
        await report(adapter.host, values)
    }

    /// Keeps one peripheral connected, and uses each connection until it ends.
    private static func keep(_ address: DeviceAddress, on central: Central, _ values: ValueCounter) async {
        let backoff = ReconnectionBackoff(initialDelay: .milliseconds(200), maximumDelay: .seconds(5))
        try? await central.maintain(address, backoff: backoff) { peer in
            let characteristics = try await peer.discoverAll().flatMap(\.characteristics)
            guard let value = characteristics.first(where: { $0.uuid == "FFF1" }),
                let notified = characteristics.first(where: { $0.uuid == "FFF2" })
            else { return await peer.disconnect() }
            let subscription = try await peer.subscribe(to: notified)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for try await _ in subscription { await values.add() }
                }
                group.addTask {
                    while true {
                        try await peer.write([1, 2, 3], to: value.valueHandle)
                        _ = try await peer.read(value.valueHandle)
                        try await peer.write([4, 5, 6], to: value.valueHandle, kind: .withoutResponse)
                        await values.add()
                        try await Task.sleep(for: .seconds(2))
                    }
                }
                defer { group.cancelAll() }
                try await group.next()
            }
        }
    }

    /// Scans for a few seconds every half minute, until the task is cancelled.
    private static func scan(_ central: Central) async {
        while !Task.isCancelled {
            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    do {
                        for try await _ in central.scan() {}
                    } catch {}
                }
                group.addTask { try? await Task.sleep(for: .seconds(5)) }
                await group.next()
                group.cancelAll()
            }
            try? await Task.sleep(for: .seconds(25))
        }
    }

    private static func report(_ host: BluetoothHost, _ values: ValueCounter) async {
        var fields = Mirror(reflecting: await host.inspect()).children.map { child in
            let number: Int = if let isSet = child.value as? Bool { isSet ? 1 : 0 } else { child.value as? Int ?? 0 }
            return "\"\(child.label ?? "")\": \(number)"
        }
        fields.append("\"values\": \(await values.count)")
        if let contradiction = await host.contradiction() { fields.append("\"contradiction\": \"\(contradiction)\"") }
        // Not by `print`: its buffer is flushed only with that of standard input, which a thread occupies.
        let line = Array("{\(fields.joined(separator: ", "))}\n".utf8)
        _ = unsafe line.withUnsafeBytes { unsafe write(STDOUT_FILENO, $0.baseAddress, $0.count) }
    }

    /// The lines of standard input, up to its end or a line `close`.
    private static func lines() -> AsyncStream<String> {
        AsyncStream { continuation in
            DispatchQueue.global().async {
                while let line = readLine(), line != "close" { continuation.yield(line) }
                continuation.finish()
            }
        }
    }
}

/// The number of values that were received and transferred.
private actor ValueCounter {
    private(set) var count = 0

    func add() { count += 1 }
}
