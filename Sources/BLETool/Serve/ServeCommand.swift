import BluetoothTypes
import Profiles

/// A line that `ble serve` reads on its standard input.
enum ServeCommand: Hashable, Sendable {
    case set(CharacteristicSelector, [UInt8])
    case notify(CharacteristicSelector, [UInt8])
    case indicate(CharacteristicSelector, [UInt8])
    /// Ends the links of all clients.
    case disconnect
    /// An answer to a question about a pairing.
    case answer(String)
    case quit

    /// Reads a line; nil where it is blank.
    init?(parsing line: String) throws(ArgumentProblem) {
        let words = line.split { $0 == " " || $0 == "\t" || $0 == "\r" }.map(String.init)
        guard let verb = words.first else { return nil }
        switch (verb, words.count) {
        case ("set", 3): self = .set(try CharacteristicSelector(argument: words[1]), try ServeCommand.value(words[2]))
        case ("notify", 3):
            self = .notify(try CharacteristicSelector(argument: words[1]), try ServeCommand.value(words[2]))
        case ("indicate", 3):
            self = .indicate(try CharacteristicSelector(argument: words[1]), try ServeCommand.value(words[2]))
        case ("disconnect", 1): self = .disconnect
        case ("passkey", 2): self = .answer(words[1])
        case ("yes", 1), ("no", 1): self = .answer(verb)
        case ("quit", 1): self = .quit
        case ("set", _), ("notify", _), ("indicate", _):
            throw ArgumentProblem("\(verb) takes a characteristic and a value, as in: \(verb) 2A19 64")
        case ("passkey", _): throw ArgumentProblem("passkey takes six digits, as in: passkey 012345")
        case ("disconnect", _), ("quit", _), ("yes", _), ("no", _):
            throw ArgumentProblem("\(verb) takes nothing after it")
        default:
            throw ArgumentProblem(
                "\"\(terminalSafe(verb))\" is not a command; known are set, notify, indicate, disconnect, passkey, "
                    + "yes, no, quit"
            )
        }
    }

    /// Hexadecimal digits, or `-` for no octets at all.
    private static func value(_ text: String) throws(ArgumentProblem) -> [UInt8] {
        text == "-" ? [] : try [UInt8](argument: text)
    }
}
