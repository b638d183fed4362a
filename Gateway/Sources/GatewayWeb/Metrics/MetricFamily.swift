/// Metrics of one name, as in Prometheus's text format 0.0.4.
struct MetricFamily: Sendable {
    /// The type of the metrics.
    enum Kind: String, Sendable {
        case counter, gauge, histogram, summary
    }

    /// A value with its labels.
    struct Sample: Sendable {
        /// What follows the name of the family, for example `_sum`.
        var suffix = ""
        var labels: [(name: String, value: String)]
        var value: Double
    }

    var name: String
    var help: String
    var kind: Kind
    var samples: [Sample]

    init(_ name: String, _ kind: Kind, _ help: String, samples: [Sample]) {
        self.name = name
        self.kind = kind
        self.help = help
        self.samples = samples
    }

    /// A family of one value without labels.
    init(_ name: String, _ kind: Kind, _ help: String, _ value: Double) {
        self.init(name, kind, help, samples: [Sample(labels: [], value: value)])
    }

    /// A family of one label, with a value for each of its values.
    init(_ name: String, _ kind: Kind, _ help: String, label: String, _ values: [(String, Double)]) {
        self.init(name, kind, help, samples: values.map { Sample(labels: [(label, $0.0)], value: $0.1) })
    }
}

/// Prometheus's text format 0.0.4.
enum Exposition {
    static let contentType = "text/plain; version=0.0.4; charset=utf-8"
    /// The greatest number of characters of a label's value.
    static let labelValueLimit = 128

    /// Families as text. Those without samples are left out, and of those with the same name all but the first.
    static func text(_ families: [MetricFamily]) -> String {
        var text = ""
        var names: Set<String> = []
        for family in families where !family.samples.isEmpty && names.insert(family.name).inserted {
            text += "# HELP \(family.name) \(escaped(family.help, quotes: false))\n"
            text += "# TYPE \(family.name) \(family.kind.rawValue)\n"
            for sample in family.samples {
                text += family.name + sample.suffix + labels(sample.labels) + " " + number(sample.value) + "\n"
            }
        }
        return text
    }

    private static func labels(_ labels: [(name: String, value: String)]) -> String {
        guard !labels.isEmpty else { return "" }
        let pairs = labels.map { "\($0.name)=\"\(escaped(String($0.value.prefix(labelValueLimit)), quotes: true))\"" }
        return "{" + pairs.joined(separator: ",") + "}"
    }

    private static func escaped(_ text: String, quotes: Bool) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\"" where quotes: result += "\\\""
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value > 0 ? "+Inf" : "-Inf" }
        return Int64(exactly: value).map { "\($0)" } ?? "\(value)"
    }

    /// A text with only the characters that the name of a metric or of a label can have.
    static func name(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            let isLetter = ("a"..."z").contains(scalar) || ("A"..."Z").contains(scalar) || scalar == "_"
            let isDigit = ("0"..."9").contains(scalar)
            if isDigit, result.isEmpty { result = "_" }
            result.unicodeScalars.append(isLetter || isDigit ? scalar : "_")
        }
        return result.isEmpty ? "_" : result
    }
}
