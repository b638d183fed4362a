import Synchronization

/// A bounded queue of packets that apps on other threads submit without waiting for the loop.
///
/// A call that waits for the loop costs two thread switches, more than the packet itself. So a call that needs no
/// result is submitted: up to ``limit`` writes per link and ``limit`` notifications. Beyond that, the caller waits for
/// the loop. The loop takes all submissions together, in their order, before any call that was made later.
///
/// ## The fast path
///
/// Writes are submitted to a link only while its fast path is open. A write that waited for the loop opens the fast
/// path. If a write cannot be sent, because the link has ended or the value is too long, the fast path closes. The next
/// caller then waits for the loop and gets the error. Only the writes that are in the queue at that moment are lost
/// without an error.
final class SubmissionQueue: Sendable {
    enum Submission: Sendable {
        case write(WriteCall)
        case notification(NotifyCall)
    }

    private struct FastPath {
        /// The longest value in bytes; nil while the fast path is closed.
        var maximumLength: Int?
        /// Submitted writes that are not sent yet.
        var count = 0
    }

    private struct State {
        var submissions: [Submission] = []
        var fastPaths: [LinkIdentifier: FastPath] = [:]
        var valueCount = 0
    }

    /// Maximum number of unsent writes per link, and of unsent notifications.
    ///
    /// A controller often has 32 buffers or fewer. With several times as many submissions, a caller is suspended once for
    /// several rounds of the controller.
    static let limit = 128

    private let state = Mutex(State())
    /// The characteristics whose values may be submitted.
    let properties = PublishedProperties()

    /// Submits a write.
    ///
    /// - Parameters:
    ///   - wakeLoop: makes the loop take the submissions. It is called under the lock, so that another thread with a
    ///     later submission cannot call the loop before this.
    /// - Returns: false if the caller has to wait for the loop instead.
    func submit(_ write: WriteCall, _ wakeLoop: () -> Void) -> Bool {
        state.withLock { state in
            guard let path = state.fastPaths[write.link], path.count < SubmissionQueue.limit,
                write.value.count <= path.maximumLength ?? -1
            else { return false }
            state.fastPaths[write.link]?.count += 1
            SubmissionQueue.append(.write(write), to: &state, wakeLoop)
            return true
        }
    }

    /// Submits a notification, likewise.
    func submit(_ notification: NotifyCall, _ wakeLoop: () -> Void) -> Bool {
        state.withLock { state in
            guard state.valueCount < SubmissionQueue.limit else { return false }
            state.valueCount += 1
            SubmissionQueue.append(.notification(notification), to: &state, wakeLoop)
            return true
        }
    }

    private static func append(_ submission: Submission, to state: inout State, _ wakeLoop: () -> Void) {
        state.submissions.append(submission)
        if state.submissions.count == 1 { wakeLoop() }
    }

    /// Takes all submissions. The next submission wakes the loop again.
    func takeAll() -> [Submission] {
        state.withLock { state in
            let submissions = state.submissions
            state.submissions = []
            return submissions
        }
    }

    // MARK: Results

    /// Lets writes to the link be submitted, after a write that waited for the loop was sent.
    func openFastPath(to link: LinkIdentifier, maximumLength: Int) {
        state.withLock { state in
            state.fastPaths[link] = FastPath(
                maximumLength: maximumLength,
                count: state.fastPaths[link]?.count ?? 0
            )
        }
    }

    /// Makes writes to the link wait for the loop until the fast path is opened again.
    func closeFastPath(to link: LinkIdentifier) {
        state.withLock { $0.fastPaths[link]?.maximumLength = nil }
    }

    /// Forgets a link that has ended.
    func removeFastPath(to link: LinkIdentifier) {
        state.withLock { _ = $0.fastPaths.removeValue(forKey: link) }
    }

    /// Counts a submitted write that was sent or dropped.
    func writeSent(to link: LinkIdentifier) {
        state.withLock { $0.fastPaths[link]?.count -= 1 }
    }

    /// Counts a submitted notification that was sent or dropped.
    func valueSent() {
        state.withLock { $0.valueCount -= 1 }
    }

    /// Whether a link that meets the condition has a fast path, for tests that look for leaks.
    func hasFastPath(where isWanted: (LinkIdentifier) -> Bool) -> Bool {
        state.withLock { state in state.fastPaths.keys.contains(where: isWanted) }
    }

    /// The numbers of unsent submissions and of links with a fast path, for tests that look for leaks.
    func inspect() -> (submissions: Int, fastPaths: Int) {
        state.withLock { state in
            (state.valueCount + state.fastPaths.values.reduce(0) { $0 + $1.count }, state.fastPaths.count)
        }
    }
}
