import Synchronization

/// The lines that a command of `ble` has printed.
final class PrintedLines: Sendable {
    private let lines = Mutex<[String]>([])

    var all: [String] { lines.withLock { $0 } }

    func append(_ line: String) { lines.withLock { $0.append(line) } }

    /// The number of lines for an event.
    func count(of event: String) -> Int { all.count { $0.hasPrefix("{\"event\":\"\(event)\"") } }
}
