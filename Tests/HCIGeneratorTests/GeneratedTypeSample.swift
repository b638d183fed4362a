import Testing

/// An entry of a table and its Swift type.
struct GeneratedTypeSample: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let entry: String
    let swift: String

    static let all = commands + fields + events
}
