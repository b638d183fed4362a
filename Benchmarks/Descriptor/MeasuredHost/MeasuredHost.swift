import BLE
import Dispatch
import Glibc
import ProgramSupport

/// A server or a client that performs the commands on standard input, one per line. It answers each with a line of
/// JSON:
///
///     reads S | writes S | commands S     sends requests, or writes without response of 244 bytes, for S seconds
///     subscribe                           makes the client receive notifications
///     notifications S                     sends notifications of 244 bytes at full rate for S seconds
///     count                               prints the number of values received since the last `count`
///
/// `start` measures how long the first operations of a process take, and ends.
///
/// `pair` runs both in one process, each on its own loop. A command then begins with `server` or `client`.
///
/// The app, which makes these calls, runs on the adapter's loop if `$MEASURED_APP` is `loop`, otherwise on the shared
/// thread pool.
@main
struct MeasuredHost {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3 else { fail("usage: measured-host server|client|pair|start ADAPTER") }
        let specification = try AdapterSpecification(parsing: arguments[2])
        if arguments[1] == "pair" {
            let (server, client) = pairCommands()
            async let served: Void = serve(specification, server)
            try await ask(specification, client)
            try await served
        } else if arguments[1] == "start" {
            try await MeasuredStart(specification: specification, configuration: configuration).run()
        } else if arguments[1] == "server" {
            try await serve(specification, commands())
        } else {
            try await ask(specification, commands())
        }
    }

    private static func serve(_ specification: AdapterSpecification, _ commands: AsyncStream<Command>) async throws {
        try await withAdapter(specification) { try await MeasuredServer($0).obey(commands) }
    }

    private static func ask(_ specification: AdapterSpecification, _ commands: AsyncStream<Command>) async throws {
        try await withAdapter(specification) { try await MeasuredClient($0).obey(commands) }
    }

    private static var configuration: Adapter.Configuration {
        var configuration = Adapter.Configuration()
        configuration.stateLocation = .nowhere
        configuration.mtu = 247
        return configuration
    }

    private static func withAdapter(
        _ specification: AdapterSpecification,
        _ body: @Sendable (Adapter) async throws -> Void
    ) async throws {
        let adapter = try await Adapter.open(specification, configuration: configuration)
        let isOnLoop = getenv("MEASURED_APP").map { String(cString: $0) } == "loop"
        try await withTaskExecutorPreference(isOnLoop ? adapter.taskExecutor : nil) { try await body(adapter) }
        await adapter.close()
    }

    private static func commands() -> AsyncStream<Command> {
        let (commands, continuation) = AsyncStream<Command>.makeStream()
        readLines {
            continuation.yield(Command($0))
        } atEnd: {
            continuation.finish()
        }
        return commands
    }

    private static func pairCommands() -> (server: AsyncStream<Command>, client: AsyncStream<Command>) {
        let (server, serverContinuation) = AsyncStream<Command>.makeStream()
        let (client, clientContinuation) = AsyncStream<Command>.makeStream()
        readLines { line in
            let isServers = line.hasPrefix("server ")
            let command = Command(line.dropFirst("server ".count))
            if isServers { serverContinuation.yield(command) } else { clientContinuation.yield(command) }
        } atEnd: {
            serverContinuation.finish()
            clientContinuation.finish()
        }
        return (server, client)
    }

    private static func readLines(
        _ take: @escaping @Sendable (String) -> Void,
        atEnd: @escaping @Sendable () -> Void
    ) {
        DispatchQueue.global().async {
            while let line = readLine() { take(line) }
            atEnd()
        }
    }
}

struct Command: Sendable {
    let verb: String
    let duration: Duration

    init(_ line: some StringProtocol) {
        let words = line.split(separator: " ")
        verb = words.first.map { String($0) } ?? ""
        duration = words.count > 1 ? .seconds(Double(words[1]) ?? 0) : .zero
    }
}
