/// A function of the host's that whoever is on its loop calls at once.
///
/// It is `assumeIsolated` for what comes with each packet and each call: kept, it allocates nothing when it is called, as a
/// closure there does; and it asks the loop itself, where that asks the runtime first, which knows nothing of threads that
/// run no task.
struct LoopFunction<Argument: ~Copyable & ~Escapable>: Sendable {
    private let function: @Sendable (BluetoothHost, borrowing Argument) -> Void

    init(_ function: @escaping @Sendable (isolated BluetoothHost, borrowing Argument) -> Void) {
        // What isolates it is only the promise that it runs on the loop.
        self.function = unsafeBitCast(function, to: (@Sendable (BluetoothHost, borrowing Argument) -> Void).self)
    }

    /// - Precondition: this is called on the host's loop.
    func callAsFunction(_ host: BluetoothHost, _ argument: borrowing Argument) {
        host.loop.checkIsolated()
        function(host, argument)
    }
}

/// A function of the host that returns a value, called on its loop, likewise.
struct LoopQuery<Argument, Output>: Sendable {
    private let function: @Sendable (BluetoothHost, borrowing Argument) -> Output

    init(_ function: @escaping @Sendable (isolated BluetoothHost, borrowing Argument) -> Output) {
        self.function = unsafeBitCast(function, to: (@Sendable (BluetoothHost, borrowing Argument) -> Output).self)
    }

    /// - Precondition: this is called on the host's loop.
    func callAsFunction(_ host: BluetoothHost, _ argument: borrowing Argument) -> Output {
        host.loop.checkIsolated()
        return function(host, argument)
    }
}

// Apps' calls that are made often. They go to the loop and come back from there by themselves: a call of the actor's would
// come back to the loop once more before it returns.
extension BluetoothHost {
    nonisolated var isOnLoop: Bool { loop.isIsolatingCurrentContext() == true }

    /// Calls a function at once where this is the loop, else as soon as the loop comes to it.
    nonisolated func call<Argument: Sendable>(_ function: LoopFunction<Argument>, _ argument: Argument) {
        if isOnLoop {
            function(self, argument)
        } else {
            loop.execute { function(self, argument) }
        }
    }

    /// Runs `body` at once on the loop's thread, else as soon as the loop comes to it. So the calls of one thread begin in
    /// their order.
    package nonisolated func begin(_ body: @escaping @Sendable (isolated BluetoothHost) -> Void) {
        call(.begin, body)
    }

    fileprivate func sendSubmissions() {
        for submission in submissions.takeAll() {
            switch submission {
            case .write(let write): submit(write)
            case .notification(let notification): notify(notification)
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
