/// The parameters of commands, and what Command Complete returns for them after the status (Vol 4, Part E, 7).
///
/// The tables `parameters` and `returns` are generated from `Sources/HCI/Tables`.
enum CommandLayouts {
    /// The layout of what a command returns. A command with a layout for its parameters alone returns a status alone.
    static func returns(of opcode: UInt16) -> ParameterLayout? {
        returns[opcode] ?? (parameters[opcode] == nil ? nil : .empty)
    }
}

/// The parameters of events (Vol 4, Part E, 7.7), except Command Complete, whose parameters depend on the command.
///
/// The tables `events` and `leEvents` are generated from `Sources/HCI/Tables`.
enum EventLayouts {}
