/// An invalid setting: where it is, its value, and what to use instead.
struct SettingsError: Error, Equatable, CustomStringConvertible {
    /// The file and its key, the environment variable, or the option.
    let place: String
    /// The invalid value, as text; nil if the place itself is wrong.
    let value: String?
    /// What to do.
    let advice: String

    var description: String {
        if let value { "\(place): \(value) is not valid; \(advice)" } else { "\(place): \(advice)" }
    }
}
