import Logging
import Synchronization

/// Keeps the messages of a logger, with their levels.
package final class LogRecorder: Sendable {
    private struct Handler: LogHandler {
        let recorder: LogRecorder
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            recorder.recorded.withLock { $0.append((event.level, "\(event.message)")) }
        }
    }

    private let recorded = Mutex<[(level: Logger.Level, message: String)]>([])

    package init() {}

    package var logger: Logger { Logger(label: "test", factory: { _ in Handler(recorder: self) }) }

    /// All messages, in their order.
    package var messages: [String] { recorded.withLock { $0.map(\.message) } }

    /// All messages with their levels, in their order, as "level: message".
    package var lines: [String] { recorded.withLock { $0.map { "\($0.level): \($0.message)" } } }

    /// The messages of a level, in their order.
    package func messages(_ level: Logger.Level) -> [String] {
        recorded.withLock { recorded in recorded.filter { $0.level == level }.map(\.message) }
    }
}
