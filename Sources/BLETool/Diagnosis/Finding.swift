import Profiles

/// One thing that `ble doctor` has looked at.
struct Finding: Hashable, Sendable {
    enum Severity: String, Hashable, Sendable {
        case good
        /// It may stand in the way.
        case warning
        /// It keeps the controller from being used.
        case problem
    }

    var severity: Severity
    var text: String
    /// What to do about it.
    var advice: String?

    init(_ severity: Severity, _ text: String, advice: String? = nil) {
        self.severity = severity
        self.text = text
        self.advice = advice
    }

    var json: JSON {
        [
            "event": "finding",
            "severity": .string(severity.rawValue),
            "text": .string(text),
            "advice": JSON(advice),
        ]
    }

    var lines: [String] {
        let mark =
            switch severity {
            case .good: "✓"
            case .warning: "!"
            case .problem: "✗"
            }
        return ["\(mark) \(text)"] + (advice.map { ["    \($0)"] } ?? [])
    }
}
