import BluetoothTypes

extension BluetoothUUID {
    /// Reads a UUID that the user has typed.
    package init(argument text: String) throws(ArgumentProblem) {
        guard let uuid = BluetoothUUID(text) else { throw ArgumentProblem(BluetoothUUID.problem(of: text)) }
        self = uuid
    }

    /// Why a text is not a UUID.
    package static func problem(of text: String) -> String {
        "\"\(terminalSafe(text))\" is not a UUID: use 4 or 8 hexadecimal digits, or 32 as 8-4-4-4-12"
    }

    /// The UUID with its name, if it has one: `2A19 (Battery Level)`.
    package var withName: String { name.map { "\(self) (\($0))" } ?? description }
}
