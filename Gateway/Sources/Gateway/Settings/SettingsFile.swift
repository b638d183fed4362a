import ESPHomeProtocol
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

    /// A JSON value, as far as errors show it.
    struct Value: Decodable {
        /// The greatest number of characters of a value in an error.
        static let textLimit = 80

        /// Whether the value is true or false.
        let isFlag: Bool
        /// The value in one line.
        let text: String

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            let flag = try? container.decode(Bool.self)
            isFlag = flag != nil
            let full: String =
                if let flag {
                    "\(flag)"
                } else if let number = try? container.decode(Int.self) {
                    "\(number)"
                } else if let number = try? container.decode(Double.self) {
                    "\(number)"
                } else if let string = try? container.decode(String.self) {
                    "\"\(string)\""
                } else if let list = try? container.decode([Value].self) {
                    "[\(list.map(\.text).joined(separator: ", "))]"
                } else if let members = try? container.decode([String: Value].self) {
                    "{\(members.keys.sorted().map { "\"\($0)\": …" }.joined(separator: ", "))}"
                } else {
                    "null"
                }
            text = full.printable(limit: Self.textLimit)
        }
    }

    /// Returns the values by their keys. ``object()`` has numbers for true and false, as `JSONSerialization` does.
    ///
    /// - Throws: ``SettingsError`` if the contents are not a JSON object.
    func values() throws(SettingsError) -> [String: Value] {
        do {
            return try JSONDecoder().decode([String: Value].self, from: Data(contents))
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
