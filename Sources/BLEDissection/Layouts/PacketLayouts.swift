/// The layouts of command parameters and of the return parameters in Command Complete, after the status (Vol 4, Part E,
/// 7).
///
/// The tables `parameters` and `returns` are generated from `Sources/BLEHCI/Tables`.
enum CommandLayouts {
    /// Returns the layout of a command's return parameters. If only the layout of its parameters is known, it returns
    /// only a status.
    static func returns(of opcode: UInt16) -> ParameterLayout? {
        returns[opcode] ?? (parameters[opcode] == nil ? nil : .empty)
    }
}

/// The layouts of event parameters (Vol 4, Part E, 7.7), except Command Complete, whose parameters depend on the
/// command.
///
/// The tables `events` and `leEvents` are generated from `Sources/BLEHCI/Tables`.
enum EventLayouts {}
