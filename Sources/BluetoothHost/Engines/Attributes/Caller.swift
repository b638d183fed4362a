/// How the outcome of a call is delivered.
enum Caller: Sendable {
    /// To a suspended task.
    case task(CallToken)
    /// To a closure, called on the loop.
    case callback(@Sendable (Result<Void, HostError>) -> Void)
    /// To the submission queue, which counts the writes and values that it handed over.
    case submission
    /// To one call that sends a value to several clients.
    case broadcast(Broadcast)
    /// To the server, which records that the client knows this revision of the database.
    case serviceChanged(revision: UInt64)
    /// Nowhere.
    case unawaited

    /// The suspended call; nil if there is none.
    var call: CallToken? {
        switch self {
        case .task(let call): call
        case .broadcast(let broadcast): broadcast.caller.call
        case .callback, .submission, .serviceChanged, .unawaited: nil
        }
    }
}

/// One value on its way to several clients. Used on the loop only.
final class Broadcast: @unchecked Sendable {
    // @unchecked: used on the loop only.

    let caller: Caller
    private var remaining: Int
    private var failure: HostError?

    init(_ count: Int, _ caller: Caller) {
        remaining = count
        self.caller = caller
    }

    /// Whether the caller has the outcome.
    var hasEnded: Bool { remaining <= 0 }

    /// Stops waiting for further clients.
    ///
    /// - Returns: the outcome of the whole; nil if it had ended before.
    func end() -> Result<Void, HostError>? {
        guard !hasEnded else { return nil }
        remaining = 0
        return outcome
    }

    private var outcome: Result<Void, HostError> { failure.map { .failure($0) } ?? .success(()) }

    /// Counts one client.
    ///
    /// - Returns: the outcome of the whole with the last client. A client that disconnects is no failure.
    func clientEnded(_ result: Result<Void, HostError>) -> Result<Void, HostError>? {
        switch result {
        case .success, .failure(.disconnected): break
        case .failure(let error): failure = failure ?? error
        }
        remaining -= 1
        return remaining == 0 ? outcome : nil
    }
}
