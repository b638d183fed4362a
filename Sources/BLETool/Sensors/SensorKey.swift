import BLEProfiles
import BluetoothSensors
import BluetoothTypes

/// The key of an encrypted sensor, as an argument or a line of a file: `ADDRESS=KEY`.
struct SensorKey: Hashable, Sendable {
    let address: DeviceAddress
    let key: BindKey

    /// Reads an address, `=` and 32 hexadecimal digits. Messages do not repeat the key.
    init(argument text: some StringProtocol) throws(ArgumentProblem) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map {
            $0.trimmingSpaces
        }
        guard parts.count == 2 else {
            throw ArgumentProblem("the key of a sensor is ADDRESS=KEY, as in A4:C1:38:00:00:01=000102…0f")
        }
        guard let address = DeviceAddress(parts[0], isRandom: true) else {
            throw ArgumentProblem(
                "\"\(terminalSafe(parts[0]))\" is not an address: it has six pairs of digits, as in F0:12:34:56:78:9A"
            )
        }
        guard let key = BindKey(hexadecimal: parts[1]) else {
            throw ArgumentProblem(
                "the key of \(address) has \(parts[1].count) characters, or others than hexadecimal digits; it has 32 digits"
            )
        }
        self.address = address
        self.key = key
    }

    /// Reads a file with a key on each line. Empty lines and lines that begin with `#` are ignored.
    static func keys(inFile path: String) async throws -> [SensorKey] {
        let text = String(decoding: try await File.read(path), as: UTF8.self)
        var keys: [SensorKey] = []
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let line = line.trimmingSpaces
            guard !line.isEmpty, !line.hasPrefix("#") else { continue }
            do {
                keys.append(try SensorKey(argument: line))
            } catch {
                throw FileError(path: path, problem: "line \(index + 1): \(error)")
            }
        }
        return keys
    }
}

extension StringProtocol {
    /// The text without spaces and tabs at its ends.
    fileprivate var trimmingSpaces: String {
        let start = drop { $0 == " " || $0 == "\t" }
        let end = start.reversed().drop { $0 == " " || $0 == "\t" }
        return String(end.reversed())
    }
}
