import BluetoothTypes

/// How the outcome of a call is delivered.
enum Caller: Sendable {
    /// To a suspended task.
    case task(WaitingCall)
    /// To a closure, called on the loop.
    case callback(@Sendable (Result<Void, HostError>) -> Void)
    /// To the submission queue, which counts the writes and values that it handed over.
    case submission
    /// To one call that sends a value to several clients.
    case broadcast(Broadcast)
    /// Nowhere.
    case unawaited

    func isTask(_ call: WaitingCall) -> Bool {
        switch self {
        case .task(let own): own === call
        case .broadcast(let broadcast): broadcast.caller.isTask(call)
        case .callback, .submission, .unawaited: false
        }
    }
}

/// A suspended call of an app. It ends once: with its outcome or with the cancellation of its task. Used on the loop only.
final class WaitingCall: @unchecked Sendable {
    private var continuation: UnsafeContinuation<Result<Void, HostError>, Never>?
    private var isCancelled = false

    /// Whether the caller still waits.
    var isWaiting: Bool { continuation != nil }

    /// - Returns: whether the call may begin: a cancellation can arrive before it.
    fileprivate func begin(_ continuation: UnsafeContinuation<Result<Void, HostError>, Never>) -> Bool {
        guard !isCancelled else {
            continuation.resume(returning: .failure(.cancelled))
            return false
        }
        self.continuation = continuation
        return true
    }

    func end(_ result: Result<Void, HostError>) {
        continuation.take()?.resume(returning: result)
    }

    func cancel() {
        isCancelled = true
        end(.failure(.cancelled))
    }
}

/// One value on its way to several clients. Used on the loop only.
final class Broadcast: @unchecked Sendable {
    let caller: Caller
    private var remaining: Int
    private var failure: HostError?

    init(_ count: Int, _ caller: Caller) {
        remaining = count
        self.caller = caller
    }

    /// Counts one client.
    ///
    /// - Returns: the outcome of the whole with the last client. A client that disconnects is no failure.
    func clientEnded(_ result: Result<Void, HostError>) -> Result<Void, HostError>? {
        switch result {
        case .success, .failure(.disconnected): break
        case .failure(let error): failure = failure ?? error
        }
        remaining -= 1
        guard remaining == 0 else { return nil }
        return failure.map { .failure($0) } ?? .success(())
    }
}

extension BluetoothHost {
    /// Suspends the task until its call has ended; cancelling the task ends it at once.
    ///
    /// - Parameter begin: called on the loop, in the order of the calls of a thread.
    nonisolated(nonsending) func wait(
        _ begin: @escaping @Sendable (isolated BluetoothHost, WaitingCall) -> Void
    ) async throws(HostError) {
        let call = WaitingCall()
        let result = await withTaskCancellationHandler {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Result<Void, HostError>, Never>) in
                // A cancellation that precedes the call must not arrive after it has begun.
                guard !Task.isCancelled else { return continuation.resume(returning: .failure(.cancelled)) }
                self.call(.beginWaiting, BeginningCall(call: call, continuation: continuation, begin: begin))
            }
        } onCancel: {
            loop.execute { self.assumeIsolated { $0.cancel(call) } }
        }
        try result.get()
    }

    private func cancel(_ call: WaitingCall) {
        let isWaiting = call.isWaiting
        call.cancel()
        guard isWaiting else { return }
        for link in links.values {
            if link.att.remove(call) { pumpLanes(of: link) }
        }
        endInput()
    }
}

private struct BeginningCall: Sendable {
    let call: WaitingCall
    let continuation: UnsafeContinuation<Result<Void, HostError>, Never>
    let begin: @Sendable (isolated BluetoothHost, WaitingCall) -> Void
}

extension LoopFunction<BeginningCall> {
    fileprivate static let beginWaiting = LoopFunction { host, beginning in
        if beginning.call.begin(beginning.continuation) { beginning.begin(host, beginning.call) }
    }
}
