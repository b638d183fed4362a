import ArgumentParser

extension ParsableArguments {
    /// Returns the message with which arguments are refused; nil if they are accepted.
    static func problem(with arguments: [String]) -> String? {
        do {
            _ = try parse(arguments)
            return nil
        } catch {
            return message(for: error)
        }
    }
}
