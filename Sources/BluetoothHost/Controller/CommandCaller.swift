import BLEHCI

/// The code that handles the outcome of a command.
class CommandCaller {
    /// Handles the controller's answer: the status and the return parameters that follow it.
    func receive(_ reply: RawSpan) {}

    func fail(_ failure: CommandFailure) {}
}

/// The caller of a command with a known type of return parameters.
final class TypedCommandCaller<C: Command>: CommandCaller {
    typealias Outcome = Result<C.ReturnParameters, CommandFailure>
    private let completion: (Outcome) -> Void

    init(_ completion: @escaping (Outcome) -> Void) {
        self.completion = completion
    }

    override func receive(_ reply: RawSpan) {
        do throws(CommandFailure) {
            completion(.success(try C.decodeReply(reply)))
        } catch {
            completion(.failure(error))
        }
    }

    override func fail(_ failure: CommandFailure) {
        completion(.failure(failure))
    }
}
