#if !hasFeature(Embedded)
    /// Stands for a secret in descriptions and reflections.
    ///
    /// A type that holds keys is `CustomReflectable` with it. `print`, string interpolation, `String(reflecting:)`,
    /// `dump` and the descriptions of the types around it then show the rest of its properties.
    package struct Redacted: CustomStringConvertible, CustomReflectable, Sendable {
        package init() {}

        /// A redacted value where there is a secret, else nil.
        package static func optional<Secret>(_ secret: Secret?) -> Redacted? { secret.map { _ in Redacted() } }

        package var description: String { "redacted" }

        package var customMirror: Mirror { Mirror(self, children: [:], displayStyle: .struct) }
    }
#endif
