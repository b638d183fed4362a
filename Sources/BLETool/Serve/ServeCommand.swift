import BLEProfiles
import BluetoothTypes

/// A line that `ble serve` reads on its standard input.
enum ServeCommand: Hashable, Sendable {
    case set(CharacteristicSelector, [UInt8])
    case notify(CharacteristicSelector, [UInt8])
    case indicate(CharacteristicSelector, [UInt8])
    /// Replaces the data of the periodic advertising train.
    case train([UInt8])
    /// Transfers the synchronization with the train to all clients, with a value for their apps.
    case transfer(UInt16)
    /// Ends the links of all clients.
    case disconnect
    /// Lets clients begin pairings for a time; nil for no longer.
    case window(Seconds?)
    /// An answer to a question about a pairing.
    case answer(PairingReply)
    case quit

    /// Reads a line; nil if it is blank.
    init?(parsing line: String) throws(ArgumentProblem) {
        let words = line.split { $0 == " " || $0 == "\t" || $0 == "\r" }.map(String.init)
        guard let verb = words.first else { return nil }
        switch (verb, words.count) {
        case ("set", 3): self = .set(try CharacteristicSelector(argument: words[1]), try ServeCommand.value(words[2]))
        case ("notify", 3):
            self = .notify(try CharacteristicSelector(argument: words[1]), try ServeCommand.value(words[2]))
        case ("indicate", 3):
            self = .indicate(try CharacteristicSelector(argument: words[1]), try ServeCommand.value(words[2]))
        case ("train", 2): self = .train(try ServeCommand.value(words[1]))
        case ("transfer", 1): self = .transfer(0)
        case ("transfer", 2):
            guard let value = UInt16(words[1]) else {
                throw ArgumentProblem("transfer takes a number from 0 to 65535, or nothing")
            }
            self = .transfer(value)
        case ("disconnect", 1): self = .disconnect
        case ("window", 2): self = .window(try words[1] == "close" ? nil : Seconds(argument: words[1]))
        case ("passkey", _), ("yes", _), ("no", _): self = .answer(try ServeCommand.reply(line, verb))
        case ("quit", 1): self = .quit
        case ("set", _), ("notify", _), ("indicate", _):
            throw ArgumentProblem("\(verb) takes a characteristic and a value, as in: \(verb) 2A19 64")
        case ("train", _):
            throw ArgumentProblem("train takes AD structures, as in: train 0416091AFF")
        case ("transfer", _):
            throw ArgumentProblem("transfer takes a number from 0 to 65535, or nothing")
        case ("window", _):
            throw ArgumentProblem("window takes a time, or close, as in: window 60")
        case ("disconnect", _), ("quit", _):
            throw ArgumentProblem("\(verb) takes nothing after it")
        default:
            throw ArgumentProblem(
                "\"\(terminalSafe(verb))\" is not a command; known are set, notify, indicate, train, transfer, disconnect, window, "
                    + "passkey, yes, no, quit"
            )
        }
    }

    /// An answer that names its question. Several peers may pair with a server at a time, and one may give up while a
    /// person types the answer.
    private static func reply(_ line: String, _ verb: String) throws(ArgumentProblem) -> PairingReply {
        if let reply = PairingReply(parsing: line), reply.question != nil { return reply }
        throw ArgumentProblem(
            verb == "passkey"
                ? "passkey takes the number of its question and six digits, as in: passkey 1 012345"
                : "\(verb) takes the number of its question, as in: \(verb) 1"
        )
    }

    /// Hexadecimal digits, or `-` for an empty value.
    private static func value(_ text: String) throws(ArgumentProblem) -> [UInt8] {
        text == "-" ? [] : try [UInt8](argument: text)
    }
}
