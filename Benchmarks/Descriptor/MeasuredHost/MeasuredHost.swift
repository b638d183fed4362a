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
/// The app, which asks the host for all this, runs on the adapter's loop where `$MEASURED_APP` is `loop`, and else on the
/// threads that all tasks share.
@main
struct MeasuredHost {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3 else { return print("usage: measured-host server|client ADAPTER") }
        var configuration = Adapter.Configuration()
        configuration.stateLocation = .nowhere
        configuration.mtu = 247
        let adapter = try await Adapter.open(AdapterSpecification(parsing: arguments[2]), configuration: configuration)
        let isOnLoop = getenv("MEASURED_APP").map { String(cString: $0) } == "loop"
        try await withTaskExecutorPreference(isOnLoop ? adapter.taskExecutor : nil) {
            if arguments[1] == "server" {
                try await MeasuredServer(adapter).obey(commandLines())
            } else {
                try await MeasuredClient(adapter).obey(commandLines())
            }
        }
        await adapter.close()
    }

    private static func commandLines() -> AsyncStream<Command> {
        let (lines, continuation) = AsyncStream<Command>.makeStream()
        DispatchQueue.global().async {
            while let line = readLine() { continuation.yield(Command(line)) }
            continuation.finish()
        }
        return lines
    }
}

struct Command: Sendable {
    let verb: String
    let duration: Duration

    init(_ line: String) {
        let words = line.split(separator: " ")
        verb = words.first.map(String.init) ?? ""
        duration = words.count > 1 ? .seconds(Double(words[1]) ?? 0) : .zero
    }
}

/// Writes a line at once, whatever standard output is.
func tell(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = unsafe Glibc.write(1, bytes, bytes.count)
}
