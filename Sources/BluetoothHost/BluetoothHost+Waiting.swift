/// A function of the host that code on the host's loop calls synchronously.
///
/// It replaces `assumeIsolated` for each packet and each call, for two reasons. A stored function allocates nothing
/// when it is called; a closure for `assumeIsolated` does. And it checks isolation with the loop itself.
/// `assumeIsolated` first asks the runtime, which does not know threads that run no task.
struct LoopFunction<Argument: ~Copyable & ~Escapable>: Sendable {
    private let function: @Sendable (BluetoothHost, borrowing Argument) -> Void

    init(_ function: @escaping @Sendable (isolated BluetoothHost, borrowing Argument) -> Void) {
        // The function's isolation is only the promise that it runs on the loop.
        self.function = unsafe unsafeBitCast(function, to: (@Sendable (BluetoothHost, borrowing Argument) -> Void).self)
    }

    /// - Precondition: this is called on the host's loop.
    func callAsFunction(_ host: BluetoothHost, _ argument: borrowing Argument) {
        host.loop.checkIsolated()
        function(host, argument)
    }
}

// Frequent calls of apps. They enter and leave the loop without a call of an actor method, which would return to the
// loop once more before it ends.
extension BluetoothHost {
    nonisolated var isOnLoop: Bool { loop.isIsolatingCurrentContext() == true }

    /// Calls a function at once if this is the loop's thread; otherwise queues it on the loop. What this thread submits
    /// later is sent later.
    nonisolated func call<Argument: Sendable>(_ function: LoopFunction<Argument>, _ argument: Argument) {
        if isOnLoop {
            function(self, argument)
        } else {
            loop.execute { function(self, argument) }
            submissions.endBatch()
        }
    }

    /// Runs `body` at once if this is the loop's thread; otherwise queues it on the loop. So the calls of one thread
    /// begin in their order.
    package nonisolated func begin(_ body: @escaping @Sendable (isolated BluetoothHost) -> Void) {
        call(.begin, body)
    }

    /// Queues `body` on the loop, for an object that is being released. It is an input: see ``endInput()``. Does
    /// nothing if the host has ended: it holds nothing then, and a stopped loop would keep the closure and with it the
    /// host.
    ///
    /// A call of a method of the host by the same task also waits in the queue of the loop. So the release takes effect
    /// before that call, and before later submissions of the thread. Calls that begin at once on the loop may come
    /// first. The release is queued also on the loop itself, because objects of apps may be released in the middle of a
    /// turn.
    package nonisolated func cleanUp(_ body: @escaping @Sendable (isolated BluetoothHost) -> Void) {
        guard !calls.hasEnded else { return }
        loop.execute { [self] in
            begin { host in
                body(host)
                host.endInput()
            }
        }
        if !isOnLoop { submissions.endBatch() }
    }

    /// Sends the oldest batch of submissions.
    fileprivate func sendSubmissions() {
        for submission in submissions.takeFirst() {
            switch submission {
            case .write(let value, let handle, let link):
                submit(WriteCall(value: value, handle: handle, link: link, caller: .submission))
            case .notification(let value, let handle, let clients):
                notify(NotifyCall(value: value, handle: handle, clients: clients, caller: .submission))
            }
        }
    }
}

extension LoopFunction<Void> {
    static let sendSubmissions = LoopFunction { host, _ in host.sendSubmissions() }
}

extension LoopFunction<@Sendable (isolated BluetoothHost) -> Void> {
    fileprivate static let begin = LoopFunction { host, body in body(host) }
}
