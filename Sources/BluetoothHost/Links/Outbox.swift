import Synchronization

/// What apps on other threads have sent without waiting for the loop, until the loop takes it.
///
/// Waiting for the loop costs a thread two switches, more than the packet itself. So what needs no answer is posted: some
/// packets of each link, and some notifications, lie ahead of the loop at the most, and who has more waits. The loop takes
/// all posts together, in their order, and before whatever it is asked for later.
///
/// Writes are posted to a link only while its gate is open, which who waits for a write opens: so what cannot be sent, for
/// the link has ended or the value is too long, is an error of who sends it.
final class Outbox: Sendable {
    enum Post: Sendable {
        case write(WriteCall)
        case notification(Notification)
    }

    /// What has become of something that was to be posted.
    enum Posting {
        /// It must be waited for.
        case refused
        case posted
        /// It is the first that the loop is to take, and the loop is to be told.
        case postedFirst
    }

    private struct Gate {
        let greatestLength: Int
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

    /// - Parameter length: of the value that is written, in octets.
    func post(_ write: WriteCall, length: Int) -> Posting {
        state.withLock { state in
            guard let gate = state.gates[write.link], gate.count < Outbox.limit, length <= gate.greatestLength else {
                return .refused
            }
            state.gates[write.link]?.count += 1
            return Outbox.add(.write(write), to: &state)
        }
    }

    func post(_ notification: Notification) -> Posting {
        state.withLock { state in
            guard state.notificationCount < Outbox.limit else { return .refused }
            state.notificationCount += 1
            return Outbox.add(.notification(notification), to: &state)
        }
    }

    private static func add(_ post: Post, to state: inout State) -> Posting {
        state.posts.append(post)
        return state.posts.count == 1 ? .postedFirst : .posted
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

    func closeGate(to link: LinkIdentifier) {
        state.withLock { _ = $0.gates.removeValue(forKey: link) }
    }

    func wrotePost(to link: LinkIdentifier) {
        state.withLock { $0.gates[link]?.count -= 1 }
    }

    func sentNotification() {
        state.withLock { $0.notificationCount -= 1 }
    }
}
