extension BluetoothHost {
    /// Is told what has become of a call.
    typealias Completion<Value> = (Result<Value, HostError>) -> Void

    /// Suspends the call until the completion that `begin` is given has been called, which must be once.
    ///
    /// What the call relies on is looked up in `begin`, not before: a task that prefers an executor comes there by way of the
    /// loop's queue, behind whatever has happened meanwhile.
    func outcome<Value: Sendable>(
        _ begin: (_ completion: @escaping Completion<Value>) throws(HostError) -> Void
    ) async -> Result<Value, HostError> {
        await withCheckedContinuation { continuation in
            do throws(HostError) {
                try begin { continuation.resume(returning: $0) }
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
    }
}

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

/// How a call ends to wait.
enum Ending {
    /// With why a link could not be made as secure as a server wanted it, where that is what the call has failed for.
    case over(elevationFailure: HostError? = nil)
    case failure(HostError)
    /// Nothing was done: the peer is first to prove who it is.
    case awaitsProof
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

    /// Sees to it that a call can be made again which is not over, if it can: once its peer has proven who it is.
    nonisolated(nonsending) func makeReady(
        for ending: Ending,
        on identifier: LinkIdentifier
    ) async throws(HostError) {
        switch ending {
        case .over: break
        case .failure(let error): throw error
        case .awaitsProof: try await waitForProof(on: identifier)
        }
    }

    /// Posts a write, or says that it must be waited for.
    nonisolated func post(_ write: WriteCall, length: Int) -> Bool {
        postbox.post(write, length: length) { loop.execute { [self] in call(.sendPosts, ()) } }
    }

    /// The same for a notification.
    nonisolated func post(_ notification: Notification) -> Bool {
        postbox.post(notification) { loop.execute { [self] in call(.sendPosts, ()) } }
    }

    fileprivate func sendPosts() {
        for post in postbox.takePosts() {
            switch post {
            case .write(let write): begin(write)
            case .notification(let notification): begin(notification)
            }
        }
    }
}

extension LoopFunction<Void> {
    fileprivate static let sendPosts = LoopFunction { host, _ in host.sendPosts() }
}
