import Foundation

/// The configuration file: a JSON object with a member for each setting.
struct SettingsFile {
    /// The environment variable that names the file if no option does.
    static let environmentVariable = "BLE_GATEWAY_CONFIG"

    let path: String
    let contents: [UInt8]

    /// Reads a file.
    ///
    /// - Throws: ``SettingsError`` if it cannot be read.
    static func read(_ path: String) throws(SettingsError) -> SettingsFile {
        do {
            let data = try Data(contentsOf: URL(fileURLWithPath: path))
            return SettingsFile(path: path, contents: Array(data))
        } catch {
            let reason = FileManager.default.fileExists(atPath: path) ? "it cannot be read" : "it does not exist"
            throw SettingsError(place: path, value: nil, advice: "\(reason); name a readable file with --config")
        }
    }

    /// A JSON value of which only its type matters.
    private struct TypedValue: Decodable {
        /// Whether the value is true or false.
        let isFlag: Bool

        init(from decoder: any Decoder) throws {
            isFlag = (try? decoder.singleValueContainer().decode(Bool.self)) != nil
        }
    }

    /// Returns the keys whose values are true or false. ``object()`` has numbers for them, as `JSONSerialization` does.
    ///
    /// - Throws: ``SettingsError`` if the contents are not a JSON object.
    func flagKeys() throws(SettingsError) -> Set<String> {
        do {
            let values = try JSONDecoder().decode([String: TypedValue].self, from: Data(contents))
            return Set(values.filter(\.value.isFlag).keys)
        } catch {
            throw SettingsError(place: path, value: nil, advice: "the file must hold a JSON object")
        }
    }

    /// Returns the JSON object of the file, with a member for each setting.
    ///
    /// - Throws: ``SettingsError`` if the contents are not a JSON object.
    func object() throws(SettingsError) -> [String: Any] {
        do {
            guard let object = try JSONSerialization.jsonObject(with: Data(contents)) as? [String: Any] else {
                throw SettingsError(
                    place: path,
                    value: nil,
                    advice: "the file must hold a JSON object, as in {\"port\": 6053}"
                )
            }
            return object
        } catch let error as SettingsError {
            throw error
        } catch {
            let reason = (error as NSError).userInfo["NSDebugDescription"].map { ": \($0)" } ?? ""
            throw SettingsError(place: path, value: nil, advice: "the file must hold a JSON object\(reason)")
        }
    }
}
