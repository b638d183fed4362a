import Configuration
import Foundation

/// A place that settings come from: the options of the command, the environment, or a file.
struct SettingsSource {
    private let snapshot: any ConfigSnapshot
    /// Names the place of a setting in an error.
    private let place: @Sendable (Setting) -> String

    /// Settings that the command's options give.
    static func options(_ values: [Setting: ConfigContent]) -> SettingsSource {
        let values = Dictionary(
            uniqueKeysWithValues: values.map { ($0.key, ConfigValue($1, isSecret: false)) }
        )
        let provider = InMemoryProvider(name: "options", values: values)
        return SettingsSource(snapshot: provider.snapshot()) { $0.option ?? $0.rawValue }
    }

    /// Settings in environment variables `BLE_GATEWAY_…`. An empty variable counts as absent.
    ///
    /// - Throws: ``SettingsError`` if a variable with the prefix is no setting.
    static func environment(_ variables: [String: String]) throws(SettingsError) -> SettingsSource {
        let variables = variables.filter { $0.key.hasPrefix(Setting.environmentPrefix) && !$0.value.isEmpty }
        let known = Setting.allCases.map(\.environmentVariable)
        let others = [SettingsFile.environmentVariable]
        for variable in variables.keys.sorted() where !(known + others).contains(variable) {
            throw SettingsError(
                place: "environment variable \(variable)",
                value: nil,
                advice: "there is no such setting; use one of \(known.joined(separator: ", "))"
            )
        }
        let provider = EnvironmentVariablesProvider(environmentVariables: variables)
            .prefixKeys(with: ConfigKey(["ble", "gateway"]))
        return SettingsSource(snapshot: provider.snapshot()) { "environment variable \($0.environmentVariable)" }
    }

    /// Settings in a file of JSON.
    ///
    /// - Throws: ``SettingsError`` if the contents are not a JSON object, or if a key is no setting.
    static func file(_ file: SettingsFile) throws(SettingsError) -> SettingsSource {
        let keys = try file.keys()
        let known = Setting.allCases.map(\.rawValue)
        for key in keys where !known.contains(key) {
            throw SettingsError(
                place: "\(file.path): \"\(key)\"",
                value: nil,
                advice: "there is no such setting; use one of \(known.joined(separator: ", "))"
            )
        }
        do {
            let snapshot = try JSONSnapshot(
                data: file.contents.span.bytes,
                providerName: file.path,
                parsingOptions: .default
            )
            return SettingsSource(snapshot: snapshot) { "\(file.path): \"\($0.rawValue)\"" }
        } catch {
            throw SettingsError(place: file.path, value: nil, advice: "the file is not valid: \(error.oneLine)")
        }
    }

    /// The value of a setting; nil if this place does not have it.
    ///
    /// - Throws: ``SettingsError`` if the value has another type.
    func value(of setting: Setting) throws(SettingsError) -> LocatedValue? {
        let place = place(setting)
        do {
            return try snapshot.value(forKey: setting.key, type: setting.type).value
                .map { LocatedValue(content: $0.content, place: place) }
        } catch {
            throw SettingsError(place: place, value: nil, advice: "the value is not \(setting.type.words)")
        }
    }
}

/// The value of a setting, with the place that it comes from.
struct LocatedValue {
    let content: ConfigContent
    let place: String

    /// The error that the value is not valid.
    func invalid(_ advice: String) -> SettingsError {
        let text =
            switch content {
            case .string(let text): "\"\(text)\""
            case .int(let number): "\(number)"
            case .bool(let flag): "\(flag)"
            case .stringArray(let texts): "\(texts)"
            default: "the value"
            }
        return SettingsError(place: place, value: text, advice: advice)
    }
}

extension ConfigType {
    /// The type in words, with its article.
    fileprivate var words: String {
        switch self {
        case .int: "an integer"
        case .bool: "true or false"
        case .stringArray: "a list of strings"
        default: "a string"
        }
    }
}
