import BLEProfiles

/// The result of one check of `ble doctor`.
struct Finding: Hashable, Sendable {
    enum Severity: String, Hashable, Sendable {
        case good
        /// It may prevent the use of the controller.
        case warning
        /// It prevents the use of the controller.
        case problem
    }

    var severity: Severity
    var text: String
    /// The advice to the user.
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
