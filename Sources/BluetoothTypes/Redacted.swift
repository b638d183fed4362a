#if !hasFeature(Embedded)
    /// A placeholder for a secret in descriptions and reflections.
    ///
    /// A type that holds keys uses it in its `CustomReflectable` conformance. Then `print`, string interpolation,
    /// `String(reflecting:)`, `dump` and the descriptions of enclosing types show only the other properties.
    package struct Redacted: CustomStringConvertible, CustomReflectable, Sendable {
        package init() {}

        /// Returns a redacted value for a secret, or nil for nil.
        package static func optional<Secret>(_ secret: Secret?) -> Redacted? { secret.map { _ in Redacted() } }

        package var description: String { "redacted" }

        package var customMirror: Mirror { Mirror(self, children: [:], displayStyle: .struct) }
    }
#endif
