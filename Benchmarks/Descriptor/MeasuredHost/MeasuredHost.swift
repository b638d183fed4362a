import BLE
import Dispatch
import Glibc

/// A server or a client that does what it is told on standard input, a command in each line, and answers with a line of
/// JSON:
///
///     reads S | writes S | commands S     a client's requests, or writes without response of 244 octets, for S seconds
///     subscribe                           has a client receive notifications
///     notifications S                     as many of 244 octets as the link takes, for S seconds
///     count                               how many values came unasked since the last `count`
///
/// `pair` is both in one process, each on a loop of its own; a command begins with `server` or `client` then.
///
/// The app, which asks the host for all this, runs on the adapter's loop where `$MEASURED_APP` is `loop`, and else on the
/// threads that all tasks share.
@main
struct MeasuredHost {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3 else { return print("usage: measured-host server|client|pair ADAPTER") }
        let specification = try AdapterSpecification(parsing: arguments[2])
        if arguments[1] == "pair" {
            let (server, client) = pairCommands()
            async let served: Void = serve(specification, server)
            try await ask(specification, client)
            try await served
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

    private static func withAdapter(
        _ specification: AdapterSpecification,
        _ body: @Sendable (Adapter) async throws -> Void
    ) async throws {
        var configuration = Adapter.Configuration()
        configuration.stateLocation = .nowhere
        configuration.mtu = 247
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

/// Writes a line at once, whatever standard output is.
func tell(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = unsafe Glibc.write(1, bytes, bytes.count)
}
