import Synchronization

/// What apps on other threads have sent without waiting for the loop, until the loop takes it.
///
/// Waiting for the loop costs a thread two switches, more than the packet itself. So what needs no answer is posted: some
/// packets of each link, and some notifications, lie ahead of the loop at the most, and who has more waits. The loop takes
/// all posts together, in their order, and before whatever it is asked for later.
///
/// Writes are posted to a link only while its gate is open, which a write that was waited for opens: so what cannot be sent,
/// for the link has ended or the value is too long, is an error of who sends it, but for what lies in the postbox then.
final class Postbox: Sendable {
    enum Post: Sendable {
        case write(WriteCall)
        case notification(Notification)
    }

    private struct Gate {
        /// Of a value, in octets; nil while the gate is shut.
        var greatestLength: Int?
        /// Writes that were posted and are not sent yet.
        var count = 0
    }

    private struct State {
        var posts: [Post] = []
        var gates: [LinkIdentifier: Gate] = [:]
        var notificationCount = 0
    }

    /// How many packets of a link, and how many notifications, are posted at the most.
    static let limit = 32

    private let state = Mutex(State())

    /// Posts a write, or says that it must be waited for.
    ///
    /// - Parameters:
    ///   - length: of the value that is written, in octets.
    ///   - tellLoop: has the loop take the posts. It is called under the lock, so that nobody whose post lies behind the
    ///     first one can ask the loop for anything before.
    func post(_ write: WriteCall, length: Int, _ tellLoop: () -> Void) -> Bool {
        state.withLock { state in
            guard let gate = state.gates[write.link], gate.count < Postbox.limit, length <= gate.greatestLength ?? -1
            else { return false }
            state.gates[write.link]?.count += 1
            Postbox.add(.write(write), to: &state, tellLoop)
            return true
        }
    }

    /// The same for a notification.
    func post(_ notification: Notification, _ tellLoop: () -> Void) -> Bool {
        state.withLock { state in
            guard state.notificationCount < Postbox.limit else { return false }
            state.notificationCount += 1
            Postbox.add(.notification(notification), to: &state, tellLoop)
            return true
        }
    }

    private static func add(_ post: Post, to state: inout State, _ tellLoop: () -> Void) {
        state.posts.append(post)
        if state.posts.count == 1 { tellLoop() }
    }

    /// All that was posted; the loop is told of what comes from now on.
    func takePosts() -> [Post] {
        state.withLock { state in
            let posts = state.posts
            state.posts = []
            return posts
        }
    }

    // MARK: What has been done

    /// A write to this link has been sent that was waited for: others need not be.
    func openGate(to link: LinkIdentifier, greatestLength: Int) {
        state.withLock { state in
            state.gates[link] = Gate(greatestLength: greatestLength, count: state.gates[link]?.count ?? 0)
        }
    }

    /// What is written to the link is waited for until the gate is opened again.
    func shutGate(to link: LinkIdentifier) {
        state.withLock { $0.gates[link]?.greatestLength = nil }
    }

    /// The link has ended.
    func removeGate(to link: LinkIdentifier) {
        state.withLock { _ = $0.gates.removeValue(forKey: link) }
    }

    func wrotePost(to link: LinkIdentifier) {
        state.withLock { $0.gates[link]?.count -= 1 }
    }

    func sentNotification() {
        state.withLock { $0.notificationCount -= 1 }
    }

    /// What was posted and is not sent yet, and the links that have a gate; for tests that look for what is leaked.
    func inspect() -> (posts: Int, gates: Int) {
        state.withLock { state in
            (state.notificationCount + state.gates.values.reduce(0) { $0 + $1.count }, state.gates.count)
        }
    }
}
