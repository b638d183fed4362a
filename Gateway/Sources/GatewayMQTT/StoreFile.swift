import Logging

/// The file of a ``MessageStore``, with its failures: each is logged once, until it has passed.
struct StoreFile {
    /// What failures are counted by. A full disk may still allow some of them.
    enum Operation: Hashable {
        case open
        case append
        case read
        case remove
    }

    enum Outcome<Result> {
        case success(Result)
        /// There is no store, or it failed.
        case failure
        /// The store was damaged, and was replaced by an empty one.
        case damaged
    }

    /// After this number of messages, it is tried again to open a file that could not be opened.
    private static let retryInterval = 64

    /// The path; nil for no store.
    var path: String?
    private let queueProgress: QueueProgress
    private let logger: Logger
    private var store: MessageStore?
    private var failures: [Operation: String] = [:]
    private var attemptCount = 0
    /// Whether the file is not used after the next failed wait for a lock.
    private var limitsLockWaits = false
    /// Whether that failure has come.
    private var isGivenUp = false

    /// - Parameter queueProgress: is informed when the file is used.
    init(queueProgress: QueueProgress, logger: Logger) {
        self.queueProgress = queueProgress
        self.logger = logger
    }

    var isOpen: Bool { store != nil }

    /// Why messages cannot be stored or read; nil if they can.
    var failure: String? {
        [.open, .append, .read, .remove].lazy.compactMap { [failures] in failures[$0] }.first
    }

    /// Whether the last operation of a kind failed.
    func hasFailed(_ operation: Operation) -> Bool { failures[operation] != nil }

    /// From now on, and until the next call, at most one operation waits in vain for another program that has locked
    /// the file. The later ones fail at once.
    mutating func limitLockWaits() {
        limitsLockWaits = true
        isGivenUp = false
    }

    /// Opens the file. One that is damaged is set aside. Most calls after a failure do nothing, unless `isNeeded`.
    mutating func open(isNeeded: Bool = false) -> MessageStore? {
        guard store == nil, !isGivenUp, let path else { return nil }
        defer { attemptCount += 1 }
        guard isNeeded || attemptCount.isMultiple(of: Self.retryInterval) else { return nil }
        queueProgress.beginStoreUse()
        defer { queueProgress.endStoreUse() }
        do {
            store = try MessageStore(path: path)
            succeeded(.open)
        } catch {
            failed(.open, error)
            if MessageStore.isDamage(error) { replace(path) }
        }
        return store
    }

    private mutating func replace(_ path: String) {
        store = nil
        do {
            store = try MessageStore.replaceDamaged(path)
            failures = [:]
            logger.notice(
                "the damaged file was renamed; messages are stored in a new one",
                metadata: ["path": "\(path)"]
            )
        } catch {
            failed(.open, error)
        }
    }

    /// Performs an operation.
    mutating func perform<Result>(_ operation: Operation, _ body: (MessageStore) throws -> Result) -> Outcome<Result> {
        guard let store, !isGivenUp else { return .failure }
        queueProgress.beginStoreUse()
        defer { queueProgress.endStoreUse() }
        do {
            let result = try body(store)
            succeeded(operation)
            return .success(result)
        } catch {
            failed(operation, error)
            guard MessageStore.isDamage(error) else { return .failure }
            replace(store.path)
            return .damaged
        }
    }

    private mutating func succeeded(_ operation: Operation) {
        guard failures.removeValue(forKey: operation) != nil, failures.isEmpty else { return }
        logger.notice("messages for the broker are stored again")
    }

    private mutating func failed(_ operation: Operation, _ error: any Error) {
        let text = "\(error)".split(whereSeparator: \.isNewline).joined(separator: " ")
        let isKnown = !failures.isEmpty
        failures[operation] = text
        if limitsLockWaits, MessageStore.isLocked(error) { isGivenUp = true }
        guard !isKnown else { return }
        logger.error("messages for the broker cannot be stored: \(text)", metadata: ["path": "\(path ?? "")"])
    }
}
