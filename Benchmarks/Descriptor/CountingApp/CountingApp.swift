import BLE
import Dispatch
import Glibc
import ProgramSupport

/// An app that counts advertisements or performs GATT operations, for the comparison with BlueZ.
///
///     counting-app ADAPTER scan       counts each received advertisement
///     counting-app ADAPTER connect    connects to the peer of the kernel controller
///
/// It performs the commands on standard input, one per line, and answers each with a line of JSON:
///
///     count                           prints the number of advertisements or notifications since the last `count`
///     reads N | writes N | commands N as `connect`: N reads, writes or writes without response, one after the other
///     subscribe                       as `connect`: subscribes to the notifications
///
/// `Benchmarks/BlueZ/counting_app.py` is the same app on bleak. The app runs on the adapter's loop if `$MEASURED_APP`
/// is `loop`, otherwise on the shared thread pool.
@main
struct CountingApp {
    let adapter: Adapter
    let received = Counter()

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3 else { fail("usage: counting-app ADAPTER scan|connect") }
        var configuration = Adapter.Configuration()
        configuration.stateLocation = .nowhere
        let adapter = try await Adapter.open(AdapterSpecification(parsing: arguments[1]), configuration: configuration)
        let app = CountingApp(adapter: adapter)
        let isOnLoop = getenv("MEASURED_APP").map { String(cString: $0) } == "loop"
        try await withTaskExecutorPreference(isOnLoop ? adapter.taskExecutor : nil) {
            try await arguments[2] == "scan" ? app.scan() : app.connect()
        }
        await adapter.close()
    }

    private func scan() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for try await _ in adapter.central.scan(ScanOptions(reportsDuplicates: true)) { received.increment() }
            }
            group.addTask {
                for await line in Self.lines() where line == "count" { writeLine("{\"received\": \(received.take())}") }
            }
            writeLine("{\"ready\": true}")
            try await group.next()
            group.cancelAll()
        }
    }

    private func connect() async throws {
        let peer = try await adapter.central.connect(to: DeviceAddress(0x4E55_4C00_0002, isRandom: false))
        let services = try await peer.discoverAll()
        guard let characteristics = services.first(where: { $0.uuid == "FFF0" })?.characteristics,
            characteristics.count == 3
        else {
            fail("the peer has \(services.count) services, and not the measured one")
        }
        let (read, written) = (characteristics[0].valueHandle, characteristics[1].valueHandle)
        let value = [UInt8](repeating: 0x55, count: 20)
        writeLine("{\"ready\": true}")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for await line in Self.lines() {
                let words = line.split(separator: " ")
                let count = words.count > 1 ? Int(words[1]) ?? 0 : 0
                switch words.first {
                case "reads":
                    for _ in 0..<count { _ = try await peer.read(read) }
                case "writes":
                    for _ in 0..<count { try await peer.write(value, to: written) }
                case "commands":
                    for _ in 0..<count { try await peer.write(value, to: written, kind: .withoutResponse) }
                case "subscribe":
                    let subscription = try await peer.subscribe(to: characteristics[2])
                    group.addTask {
                        for try await _ in subscription { received.increment() }
                    }
                default:
                    writeLine("{\"received\": \(received.take())}")
                    continue
                }
                writeLine("{\"operations\": \(count)}")
            }
            group.cancelAll()
        }
    }

    /// The lines of standard input, read by a thread of their own.
    private static func lines() -> AsyncStream<String> {
        let (lines, continuation) = AsyncStream<String>.makeStream()
        DispatchQueue.global().async {
            while let line = readLine() { continuation.yield(line) }
            continuation.finish()
        }
        return lines
    }
}
