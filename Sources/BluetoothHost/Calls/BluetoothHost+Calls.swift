// How calls of apps wait, and how they end: see `CallTable`.
extension BluetoothHost {
    /// Suspends the task until its call has ended; cancelling the task ends it at once.
    ///
    /// - Parameters:
    ///   - subject: what the call waits for. A cancellation removes the call from there.
    ///   - begin: called on the loop, in the order of the calls of a thread.
    /// - Returns: the call's outcome, unless it failed.
    @discardableResult
    nonisolated(nonsending) func wait(
        for subject: CallTable.Subject = .other,
        _ begin: @escaping @Sendable (isolated BluetoothHost, CallToken) -> Void
    ) async throws(HostError) -> CallOutcome {
        let call = calls.reserve(subject)
        let outcome = await withTaskCancellationHandler {
            await CallContinuation.wait { continuation in
                // A call that is made on the loop would begin before its cancellation arrives.
                guard !Task.isCancelled else {
                    calls.discard(call)
                    return continuation.resume(returning: .failure(.cancelled))
                }
                self.call(.beginWaiting, BeginningCall(call: call, continuation: continuation, begin: begin))
            }
        } onCancel: {
            loop.execute { self.assumeIsolated { $0.cancel(call) } }
        }
        if case .failure(let error) = outcome { throw error }
        return outcome
    }

    /// Resumes a suspended call. Does nothing if it has ended.
    func end(_ call: CallToken, _ outcome: CallOutcome) {
        timers.cancel(calls.end(call, outcome))
    }

    /// Resumes a suspended call that returns nothing, likewise.
    func end(_ call: CallToken, _ result: Result<Void, HostError>) {
        end(call, CallOutcome(result))
    }

    /// Ends a call whose task is cancelled, and removes it from what it waits for.
    private func cancel(_ call: CallToken) {
        guard let cancelled = calls.cancel(call) else { return }
        timers.cancel(cancelled.timer)
        switch cancelled.subject {
        case .other, .time, .close: break
        case .stream(let identifier): observers.streams[identifier]?.waiting.removeAll { $0.call == call }
        case .lane(let identifier): if let link = links[identifier] { remove(call, from: link) }
        case .lanes: for link in links.values { remove(call, from: link) }
        case .endOfLink(let identifier): links[identifier]?.removeEndObserver(call)
        case .procedure(let identifier): links[identifier]?.control.cancel(call)
        case .reconfiguration(let identifier): links[identifier]?.channels.cancel(call)
        case .startOfAdvertisement(let identifier):
            gap.advertising.remove(call, of: identifier)
            endAdvertisement(identifier)
        case .endOfAdvertisement(let identifier): gap.advertising.remove(call, of: identifier)
        case .subeventData(let identifier): gap.subevents.remove(call, of: identifier)
        case .connection(let attempt): endAttempt(attempt, .cancelled)
        case .security(let identifier): cancelSecurity(call, of: identifier)
        }
        endInput()
    }

    private func remove(_ call: CallToken, from link: Link) {
        if link.att.remove(call) { pumpLanes(of: link) }
    }
}

private struct BeginningCall: Sendable {
    let call: CallToken
    let continuation: CallContinuation
    let begin: @Sendable (isolated BluetoothHost, CallToken) -> Void
}

extension LoopFunction<BeginningCall> {
    fileprivate static let beginWaiting = LoopFunction { host, beginning in
        if host.calls.begin(beginning.call, beginning.continuation) { beginning.begin(host, beginning.call) }
    }
}
