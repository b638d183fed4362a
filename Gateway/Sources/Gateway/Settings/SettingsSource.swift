import Configuration
import ESPHomeProtocol
import Foundation

/// A place that settings come from: the options of the command, the environment, or a file.
struct SettingsSource {
    private let snapshot: any ConfigSnapshot
    /// Whether lists come from texts that are split at commas.
    private var splitsAtCommas = false
    /// The value of a setting as errors show it; nil if this place does not have it.
    private var valueText: @Sendable (Setting) -> String? = { _ in nil }
    /// Names the place of a setting in an error.
    private let place: @Sendable (Setting) -> String

    /// Settings that the command's options give.
    static func options(_ values: [Setting: ConfigContent]) -> SettingsSource {
        let values = Dictionary(
            uniqueKeysWithValues: values.map { ($0.key, ConfigValue($1, isSecret: false)) }
        )
        let provider = InMemoryProvider(name: "options", values: values)
        return SettingsSource(snapshot: provider.snapshot(), place: { $0.option ?? $0.rawValue })
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
                place: "environment variable \(variable.printable(limit: SettingsFile.Value.textLimit))",
                value: nil,
                advice: "there is no such setting; use one of \(known.joined(separator: ", "))"
            )
        }
        let provider = EnvironmentVariablesProvider(environmentVariables: variables)
            .prefixKeys(with: ConfigKey(["ble", "gateway"]))
        return SettingsSource(
            snapshot: provider.snapshot(),
            splitsAtCommas: true,
            valueText: { variables[$0.environmentVariable]?.quotedForError },
            place: { "environment variable \($0.environmentVariable)" }
        )
    }

    /// Settings in a file of JSON.
    ///
    /// - Throws: ``SettingsError`` in these cases:
    ///   - the contents are not a JSON object
    ///   - a key is no setting
    ///   - a value is an object, or a list of others than strings
    ///   - only one of value and setting is true or false
    static func file(_ file: SettingsFile) throws(SettingsError) -> SettingsSource {
        let object = try file.object()
        let values = try file.values()
        for (key, value) in object.sorted(by: { $0.key < $1.key }) {
            let place = "\(file.path): \(key.quotedForError)"
            guard let setting = Setting(rawValue: key) else {
                let known = Setting.allCases.map(\.rawValue).joined(separator: ", ")
                throw SettingsError(place: place, value: nil, advice: "there is no such setting; use one of \(known)")
            }
            // The snapshot has no value for an object, and its error about such a list does not name the type.
            let isOtherList = (value as? [Any])?.allSatisfy { $0 is String } == false
            let text = values[key]?.text
            guard !(value is [String: Any]), !isOtherList else { throw setting.wrongType(text, at: place) }
            // The snapshot takes numbers for true or false, and the reverse. Null stands for an absent setting.
            let isFlag = values[key]?.isFlag ?? false
            guard isFlag == (setting.type == .bool) || value is NSNull else { throw setting.wrongType(text, at: place) }
        }
        do {
            let snapshot = try JSONSnapshot(
                data: file.contents.span.bytes,
                providerName: file.path,
                parsingOptions: .default
            )
            return SettingsSource(
                snapshot: snapshot,
                valueText: { values[$0.rawValue]?.text },
                place: { "\(file.path): \"\($0.rawValue)\"" }
            )
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
            guard let content = try snapshot.value(forKey: setting.key, type: setting.type).value?.content else {
                return nil
            }
            if splitsAtCommas, setting == .adapters, case .stringArray(let pieces) = content {
                return LocatedValue(content: .stringArray(Self.joinSerialLines(pieces)), place: place)
            }
            return LocatedValue(content: content, place: place)
        } catch {
            throw setting.wrongType(valueText(setting), at: place)
        }
    }

    /// Joins the parts of adapters on serial lines, which have commas themselves: `serial:PATH,BAUD,flow=rtscts`.
    private static func joinSerialLines(_ pieces: [String]) -> [String] {
        var adapters: [String] = []
        for piece in pieces {
            let isPart = piece.first?.isNumber == true || piece.hasPrefix("flow=")
            if isPart, let line = adapters.last, line.hasPrefix("serial:") {
                adapters[adapters.count - 1] = "\(line),\(piece)"
            } else {
                adapters.append(piece)
            }
        }
        return adapters
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
            case .string(let text): text.quotedForError
            case .int(let number): "\(number)"
            case .bool(let flag): "\(flag)"
            case .stringArray(let texts): "[\(texts.map(\.quotedForError).joined(separator: ", "))]"
            default: "the value"
            }
        return SettingsError(place: place, value: text, advice: advice)
    }
}

extension String {
    /// The text in quotation marks, in one line and without control characters. A long text is shortened.
    var quotedForError: String { "\"\(printable(limit: SettingsFile.Value.textLimit))\"" }
}

extension Setting {
    /// The error that a value has another type than the setting.
    ///
    /// - Parameter value: the value as text. It is not shown if it may be a key or a password.
    fileprivate func wrongType(_ value: String?, at place: String) -> SettingsError {
        guard let value, !isSecret else {
            return SettingsError(place: place, value: nil, advice: "the value is not \(type.words)")
        }
        return SettingsError(place: place, value: value, advice: "use \(type.words)")
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
