import DequeModule
import Logging

/// The messages that wait for the broker, and those that it has not confirmed, in their order.
///
/// ## Places
///
/// Messages are, the oldest first:
/// 1. sent and not confirmed,
/// 2. ready: in memory, next to be sent,
/// 3. stored: in a file,
/// 4. not stored: in memory, because the file could not be written.
///
/// While the broker confirms messages, they are in memory only. When the connection is lost, those that it has not
/// confirmed are stored, and later messages follow them. Each message gets a number when it becomes ready or is stored;
/// the order of the numbers is the order of the messages.
///
/// ## Bounds
///
/// If too many messages wait, the oldest are dropped. Stored messages that are too old when they would be sent are
/// dropped too. A machine without a battery for its clock starts in the past: before 2025, or at the time when it was
/// switched off. Messages of the time before 2025 have no age. When the clock is set forward, the times of the messages
/// that this run has stored follow it.
struct Outbox {
    private struct Entry {
        let number: Int64
        let message: MQTTMessage
        /// Whether the message is in the store as well.
        var isStored: Bool
    }

    /// The greatest number of messages that the broker has not confirmed.
    static let window = 64
    /// The greatest number of messages in memory that could not be stored.
    static let memoryLimit = 4096
    /// The greatest number of messages that are ready. Others are stored, although the broker is there.
    static let readyLimit = 256

    /// The number of messages that were dropped because too many waited, or because the store was damaged.
    private(set) var droppedCount: UInt64 = 0

    private let limit: Int
    private let ageLimit: Int64
    private let memoryLimit: Int
    private let logger: Logger
    private var file: StoreFile
    private var unconfirmed: [Int32: Entry] = [:]
    private var ready: Deque<Entry> = []
    /// The number of stored messages after ``lastLoaded``.
    private var storedCount = 0
    /// The number of the last message in the store that an earlier run has stored.
    private var lastOfEarlierRuns: Int64 = 0
    private var clock: StoreClock
    /// The number of the last message that was loaded from the store.
    private var lastLoaded: Int64 = 0
    private var unstored: Deque<MQTTMessage> = []
    private var lastNumber: Int64 = 0
    /// The stored messages that the broker has confirmed, and that are not removed yet.
    private var confirmed: Set<Int64> = []
    /// The number of them with which they are removed. It grows while the store fails, because each attempt costs as
    /// much as there are.
    private(set) var removalCount = Self.window
    /// Whether the file is to be opened when the broker has confirmed the messages that were sent. No others are sent
    /// until then.
    private var isOpeningDue = false
    /// The number of messages that were dropped since the last time that none waited.
    private var recentDropCount: UInt64 = 0

    /// - Parameters:
    ///   - limit: the greatest number of stored messages.
    ///   - memoryLimit: the greatest number of messages in memory that could not be stored.
    ///   - ageLimit: the greatest age of a stored message, in seconds.
    ///   - now: returns the time in seconds since 1970.
    ///   - uptime: returns the time in seconds since any moment, of a clock that is never set.
    ///   - queueProgress: is informed when the store is used.
    init(
        limit: Int,
        memoryLimit: Int = Self.memoryLimit,
        ageLimit: Int64 = .max,
        now: @escaping @Sendable () -> Int64 = { StoreClock.secondsSince1970() },
        uptime: @escaping @Sendable () -> Int64 = StoreClock.secondsSinceNow(),
        queueProgress: QueueProgress = QueueProgress(),
        logger: Logger
    ) {
        self.limit = limit
        self.ageLimit = ageLimit
        clock = StoreClock(now: now, uptime: uptime)
        self.memoryLimit = memoryLimit
        self.logger = logger
        file = StoreFile(queueProgress: queueProgress, logger: logger)
    }

    /// Uses the store at a path from now on, before the first message is sent. The messages in it precede those that
    /// wait. If the file cannot be opened now, it is tried again later.
    mutating func useStore(at path: String) {
        file.path = path
        openStore()
        storeWaiting()
    }

    /// The number of messages that wait, or that the broker has not confirmed.
    var count: Int { unconfirmed.count + ready.count + storedCount + unstored.count }

    /// Whether the broker has confirmed all messages that were sent.
    var isConfirmed: Bool { unconfirmed.isEmpty }

    /// Why messages cannot be stored or read now; nil if they can, or if there is no store.
    var storeFailure: String? { file.failure }

    // MARK: Appending

    /// Appends a message.
    mutating func append(_ message: MQTTMessage, isConnected: Bool) {
        append(CollectionOfOne(message), isConnected: isConnected)
    }

    /// Appends messages. Those that are stored are stored together.
    mutating func append(_ messages: some Collection<MQTTMessage>, isConnected: Bool) {
        var messages = messages[...]
        if isConnected, storedCount == 0, unstored.isEmpty {
            let readyMessages = messages.prefix(max(0, Self.readyLimit - ready.count))
            for message in readyMessages { ready.append(numbered(message)) }
            messages = messages.dropFirst(readyMessages.count)
        }
        guard !messages.isEmpty else { return }
        unstored.append(contentsOf: messages)
        storeWaiting()
    }

    private mutating func numbered(_ message: MQTTMessage) -> Entry {
        lastNumber += 1
        return Entry(number: lastNumber, message: message, isStored: false)
    }

    private mutating func openStore(isNeeded: Bool = false) {
        guard let store = file.open(isNeeded: isNeeded) else { return }
        lastNumber = max(lastNumber, store.initialLastNumber)
        lastOfEarlierRuns = lastNumber
        lastLoaded = 0
        storedCount = store.initialCount
        // A store that appears late has older messages than those that are ready, which follow them.
        unstored.insert(contentsOf: ready.map(\.message), at: 0)
        ready = []
    }

    /// Stores the messages that are not stored, as far as the store takes them. False if something has failed; nothing
    /// else is tried then, because another program may have locked the file.
    @discardableResult
    private mutating func storeWaiting() -> Bool {
        if !file.isOpen, unconfirmed.isEmpty { openStore() }
        followClock()
        let isDone = storeAll() && dropStoredExcess()
        dropUnstoredExcess()
        return isDone
    }

    /// Stores the messages that are not stored; false if some could not be.
    private mutating func storeAll() -> Bool {
        while !unstored.isEmpty {
            guard file.isOpen else { return false }
            let time = clock.time
            let entries = zip(1..., unstored.prefix(Self.window)).map { [lastNumber] in
                MessageStore.Entry(number: lastNumber + Int64($0), message: $1, time: time)
            }
            guard change(.append, { try $0.append(entries) }) != nil else { return false }
            lastNumber += Int64(entries.count)
            storedCount += entries.count
            unstored.removeFirst(entries.count)
        }
        return true
    }

    /// Drops the oldest stored messages beyond the limit; false if they cannot be removed.
    private mutating func dropStoredExcess() -> Bool {
        guard storedCount > limit else { return true }
        // Some more are removed, so that not each message costs a search.
        let excess = min(storedCount - limit + limit / 100, storedCount)
        let last = lastLoaded
        guard let removed = change(.remove, { try $0.removeOldest(excess, after: last) }) else { return false }
        storedCount -= excess
        drop(removed, because: "more than \(limit) wait, and the oldest go first")
        return true
    }

    private mutating func dropUnstoredExcess() {
        guard unstored.count > memoryLimit else { return }
        let excess = unstored.count - memoryLimit
        unstored.removeFirst(excess)
        drop(excess, because: "more than \(memoryLimit) wait in memory, and the oldest go first")
    }

    private mutating func drop(_ count: Int, because reason: String) {
        guard count > 0 else { return }
        if recentDropCount == 0 { logger.warning("messages for the broker are dropped: \(reason)") }
        droppedCount += UInt64(count)
        recentDropCount += UInt64(count)
    }

    // MARK: Sending

    /// Sends messages until the window is full; none while the file is to be opened.
    ///
    /// - Parameter send: gives a message to the connection; returns the number of its delivery, nil if it is not taken.
    mutating func sendAll(_ send: (MQTTMessage) -> Int32?) {
        while !isOpeningDue, unconfirmed.count < Self.window, let entry = next() {
            guard let delivery = send(entry.message) else { return ready.prepend(entry) }
            unconfirmed[delivery] = entry
        }
        guard recentDropCount > 0, count == unconfirmed.count else { return }
        logger.notice("all messages that waited were sent; \(recentDropCount) had been dropped")
        recentDropCount = 0
    }

    /// Takes the next message; nil if none waits, or if the store cannot be read now.
    private mutating func next() -> Entry? {
        while ready.isEmpty, storedCount > 0 {
            guard load() else { break }
        }
        if let entry = ready.popFirst() { return entry }
        guard storedCount == 0, let message = unstored.popFirst() else { return nil }
        return numbered(message)
    }

    /// Corrects the times of the messages that this run has stored, if the clock was set forward since then. Those of a
    /// clock that was ahead are in the future, and messages are never too old then.
    ///
    /// - Returns: whether the times are right. If the store does not take the change, it is tried again.
    @discardableResult
    private mutating func followClock() -> Bool {
        let jump = clock.jump
        if jump > StoreClock.tolerance, file.isOpen {
            let first = lastOfEarlierRuns
            guard change(.append, { try $0.addTime(jump, after: first) }) != nil else { return false }
        }
        clock.follow(jump)
        return true
    }

    private func isTooOld(_ entry: MessageStore.Entry) -> Bool {
        guard let stored = entry.time, let time = clock.time else { return false }
        return time - stored > ageLimit
    }

    /// Makes stored messages ready; false if the store cannot be read.
    private mutating func load() -> Bool {
        let areTimesRight = followClock()
        let last = lastLoaded
        guard let entries = change(.read, { try $0.entries(after: last, limit: Self.window) }) else { return false }
        guard let newLast = entries.last?.number else {
            // Another program has removed them.
            storedCount = 0
            return true
        }
        lastLoaded = newLast
        for entry in entries where !confirmed.contains(entry.number) {
            storedCount = max(0, storedCount - 1)
            if !entry.message.hasValidTopic {
                // The broker would end the connection.
                confirmed.insert(entry.number)
                drop(1, because: "the stored topic is not valid")
            } else if areTimesRight, isTooOld(entry) {
                confirmed.insert(entry.number)
                drop(1, because: "they are older than \(ageLimit / 86_400) days")
            } else {
                ready.append(Entry(number: entry.number, message: entry.message, isStored: true))
            }
        }
        return true
    }

    /// Removes a message that the broker has confirmed. After the last one, tries a file again that is to be opened.
    ///
    /// - Returns: false if there is no such message.
    @discardableResult
    mutating func confirm(_ delivery: Int32) -> Bool {
        guard let entry = unconfirmed.removeValue(forKey: delivery) else { return false }
        if entry.isStored { confirmed.insert(entry.number) }
        let removesEarly = unconfirmed.isEmpty && removalCount == Self.window
        if confirmed.count >= removalCount || removesEarly { removeConfirmed() }
        if isOpeningDue, unconfirmed.isEmpty { retryStore() }
        return true
    }

    private mutating func removeConfirmed() {
        guard !confirmed.isEmpty else { return }
        let numbers = confirmed.sorted()
        if change(.remove, { try $0.remove(numbers) }) != nil {
            confirmed = []
            removalCount = Self.window
        } else {
            removalCount = max(Self.window, 2 * confirmed.count)
        }
    }

    /// Drops the messages that the broker has not confirmed, because it refuses them.
    mutating func dropUnconfirmed() {
        for entry in unconfirmed.values {
            if entry.isStored { confirmed.insert(entry.number) }
            droppedCount += 1
            let message = entry.message
            logger.error(
                "a message is dropped: the broker ends the connection when it receives it",
                metadata: ["topic": "\(message.topic)", "bytes": "\(message.payload.utf8.count)"]
            )
        }
        unconfirmed = [:]
    }

    /// Limits how long this outbox waits for another program that has locked the store, because the gateway stops; see
    /// ``StoreFile/limitLockWaits()``.
    mutating func limitLockWaits() { file.limitLockWaits() }

    /// Stores the messages in memory, because the connection was lost or the gateway stops. Those that were not
    /// confirmed are sent again, before the others.
    mutating func connectionLost() {
        removeConfirmed()
        isOpeningDue = false
        ready.insert(contentsOf: unconfirmed.values.sorted { $0.number < $1.number }, at: 0)
        unconfirmed = [:]
        // These messages may be the last ones of the process.
        if !file.isOpen { openStore(isNeeded: true) }
        followClock()
        if let first = ready.first {
            let time = clock.time
            let entries = ready.lazy.filter { !$0.isStored }
                .map { MessageStore.Entry(number: $0.number, message: $0.message, time: time) }
            if change(.append, { try $0.append(entries) }) != nil {
                storedCount += ready.count
                lastLoaded = first.number - 1
                ready = []
            }
        }
        storeWaiting()
    }

    // MARK: The store

    /// Tries the store again if it has failed. To be called now and then, because nothing else uses the store while the
    /// broker confirms messages. Another program that has locked the file is waited for once at most. A file that is
    /// not open is tried when the broker has confirmed the messages that were sent.
    mutating func retryStore() {
        isOpeningDue = false
        guard storeFailure != nil else { return }
        if !file.isOpen {
            // The numbers of messages that were sent may be those of stored ones.
            isOpeningDue = !unconfirmed.isEmpty
            if !isOpeningDue { openStore(isNeeded: true) }
            guard file.isOpen else { return }
        }
        removeConfirmed()
        guard confirmed.isEmpty, followClock(), storeWaiting() else { return }
        // Otherwise a failure would last until there is something to store or to remove.
        for operation in [StoreFile.Operation.append, .remove] where file.hasFailed(operation) {
            guard change(operation, { try $0.checkWrites() }) != nil else { return }
        }
        guard file.hasFailed(.read) else { return }
        let last = lastLoaded
        _ = change(.read) { try $0.entries(after: last, limit: Self.window) }
    }

    /// Uses the store; nil if there is none, or if it fails.
    private mutating func change<Result>(
        _ operation: StoreFile.Operation,
        _ body: (MessageStore) throws -> Result
    ) -> Result? {
        switch file.perform(operation, body) {
        case .success(let result): return result
        case .failure: return nil
        case .damaged:
            // The messages in memory go to the new file when the connection is lost.
            drop(storedCount, because: "the store was damaged")
            storedCount = 0
            lastLoaded = 0
            confirmed = []
            for index in ready.indices { ready[index].isStored = false }
            for key in unconfirmed.keys { unconfirmed[key]?.isStored = false }
            return nil
        }
    }
}
