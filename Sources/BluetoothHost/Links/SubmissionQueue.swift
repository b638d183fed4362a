import BluetoothTypes
import DequeModule
import Synchronization

/// A bounded queue of packets that apps on other threads submit without waiting for the loop.
///
/// A call that waits for the loop costs two thread switches, more than the packet itself. So a call that needs no
/// result is submitted: up to ``limit`` writes per link and ``limit`` notifications. Beyond that, the caller waits for
/// the loop.
///
/// ## Batches
///
/// The loop is woken once for each batch, and takes the batch whole. A submission joins the last batch while the loop
/// has not taken it. A call that is queued on the loop ends the batch (``endBatch()``). So a thread's submissions
/// before a call are taken before it, and its later submissions after it.
///
/// ## The fast path
///
/// Writes are submitted to a link only while its fast path is open. A write that waited for the loop opens the fast
/// path. If a write cannot be sent, because the link has ended, the value is too long or the identity of the peer is
/// not verified, the fast path closes. The next caller then waits for the loop and gets the error. Only the writes that
/// were submitted by then can be lost without an error. Those that wait for the identity to be verified are sent once
/// it is.
final class SubmissionQueue: Sendable {
    enum Submission: Sendable {
        case write([UInt8], to: AttributeHandle, on: LinkIdentifier)
        case notification([UInt8], of: AttributeHandle, to: [LinkIdentifier]?)
    }

    private struct FastPath {
        let link: LinkIdentifier
        /// The longest value in bytes; nil while the fast path is closed.
        var maximumLength: Int?
        /// Submitted writes that are not sent yet.
        var count = 0
    }

    private struct State {
        /// The last batch. If it is not empty, the loop was woken for it, and further submissions join it.
        var openBatch: [Submission] = []
        /// The batches that have ended and are not taken yet, the oldest first. The loop was woken for each.
        var endedBatches = Deque<[Submission]>()
        /// The fast paths by connection handle, which finds them without hashing.
        private var fastPaths: [FastPath?] = []
        var valueCount = 0

        var openFastPaths: some Sequence<FastPath> { fastPaths.lazy.compactMap(\.self) }

        /// The fast path to a link; nil if it has none.
        subscript(link: LinkIdentifier) -> FastPath? {
            get {
                let index = Int(link.handle.rawValue)
                guard index < fastPaths.count, let path = fastPaths[index], path.link == link else { return nil }
                return path
            }
            set {
                let index = Int(link.handle.rawValue)
                if index < fastPaths.count {
                    // The handle may be that of a later link by now.
                    if newValue != nil || fastPaths[index]?.link == link { fastPaths[index] = newValue }
                } else if newValue != nil {
                    fastPaths.append(contentsOf: repeatElement(nil, count: index + 1 - fastPaths.count))
                    fastPaths[index] = newValue
                }
            }
        }
    }

    /// Maximum number of unsent writes per link, and of unsent notifications.
    ///
    /// A controller often has 32 buffers or fewer. With several times as many submissions, a caller is suspended once
    /// for several rounds of the controller.
    static let limit = 128

    private let state = Mutex(State())
    /// Whether the open batch has submissions. It is changed under the lock.
    private let hasOpenBatch = Atomic(false)
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
            guard var path = state[write.link], path.count < SubmissionQueue.limit,
                write.value.count <= path.maximumLength ?? -1
            else { return false }
            path.count += 1
            state[write.link] = path
            append(.write(write.value, to: write.handle, on: write.link), to: &state, wakeLoop)
            return true
        }
    }

    /// Submits a notification, likewise.
    func submit(_ notification: NotifyCall, _ wakeLoop: () -> Void) -> Bool {
        state.withLock { state in
            guard state.valueCount < SubmissionQueue.limit else { return false }
            state.valueCount += 1
            append(
                .notification(notification.value, of: notification.handle, to: notification.clients),
                to: &state,
                wakeLoop
            )
            return true
        }
    }

    private func append(_ submission: Submission, to state: inout State, _ wakeLoop: () -> Void) {
        state.openBatch.append(submission)
        guard state.openBatch.count == 1 else { return }
        // Stored first: a thread whose call comes behind this wake-up on the loop then finds the batch in `endBatch`.
        hasOpenBatch.store(true, ordering: .releasing)
        wakeLoop()
    }

    /// Takes the oldest batch; it is empty if there is none. Called once for each time the loop was woken.
    func takeFirst() -> [Submission] {
        state.withLock { state in
            if let batch = state.endedBatches.popFirst() { return batch }
            hasOpenBatch.store(false, ordering: .releasing)
            let batch = state.openBatch
            state.openBatch = []
            return batch
        }
    }

    /// Ends the open batch: the next submission wakes the loop again.
    ///
    /// Call this on the thread of a call, after the call was queued on the loop. If it came before, another thread
    /// could wake the loop in between. This thread's next submission would then join a batch that is taken before the
    /// call.
    func endBatch() {
        guard hasOpenBatch.load(ordering: .acquiring) else { return }
        state.withLock { state in
            guard !state.openBatch.isEmpty else { return }
            hasOpenBatch.store(false, ordering: .releasing)
            state.endedBatches.append(state.openBatch)
            state.openBatch = []
        }
    }

    // MARK: Results

    /// Lets writes to the link be submitted, after a write that waited for the loop was sent.
    func openFastPath(to link: LinkIdentifier, maximumLength: Int) {
        state.withLock { state in
            state[link] = FastPath(link: link, maximumLength: maximumLength, count: state[link]?.count ?? 0)
        }
    }

    /// Makes writes to the link wait for the loop until the fast path is opened again.
    func closeFastPath(to link: LinkIdentifier) {
        state.withLock { $0[link]?.maximumLength = nil }
    }

    /// Forgets a link that has ended.
    func removeFastPath(to link: LinkIdentifier) {
        state.withLock { $0[link] = nil }
    }

    /// Counts a submitted write that was sent or dropped.
    func writeSent(to link: LinkIdentifier) {
        state.withLock { $0[link]?.count -= 1 }
    }

    /// Counts a submitted notification that was sent or dropped.
    func valueSent() {
        state.withLock { $0.valueCount -= 1 }
    }

    /// Whether a link that meets the condition has a fast path, for tests that look for leaks.
    func hasFastPath(where isWanted: (LinkIdentifier) -> Bool) -> Bool {
        state.withLock { state in state.openFastPaths.contains { isWanted($0.link) } }
    }

    /// The numbers of unsent submissions and of links with a fast path, for tests that look for leaks.
    func inspect() -> (submissions: Int, fastPaths: Int) {
        state.withLock { state in
            let counts = state.openFastPaths.map(\.count)
            return (state.valueCount + counts.reduce(0, +), counts.count)
        }
    }
}
