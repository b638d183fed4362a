import ESPHomeProtocol
import Foundation
import Logging

/// The format of log lines.
enum LogFormat: String, CaseIterable, Sendable {
    /// `2026-01-31T12:00:00.000Z info ble-gateway: message key=value`
    case text
    /// An object with `time`, `level`, `logger`, `message` and `metadata`.
    case json
}

/// Writes each message as one line to standard error.
struct LineLogHandler: LogHandler {
    private static let timeFormat = Date.ISO8601FormatStyle(includingFractionalSeconds: true)

    let label: String
    let format: LogFormat
    var logLevel: Logger.Level
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?

    /// Sets up the loggers of the process. To be called once.
    static func bootstrap(_ settings: GatewaySettings) {
        LoggingSystem.bootstrap { label in
            LineLogHandler(label: label, format: settings.logFormat, logLevel: settings.logLevel)
        }
    }

    init(label: String, format: LogFormat, logLevel: Logger.Level) {
        self.label = label
        self.format = format
        self.logLevel = logLevel
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var metadata =
            metadata
            .merging(metadataProvider?.get() ?? [:]) { $1 }
            .merging(event.metadata ?? [:]) { $1 }
        if let error = event.error { metadata["error"] = "\(error)" }
        StandardError.write(
            line(level: event.level, message: "\(event.message)", metadata: metadata, time: Date()) + "\n"
        )
    }

    /// A message as one line, without its line break. Metadata is sorted by its keys.
    func line(level: Logger.Level, message: String, metadata: Logger.Metadata, time: Date) -> String {
        let time = time.formatted(Self.timeFormat)
        switch format {
        case .text:
            let fields = metadata.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
            return Self.singleLine("\(time) \(level) \(label): \(message)\(fields)")
        case .json:
            var object: [String: Any] = [
                "time": time, "level": level.rawValue, "logger": label, "message": message,
            ]
            if !metadata.isEmpty { object["metadata"] = metadata.mapValues { "\($0)" } }
            let data = try? JSONSerialization.data(
                withJSONObject: object,
                options: [.sortedKeys, .withoutEscapingSlashes]
            )
            return data.map { String(decoding: $0, as: UTF8.self) } ?? "{}"
        }
    }

    /// Replaces by spaces the characters, which peers can put in names, that act on a terminal.
    private static func singleLine(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.map { $0.isPrintable ? $0 : " " }))
    }
}
