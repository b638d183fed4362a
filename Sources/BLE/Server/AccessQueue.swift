import ATT
import BluetoothHost
import DequeModule
import Synchronization

/// A bounded queue of one client's accesses that wait for the app's handlers.
///
/// ## Overview
///
/// The host's loop adds the accesses in the order in which the client made them. One task takes them out, one at a time, and
/// calls the handler of each. So the accesses of one client are handled strictly in order, and a slow handler delays its own
/// client only.
///
/// ## Bounds
///
/// A client has at most one open request (Vol 3, Part F, 3.3.2), so requests are always accepted. A command has no response
/// and no flow control: at most ``commandLimit`` commands wait. A further command is dropped and counted, which the
/// specification allows (Vol 3, Part F, 3.3.2).
///
/// ## Threading
///
/// The loop adds, one task takes. The task and the loop may be on different threads.
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

    private struct State {
        var accesses = Deque<Access>()
        var commandCount = 0
        var droppedCount = 0
        var isFinished = false
        /// The task that waits for an access.
        var consumer: UnsafeContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    /// The number of commands that were dropped because the queue was full.
    var droppedCount: Int { state.withLock { $0.droppedCount } }

    /// Adds an access.
    ///
    /// - Returns: false if the access is a command and the queue is full; it was dropped.
    func add(_ access: Access) -> Bool {
        let isCommand = access.isCommand
        let (isAdded, consumer) = state.withLock { state -> (Bool, UnsafeContinuation<Void, Never>?) in
            if isCommand {
                guard state.commandCount < AccessQueue.commandLimit else {
                    state.droppedCount += 1
                    return (false, nil)
                }
                state.commandCount += 1
            }
            state.accesses.append(access)
            let consumer = state.consumer
            state.consumer = nil
            return (true, consumer)
        }
        consumer?.resume()
        return isAdded
    }

    /// Ends the queue once its accesses have been taken.
    func finish() {
        let consumer = state.withLock { state in
            state.isFinished = true
            defer { state.consumer = nil }
            return state.consumer
        }
        consumer?.resume()
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

    private enum Taken {
        case access(Access)
        case empty
        case end
    }

    private func take() -> Taken {
        state.withLock { state in
            guard let access = state.accesses.popFirst() else { return state.isFinished ? .end : .empty }
            if access.isCommand { state.commandCount -= 1 }
            return .access(access)
        }
    }

    private nonisolated(nonsending) func waitForAccess() async {
        await withUnsafeContinuation { continuation in
            let isReady = state.withLock { state in
                guard state.accesses.isEmpty, !state.isFinished else { return true }
                state.consumer = continuation
                return false
            }
            if isReady { continuation.resume() }
        }
    }
}

/// The access queues of a server's clients, by link.
final class AccessQueues: Sendable {
    private let queues = Mutex<[ClientID: AccessQueue]>([:])

    deinit {
        // The tasks that take from the queues hold these, and wait.
        for queue in queues.withLock({ $0 }).values { queue.finish() }
    }

    /// Adds an access to its client's queue. The client's first access starts the task that calls the handlers.
    ///
    /// - Precondition: this is called on the loop of `host`.
    func add(_ access: AccessQueue.Access, of client: ClientID, on host: BluetoothHost) {
        let queue = queues.withLock { $0[client] } ?? makeQueue(for: client, on: host)
        if !queue.add(access) { host.commandWasDropped(from: client, droppedBefore: queue.droppedCount - 1) }
    }

    /// The number of a client's commands that were dropped because its queue was full.
    func droppedCount(of client: ClientID) -> Int {
        queues.withLock { $0[client] }?.droppedCount ?? 0
    }

    /// The number of clients that have a queue, for tests that look for leaks.
    var count: Int { queues.withLock { $0.count } }

    private func makeQueue(for client: ClientID, on host: BluetoothHost) -> AccessQueue {
        let queue = AccessQueue()
        queues.withLock { $0[client] = queue }
        Task(executorPreference: host.loop.appTaskExecutor) { [weak host] in
            while let access = await queue.next() {
                let result = await access.handler(client, access.request.kind)
                if !access.isCommand { host?.submitAnswer(access.request.identifier, on: client, with: result) }
            }
        }
        host.assumeIsolated { host in
            // What the client has written is still handled when its link has ended.
            host.observeEnd(of: client) { [weak self, queue] _ in
                queue.finish()
                self?.queues.withLock { $0[client] = nil }
            }
        }
        return queue
    }
}
