import BLEATT
import BLEGATT
import BluetoothHost
import DequeModule
import Logging
import Synchronization

/// A bounded queue of one client's accesses that wait for the app's handlers.
///
/// ## Overview
///
/// The host's loop adds the accesses in the order in which the client made them. One task takes them out, one at a
/// time, and calls the handler of each. So the accesses of one client are handled strictly in order, and a handler that
/// is slow or never returns delays its own client only.
///
/// ## End
///
/// When the client's link ends, nobody waits for the response to its request. The task that handles the request is
/// cancelled; a request that waits is removed. Commands are still handled, because a client may disconnect right after
/// it has sent one. They are handled by another task if a request was cancelled, so that they are not cancelled with
/// it.
///
/// ## Errors
///
/// A client can cause any number of errors of a handler, for example by malformed commands. So only the first error
/// on a link is a warning. Later ones are debug messages.
///
/// ## Bounds
///
/// A client has at most one open request on each bearer (Vol 3, Part F, 3.3.2); with up to 16 of bearers that have
/// ended, whose responses nobody gets. A command has no response and no flow control: at most ``commandLimit`` commands
/// wait. A further command is dropped and counted, which the specification allows (Vol 3, Part F, 3.3.2). Commands of a
/// client that has disconnected are still handled, so a client that connects again and again could add to them without
/// bound. Therefore all queues of a server share an ``AccessBudget``. An access counts until its handler has returned,
/// also if the handler ignores its cancellation.
///
/// ## Threading
///
/// The loop adds and finishes, one task takes. The task and the loop may be on different threads.
final class AccessQueue: Sendable {
    /// An access and the handler that answers it.
    struct Access: Sendable {
        let request: AccessRequest
        let handler: Peripheral.ValueHandler

        /// Whether the client gets no response.
        var isCommand: Bool {
            if case .write(_, isCommand: true) = request.kind { true } else { false }
        }
    }

    /// The maximum number of commands that wait.
    static let commandLimit = 64

    @safe private struct State {
        var accesses = Deque<Access>()
        var commandCount = 0
        var droppedCount = 0
        var isFinished = false
        /// Whether a handler has thrown an error that is not an ATT error.
        var hasFailed = false
        /// Whether the access that was taken last is a request whose handler has not returned.
        var isHandlingRequest = false
        /// Whether the request that was taken last was cancelled because the link has ended.
        var isRequestCancelled = false
        /// The task that handles the accesses, until the queue is finished.
        var task: Task<Void, Never>?
        /// The task that waits for an access. It is removed before it is resumed, so it is resumed once.
        var consumer: UnsafeContinuation<Void, Never>?
    }

    private let state = Mutex(State())
    private let budget: AccessBudget

    init(budget: AccessBudget) {
        self.budget = budget
    }

    /// The number of commands that were dropped because the queue or the server was full.
    var droppedCount: Int { state.withLock { $0.droppedCount } }

    /// Adds an access. Called on the host's loop only.
    ///
    /// - Returns: false if the queue or the server is full; the access was not added.
    func add(_ access: Access) -> Bool {
        let isCommand = access.isCommand
        let (isAdded, consumer) = unsafe state.withLock { state -> (Bool, UnsafeContinuation<Void, Never>?) in
            guard !isCommand || state.commandCount < AccessQueue.commandLimit, budget.take() else {
                if isCommand { state.droppedCount += 1 }
                return (false, nil)
            }
            if isCommand { state.commandCount += 1 }
            state.accesses.append(access)
            let consumer = unsafe state.consumer
            unsafe state.consumer = nil
            return unsafe (true, consumer)
        }
        unsafe consumer?.resume()
        return isAdded
    }

    /// Sets the task that handles the accesses. Called on the host's loop only.
    func setTask(_ task: Task<Void, Never>) {
        state.withLock { $0.task = task }
    }

    /// Ends the queue once its commands have been taken, and cancels the client's request. Called when the client's
    /// link has ended, or the server is released.
    func finish() {
        typealias Ended = (task: Task<Void, Never>?, consumer: UnsafeContinuation<Void, Never>?)
        let (task, consumer) = unsafe state.withLock { state -> Ended in
            state.isFinished = true
            let waitingCount = state.accesses.count
            state.accesses.removeAll { !$0.isCommand }
            for _ in state.accesses.count..<waitingCount { budget.release() }
            state.isRequestCancelled = state.isHandlingRequest
            defer {
                state.task = nil
                unsafe state.consumer = nil
            }
            return unsafe (state.isRequestCancelled ? state.task : nil, state.consumer)
        }
        task?.cancel()
        unsafe consumer?.resume()
    }

    /// Returns the oldest access, waiting for one if there is none; nil once the queue has ended.
    nonisolated(nonsending) func next() async -> Access? {
        while true {
            switch take() {
            case .access(let access): return access
            case .end: return nil
            case .empty: await waitForAccess()
            }
        }
    }

    /// Calls the handler of the access that ``next()`` returned last. An error that is not an ATT error is logged, and
    /// answered with Unlikely Error.
    nonisolated(nonsending) func handle(
        _ access: Access,
        of client: ClientID,
        _ logger: @autoclosure () -> Logger?
    ) async -> Result<[UInt8], ATTErrorCode> {
        do {
            return .success(try await access.handler(client, access.request.kind))
        } catch let code as ATTErrorCode {
            return .failure(code)
        } catch {
            if !Task.isCancelled { report(error, logger()) }
            return .failure(.unlikelyError)
        }
    }

    private func report(_ error: any Error, _ logger: Logger?) {
        let isFirst = state.withLock { state in
            defer { state.hasFailed = true }
            return !state.hasFailed
        }
        let note = isFirst ? "; later failures for this client are debug messages" : ""
        logger?.log(level: isFirst ? .warning : .debug, "a handler of a value failed: \(error)\(note)")
    }

    /// Records that the handler of the access which ``next()`` returned last has returned.
    ///
    /// - Returns: false if the access was a request that was cancelled. Its task must not handle further accesses.
    func handled() -> Bool {
        budget.release()
        return state.withLock { state in
            state.isHandlingRequest = false
            defer { state.isRequestCancelled = false }
            return !state.isRequestCancelled
        }
    }

    private enum Taken {
        case access(Access)
        case empty
        case end
    }

    private func take() -> Taken {
        state.withLock { state in
            guard let access = state.accesses.popFirst() else { return state.isFinished ? .end : .empty }
            if access.isCommand { state.commandCount -= 1 }
            state.isHandlingRequest = !access.isCommand
            return .access(access)
        }
    }

    private nonisolated(nonsending) func waitForAccess() async {
        unsafe await withUnsafeContinuation { continuation in
            let isReady = state.withLock { state in
                guard state.accesses.isEmpty, !state.isFinished else { return true }
                unsafe state.consumer = continuation
                return false
            }
            if isReady { unsafe continuation.resume() }
        }
    }
}

/// A limit for the number of questions of clients that an app has not answered.
final class AccessBudget: Sendable {
    private let limit: Int
    private let used = Atomic(0)

    init(limit: Int) {
        self.limit = limit
    }

    /// Takes one question out of the budget. Called on the host's loop only.
    ///
    /// - Returns: false if the budget is used up.
    func take() -> Bool {
        guard used.load(ordering: .relaxed) < limit else { return false }
        used.add(1, ordering: .relaxed)
        return true
    }

    /// Releases one question, from any thread.
    func release() {
        used.subtract(1, ordering: .relaxed)
    }
}

/// The access queues of a server's clients, by link.
final class AccessQueues: Sendable {
    /// The maximum number of accesses that wait or are handled: enough for 16 clients with full queues.
    static let limit = 1024

    private let queues = Mutex<[ClientID: AccessQueue]>([:])
    private let budget = AccessBudget(limit: AccessQueues.limit)

    deinit {
        // The tasks that take from the queues hold these, and wait.
        for queue in queues.withLock({ $0 }).values { queue.finish() }
    }

    /// Adds an access to its client's queue. The client's first access starts the task that calls the handlers.
    ///
    /// If the queue is full, a command is dropped and a request is answered with Insufficient Resources.
    ///
    /// - Precondition: this is called on the loop of `host`.
    func add(_ access: AccessQueue.Access, of client: ClientID, on host: BluetoothHost) {
        let queue = queues.withLock { $0[client] } ?? makeQueue(for: client, on: host)
        if queue.add(access) { return }
        if access.isCommand {
            host.commandWasDropped(from: client, droppedBefore: queue.droppedCount - 1)
        } else {
            host.submitAnswer(access.request.identifier, on: client, with: .failure(.insufficientResources))
        }
    }

    /// The number of a client's commands that were dropped because its queue was full.
    func droppedCount(of client: ClientID) -> Int {
        queues.withLock { $0[client] }?.droppedCount ?? 0
    }

    private func makeQueue(for client: ClientID, on host: BluetoothHost) -> AccessQueue {
        let queue = AccessQueue(budget: budget)
        queues.withLock { $0[client] = queue }
        queue.setTask(AccessQueues.startTask(for: client, queue, on: host))
        host.assumeIsolated { host in
            _ = host.observeEnd(of: client) { [weak self, queue] _ in
                queue.finish()
                self?.queues.withLock { $0[client] = nil }
            }
        }
        return queue
    }

    /// Starts the task that handles the accesses of a queue until the queue has ended, or until a request is cancelled.
    /// In that case it starts another task for the commands after the request.
    @discardableResult
    private static func startTask(
        for client: ClientID,
        _ queue: AccessQueue,
        on host: BluetoothHost?
    ) -> Task<Void, Never> {
        Task(executorPreference: host?.loop.appTaskExecutor) { [weak host] in
            while let access = await queue.next() {
                let result = await queue.handle(access, of: client, host?.logger)
                guard queue.handled() else {
                    startTask(for: client, queue, on: host)
                    return
                }
                if !access.isCommand { host?.submitAnswer(access.request.identifier, on: client, with: result) }
            }
        }
    }
}
